"""docs/extend.md describes each tool of the registry, with every parameter, and each type of failure."""

import re

from shared.access.models import UserContext
from shared.tools.base import HINTS
from shared.tools.registry import TOOLS, Binding
from tests.architecture.source_tree import ROOT
from tests.fakes.services import fake_services

PAGE = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
ROW = re.compile(r"^(?:\||-) `(\w+)`", re.MULTILINE)


def sections() -> dict[str, str]:
    """Tool -> what stands below its heading."""
    parts = re.split(r"^##+ ", PAGE, flags=re.MULTILINE)
    return {part.split("`")[1]: part for part in parts if part.startswith("`")}


def test_every_tool_is_documented_and_no_other() -> None:
    assert sections().keys() == TOOLS.keys()


def test_every_parameter_is_documented_and_no_other() -> None:
    services, user = fake_services(), UserContext(user_id="u")
    documented = {name: ROW.findall(text) for name, text in sections().items()}
    actual = {
        name: list(make(Binding(services, user)).parameters_schema["properties"])
        for name, make in TOOLS.items()
    }
    assert documented == actual


def test_every_type_of_failure_is_documented() -> None:
    failures = PAGE.split("## Failures")[1].split("## ")[0]
    assert re.findall(r"`(\w+)` \(", failures) == list(HINTS)
