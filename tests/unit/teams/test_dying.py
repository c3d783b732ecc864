"""A process that dies at any of its writes while it replies: the reply is told all the same, of one run."""

from dataclasses import replace
from typing import Any

import pytest

from shared.teams.models import BotMessage, ReplyStep
from shared.teams.parsing import reply_key
from shared.teams.steps import perform_reply
from shared.teams.turns import handle
from tests.unit.functions.asking_app import Death, Died
from tests.unit.teams.chat import ANSWERED, QUESTION, Chat, chat, first_step

WRITES = 17  # of a question from its delivery to its end; the last test counts them
_PORTS = {
    "blobs": ("create", "write"),
    "run_log": ("create", "append"),
    "threads": ("create", "replace"),
    "runs": ("create",),
    "user_limits": ("write",),
    "bot_turns": ("put", "note_message"),
    "bot_outbox": ("say",),
}


class Mortal:
    """A port whose writes a process may not survive."""

    def __init__(self, inner: Any, writes: tuple[str, ...], death: Death) -> None:
        self._inner, self._writes, self._death = inner, writes, death

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._inner, method)
        if method == "begin":
            return self._begun(found)
        return self._mortal(method, found) if method in self._writes else found

    def _mortal(self, name: str, write: Any) -> Any:
        async def mortal(*arguments: Any, **keywords: Any) -> Any:
            return await self._death.do(name, write, *arguments, **keywords)

        return mortal

    def _begun(self, begin: Any) -> Any:
        async def begun(*arguments: Any, **keywords: Any) -> Any:
            return Mortal(await begin(*arguments, **keywords), ("finish",), self._death)

        return begun


def dying(bot: Chat, death: Death) -> Chat:
    """The same chat as a process sees it that will die."""
    ports: dict[str, Any] = {
        name: Mortal(getattr(bot.services, name), writes, death) for name, writes in _PORTS.items()
    }
    services = replace(bot.services, **ports)
    return replace(bot, services=services, outbox=ports["bot_outbox"], turns=ports["bot_turns"])


async def replied(bot: Chat, death: Death, message: BotMessage) -> None:
    """Deliver a message until it is taken, and repeat each step until its end is known, as a host would."""
    mortal = dying(bot, death)
    try:
        await handle(message, mortal.services, bot.orchestrations)
    except (Died, BaseExceptionGroup):
        await handle(message, bot.services, bot.orchestrations)
    step = first_step(reply_key(message))
    while step.kind != "end":
        step = await _performed(step, bot, mortal)
        await bot.run_runs()


async def _performed(step: ReplyStep, bot: Chat, mortal: Chat) -> ReplyStep:
    try:
        following = await perform_reply(step, mortal.deps)
    except (Died, BaseExceptionGroup):
        following = await perform_reply(step, bot.deps)
    return following


@pytest.mark.parametrize("is_behind", [False, True])
async def test_wherever_the_process_dies_one_run_is_begun_and_its_answer_told(*, is_behind: bool) -> None:
    for at in range(WRITES):
        bot, death = await chat(), Death(at, is_behind=is_behind)
        message = bot.message(QUESTION)
        await replied(bot, death, message)
        assert len(death.writes) == at + 1, death.writes
        runs = [key for key, (name, _) in bot.orchestrations.started.items() if name == "answer_question"]
        assert runs == [reply_key(message)]
        thread = await bot.services.threads.get("anna", (await bot.turn()).thread_id or "")
        assert thread is not None
        assert thread.turn_count == 1
        whole = [text for text in bot.outbox.texts if ANSWERED in text]
        assert len(whole) == 1, death.writes
        assert (await bot.turn()).last_run_id == reply_key(message)


async def test_the_writes_are_counted() -> None:
    bot, death = await chat(), Death(999, is_behind=False)
    await replied(bot, death, bot.message(QUESTION))
    assert len(death.writes) == WRITES, death.writes
    assert [bot.outbox.texts.count(text) for text in bot.outbox.texts] == [1]
