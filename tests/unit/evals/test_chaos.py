"""Tests for the defects that the checker of `make chaos` detects in a document."""

from typing import Any

import pytest

from evals.chaos.__main__ import KEYS, summary
from evals.chaos.checker import Finding, check_paper
from evals.chaos.world import Paper

PAPER = Paper("chaos-1.md", version=2, readers=("anna",))
STATE: dict[str, Any] = {"status": "ready", "wish": 2, "settled": 2, "rights": {"owner_id": None}}


def blocks(*sentences: str, acl: tuple[str, ...] = ("anna",)) -> list[dict[str, Any]]:
    return [{"content": text, "access_control_list": list(acl)} for text in sentences]


NOW = PAPER.sentences(2)


@pytest.mark.parametrize(
    ("state", "rows", "kinds"),
    [
        (STATE, blocks(*NOW), set()),
        (STATE, blocks(*NOW[1:]), {"lost"}),
        (STATE, blocks(*NOW, PAPER.sentences(1)[1]), {"orphaned"}),
        (STATE, blocks(*NOW, acl=("anna", "ben")), {"leaked"}),
        (STATE, blocks(*NOW, acl=("*",)), {"leaked"}),
        ({**STATE, "status": "embedding"}, blocks(*NOW), {"stuck"}),
        ({**STATE, "wish": 3}, blocks(*NOW), {"stuck"}),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(
    state: dict[str, Any], rows: list[dict[str, Any]], kinds: set[str]
) -> None:
    finding = Finding()
    check_paper(PAPER, state, {"access_control_list": ["anna"]}, rows, finding)
    assert {kind for kind, lines in vars(finding).items() if lines} == kinds


def test_the_report_adds_up_what_rounds_found() -> None:
    one = {key: ["a thing"] for key in KEYS} | {"strikes": ["host", "host"], "reembedded": 3}
    report = summary([one, one])
    assert {report[key] for key in KEYS} == {2}
    assert (report["rounds"], report["reembedded"], report["strikes"]) == (2, 6, {"host": 4})
