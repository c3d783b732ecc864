"""Tests for the prompts of sub-agents: one per profile, complete, short, and with common rules."""

import re
from pathlib import Path
from typing import get_args

import pytest

from shared.answering.budget import max_tokens_of
from shared.answering.profiles import PROFILES, SubagentProfile
from shared.platform.prompts import load
from shared.runs.models import ProfileName
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import GOOD, READ, READY, stored_child

FOLDER = Path(__file__).parents[3] / "shared/answering/prompts"
README = (FOLDER / "README.md").read_text("utf-8")
ALL = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


def test_every_profile_has_its_prompt() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} >= {*get_args(ProfileName), "report_rules"}
    assert PROFILES.keys() == set(get_args(ProfileName))


@ALL
def test_a_prompt_names_every_part_of_its_report_and_no_other(profile: SubagentProfile) -> None:
    report = load("answering", profile.name).partition("The report")[2]
    matches = set(re.findall(r"^- `(\w+)`|`(\w+)`, one entry", report, re.MULTILINE))
    parts = {one or other for one, other in matches}
    items = {"text", "proofs", "confidence"} if profile.name == "evidence_builder" else set()
    assert parts - items == profile.report.model_fields.keys()


@ALL
def test_a_prompt_says_when_it_is_done(profile: SubagentProfile) -> None:
    assert "You are done when" in load("answering", profile.name)


@ALL
async def test_the_system_message_is_the_prompt_with_the_rules_and_small(profile: SubagentProfile) -> None:
    report = GOOD if profile.report is type(GOOD) else READ
    model = CountedModel(READY, report)
    world = await stored_child(model, profile.name)
    await world.take(closing=profile.report not in (type(GOOD), type(READ)))
    system_texts = [message.text for messages in model.conversations for message in messages[:1]]
    for system in (*system_texts, *(prompt.system for prompt in model.prompts)):
        assert "{{" not in system
        assert load("answering", "report_rules") in system
        assert max_tokens_of([system]) < 1300  # every call spends them from a budget of 8,000


def test_the_elements_of_a_message_are_described() -> None:
    rules = load("answering", "report_rules") + load("answering", "web_verifier")
    for name in ("task", "targets", "documents", "web_results", "next"):
        assert f"<{name}>" in rules
        assert f"<{name}" in README
