"""docs/internals/delegation.md gives each reason with its words, each profile, and each setting."""

import re

from shared.platform.settings import BudgetSettings, SubagentSettings, ThresholdSettings
from shared.subagents.policy_models import REASON_WORDS
from shared.subagents.profiles import PROFILES
from tests.architecture.source_tree import ROOT

PAGE = (ROOT / "docs/internals/delegation.md").read_text(encoding="utf-8")
REASON = re.compile(r"^\| `([A-Z_]+)` \|.*\| ([^|]+) \|$", re.MULTILINE)
PROFILE = re.compile(r"^\| `([a-z_]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| ?([^|]*)\|$", re.MULTILINE)


def test_every_reason_is_documented_with_its_words() -> None:
    assert REASON.findall(PAGE) == list(REASON_WORDS.items())


def test_every_profile_is_documented() -> None:
    documented = [
        (name, *(tuple(re.findall(r"`(\w+)`", cell)) for cell in cells))
        for name, *cells in PROFILE.findall(PAGE.split("## Profiles")[1].split("## ")[0])
    ]
    assert documented == [
        (profile.name, profile.tools, profile.artifacts, (profile.smaller,) if profile.smaller else ())
        for profile in PROFILES.values()
    ]


def test_every_setting_of_sub_agents_is_named() -> None:
    groups = (SubagentSettings, ThresholdSettings, BudgetSettings)
    settings = [field.alias for group in groups for field in group.model_fields.values()]
    missing = [name for name in settings if f"`{name}" not in PAGE]
    assert missing == []
