"""Tests for repairing structured output: one more call with the error, for invalid replies only."""

import pytest

from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.language_models.repair import parse_or_repair
from shared.platform.models import Model
from tests.fakes.models import ScriptedChatModel

PROMPT = Prompt(name="plan", system="Rules", user="<question>Why?</question>")


class Reply(Model):
    text: str


def limits() -> CallLimits:
    return CallLimits(timeout_s=1)


async def test_valid_reply_takes_one_call() -> None:
    model = ScriptedChatModel(Reply(text="yes"))
    assert await parse_or_repair(model, PROMPT, Reply, limits) == (Reply(text="yes"), 1)
    assert model.prompts == [PROMPT]


async def test_invalid_reply_is_repaired_with_the_escaped_error() -> None:
    model = ScriptedChatModel(ModelFixableError("No <text>."), Reply(text="yes"))
    assert await parse_or_repair(model, PROMPT, Reply, limits) == (Reply(text="yes"), 2)
    first, second = model.prompts
    assert first == PROMPT
    assert second.system == PROMPT.system
    assert second.user == f"{PROMPT.user}\n<previous_error>No &lt;text&gt;.</previous_error>"


async def test_second_invalid_reply_is_raised() -> None:
    model = ScriptedChatModel(ModelFixableError("first"), ModelFixableError("second"), Reply(text="late"))
    with pytest.raises(ModelFixableError, match="second"):
        await parse_or_repair(model, PROMPT, Reply, limits)


async def test_service_failure_is_not_repaired() -> None:
    model = ScriptedChatModel(DependencyError("down"), Reply(text="late"))
    with pytest.raises(DependencyError):
        await parse_or_repair(model, PROMPT, Reply, limits)
    assert len(model.prompts) == 1
