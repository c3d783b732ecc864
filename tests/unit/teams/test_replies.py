"""Tests for replies: the messages sent to a conversation, and the effects of a crash between steps."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shared.answering.inline import run_to_end
from shared.evidence.models import AnswerFigure, Citation
from shared.platform.errors import AccessDeniedError, DependencyError
from shared.runs.log_lines import EventName
from shared.runs.models import RunAnswer
from shared.teams.models import BotMessage, ReplyStep, ShownCitation, ShownFigure
from shared.teams.outgoing import MAX_ABSTRACT_CHARS, reply_of
from shared.teams.parsing import reply_key
from shared.teams.steps import PAUSES_S, perform_reply
from shared.teams.store import purge_activities
from shared.teams.turns import handle
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.dying import Death, Died, Mortal
from tests.fakes.run_log import run_event
from tests.fakes.services import OWNER_ID_KEY
from tests.unit.teams.chat import ANSWERED, GROUP, QUESTION, Chat, chat, first_step

DOWN = DependencyError("The channel is out of reach.")

BOT_REMOVED = AccessDeniedError("The bot is not part of the conversation roster.")


async def start_run(text: str = QUESTION, *, stream_s: float = 0.3, **fields: Any) -> tuple[Chat, ReplyStep]:
    """Return a chat with a run that nothing executes, and the step that follows the run for `stream_s`
    seconds.
    """
    bot = await chat(bot_stream_seconds=stream_s)
    bot.runs_are_run = False
    message = bot.message(text, **fields)
    await handle(message, bot.services, bot.orchestrations)
    step = await perform_reply(first_step(message), bot.deps)
    assert (step.kind, step.run_id) == ("follow", reply_key(message, OWNER_ID_KEY))
    return bot, step


async def tell(bot: Chat, step: ReplyStep, events: Sequence[tuple[EventName, dict[str, object]]]) -> None:
    """Append events to the log of the run."""
    await bot.services.run_log.append(step.run_id, [run_event(name, **data) for name, data in events])


async def test_a_run_that_takes_longer_than_a_message_may_grow_is_told_anew_when_it_is_done() -> None:
    bot, step = await start_run()
    step = await perform_reply(step, bot.deps)
    assert (step.kind, step.part) == ("follow", 1)
    assert "will write here" in bot.last.reply.text
    step = await perform_reply(step, bot.deps)
    assert (step.part, len(bot.outbox.said)) == (2, 1)  # the message is sent only once
    await run_to_end(step.run_id, bot.services)
    step = await perform_reply(step, bot.deps)
    assert step.kind == "end"
    assert ANSWERED in bot.last.reply.text
    assert (bot.last.pieces, bot.last.reply_to) == ([], None)
    assert bot.outbox.streams == 1


async def test_an_answer_is_followed_while_it_is_written() -> None:
    bot, step = await start_run(stream_s=110)  # long enough for a slow machine
    reply, _ = await asyncio.gather(perform_reply(step, bot.deps), run_to_end(step.run_id, bot.services))
    assert reply.kind == "end"
    assert len(bot.outbox.said) == 1


async def test_after_a_crash_in_the_middle_the_whole_is_sent_and_does_not_grow_again() -> None:
    bot, step = await start_run()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [DOWN, DOWN]  # the streamed message can be neither completed nor sent again
    again = await perform_reply(step, bot.deps)
    assert (again.kind, again.attempt, again.delay_s) == ("follow", 1, PAUSES_S[0])
    assert (await perform_reply(again, bot.deps)).kind == "end"
    assert ANSWERED in bot.last.reply.text
    assert bot.last.pieces == []
    assert bot.outbox.streams == 1


async def test_a_message_that_cannot_end_as_it_began_is_sent_whole() -> None:
    bot, step = await start_run()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [DOWN]
    assert (await perform_reply(step, bot.deps)).kind == "end"
    assert ANSWERED in bot.last.reply.text
    assert bot.last.reply_to == "activity-1"


async def test_what_went_out_whole_is_not_sent_again() -> None:
    bot, step = await start_run()
    await run_to_end(step.run_id, bot.services)
    for _ in range(3):
        assert (await perform_reply(step, bot.deps)).kind == "end"
    assert len(bot.outbox.said) == 1


async def test_a_question_taken_twice_after_a_crash_is_one_run() -> None:
    bot, step = await start_run()
    first = ReplyStep(reply_key=step.reply_key, folder=step.folder)
    assert await perform_reply(first, bot.deps) == step
    thread = await bot.services.threads.get("anna", (await bot.turn()).thread_id or "")
    assert thread is not None
    assert thread.turn_count == 1


async def test_a_channel_that_stays_out_of_reach_ends_in_an_apology_that_may_fail_too() -> None:
    bot, step = await start_run()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [DOWN] * 20
    kinds = []
    while step.kind != "end":
        step = await perform_reply(step, bot.deps)
        kinds.append((step.kind, step.attempt))
    assert kinds[:4] == [("follow", 1), ("follow", 2), ("follow", 3), ("apologise", 0)]
    assert bot.outbox.said == []


async def test_a_bot_that_was_removed_says_nothing_more() -> None:
    bot, step = await start_run()
    await run_to_end(step.run_id, bot.services)
    bot.outbox.fails_with = [BOT_REMOVED, BOT_REMOVED]
    step = await perform_reply(step, bot.deps)
    assert (step.kind, step.attempt) == ("apologise", 0)
    assert (await perform_reply(step, bot.deps)).kind == "end"
    assert bot.outbox.said == []


async def test_a_run_that_died_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.teams.replies._CHECK_AFTER_S", 0.1)
    bot, step = await start_run()
    bot.orchestrations.dead.add(step.run_id)
    assert (await perform_reply(step, bot.deps)).kind == "end"
    assert "Something went wrong" in bot.last.reply.text
    assert step.run_id[:8] in bot.last.reply.text


async def test_a_run_whose_log_is_gone_is_told_of() -> None:
    bot, step = await start_run()
    await bot.services.run_log.delete(step.run_id)
    step = await perform_reply(step, bot.deps)
    assert step.kind == "apologise"
    await perform_reply(step, bot.deps)
    assert "was deleted" in bot.last.reply.text


async def test_text_that_was_withdrawn_is_shown_again_only_from_where_it_goes_on() -> None:
    bot, step = await start_run()
    await tell(
        bot,
        step,
        [
            ("TOKEN", {"step": 3, "text": "One\ntwo\n"}),
            ("STATUS", {"step": 3, "state": "restarted", "attempt": "2"}),
            ("TOKEN", {"step": 3, "text": "One\n"}),
            ("TOKEN", {"step": 3, "text": "two\nthree.\n"}),
            ("STATUS", {"step": 3, "state": "discarded"}),
            ("TOKEN", {"step": 5, "text": "Something else.\n"}),
        ],
    )
    await perform_reply(step, bot.deps)
    assert "".join(bot.last.pieces).split() == ["One", "two", "three."]


async def test_in_a_group_people_see_that_we_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.teams.replies._TYPING_EVERY_S", 0.05)
    bot, step = await start_run(conversation=GROUP)
    typed = bot.outbox.typed
    await perform_reply(step, bot.deps)
    assert bot.outbox.typed > typed


async def test_the_words_of_a_message_go_when_it_is_answered_and_the_rest_with_its_day() -> None:
    from datetime import UTC, datetime, timedelta

    bot = await chat()
    await bot.write(QUESTION)
    blobs = bot.services.blobs
    assert isinstance(blobs, InMemoryBlobStore)
    (name,) = [blob.name async for blob in blobs.list_blobs("work", "channel/")]
    assert QUESTION.encode() not in await blobs.read("work", name)
    now = datetime.now(UTC)
    forgotten: list[str] = []

    async def forget(instance_id: str) -> None:
        forgotten.append(instance_id)

    assert (
        await purge_activities(now + timedelta(days=4), bot.services.settings, bot.services.blobs, forget)
        == 0
    )  # the run may wait three days
    assert (
        await purge_activities(now + timedelta(days=7), bot.services.settings, bot.services.blobs, forget)
        == 1
    )
    assert forgotten == [one for one in bot.orchestrations.started if one.endswith("-reply")]


async def test_a_conversation_that_was_forgotten_meanwhile_keeps_nothing_of_the_answer() -> None:
    bot, step = await start_run()
    await run_to_end(step.run_id, bot.services)
    await bot.services.runs.delete(step.run_id)
    await perform_reply(step, bot.deps)
    assert bot.turns.messages == {}
    record = await bot.services.runs.get(step.run_id)
    assert record is None


APP = "https://app.example"

_PATH = f"/api/documents/d1/figures/{'a' * 64}.png"

_TABLE = "| a | b |\n|---|---|\n| x | y |"

_SIGNED = "https://store.example/figures/d1/a.png?sig=s"


def _cited(**changes: Any) -> Citation:
    usual: dict[str, Any] = {
        "n": 1,
        "doc_id": "d1",
        "block_id": "b1",
        "filename": "pump.pdf",
        "page_number": 3,
        "quote": "The valve\n opens at 6.5 bar.",
        "verified": True,
        "url": "/api/documents/d1/pages/3?run=r&n=1#cited",
    }
    return Citation(**(usual | changes))


def _answer(**changes: Any) -> RunAnswer:
    figure = AnswerFigure(
        block_id="b2",
        doc_id="d1",
        filename="pump.pdf",
        page_number=4,
        caption="The valve, [cut] open",
        path=_PATH,
        image_url=_SIGNED,
    )
    usual: dict[str, Any] = {
        "run_id": "r",
        "text": f"At 6.5 bar (Source: pump.pdf, S. 3)[1].\n\n![The valve]({_PATH})\n\n{_TABLE}",
        "citations": (_cited(),),
        "figures": (figure,),
    }
    return RunAnswer(**(usual | changes))


def test_an_answer_is_told_with_its_sources_its_picture_and_its_table() -> None:
    reply = reply_of(_answer(), language="en", public_address=APP)
    assert reply.text == "At 6.5 bar (Source: pump.pdf, p. 3)[1].\n\n*The valve*\n\n- **x** · b: y"
    assert reply.citations == (
        ShownCitation(
            n=1,
            name="pump.pdf, p. 3",
            abstract="The valve opens at 6.5 bar.",
            url=f"{APP}/api/documents/d1/pages/3?run=r&n=1#cited",
        ),
    )
    assert reply.figures == (
        ShownFigure(
            caption="The valve, cut open (pump.pdf, p. 4)",
            alt="The valve, cut open (pump.pdf, p. 4)",
            image_url=_SIGNED,
            page_url=f"{APP}/api/documents/d1/pages/4",
        ),
    )
    assert reply.tables[0].rows == (("x", "y"),)
    assert reply.can_be_rated
    assert reply.is_generated


def test_a_caption_that_stands_in_the_text_is_not_told_again() -> None:
    long = "A drawing of the valve as it stands in the hall of Ludlow, with all of its parts"
    text = f"![{long}]({_PATH})\n\n![Pump]({_PATH})"
    first, second = (_answer().figures[0].model_copy(update={"caption": one}) for one in (long, "Pump"))
    alone = reply_of(_answer(text=text, figures=(first,)), language="en", public_address=APP).figures[0]
    assert (alone.caption, alone.alt) == ("pump.pdf, p. 4", f"{long} (pump.pdf, p. 4)")
    several = reply_of(_answer(text=text, figures=(first, second)), language="en", public_address=APP).figures
    assert [figure.caption for figure in several] == [
        "A drawing of the valve as it stands in the hall of Ludlow, … (pump.pdf, p. 4)",
        "Pump (pump.pdf, p. 4)",
    ]


def test_names_and_quotations_do_not_turn_the_direction_of_reading() -> None:
    cited = _cited(filename="a\u202efdp.exe", quote="It\u202e opens.")
    reply = reply_of(_answer(citations=(cited,)), language="en", public_address=APP)
    assert (reply.citations[0].name, reply.citations[0].abstract) == ("afdp.exe, p. 3", "It opens.")


def test_a_signed_address_stands_nowhere_but_in_the_picture() -> None:
    reply = reply_of(_answer(), language="en", public_address=APP)
    assert reply.model_dump_json().count("sig=") == 1


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "pump.pdf, S. 3"),
        ({"page_number": None}, "pump.pdf"),
        ({"page_number": None, "start_seconds": 83.0}, "pump.pdf, 01:23"),
        ({"verified": False}, "pump.pdf, S. 3, Abbildung"),
    ],
)
def test_a_source_is_named_in_the_language_of_the_reader(changes: dict[str, Any], name: str) -> None:
    reply = reply_of(_answer(citations=(_cited(**changes),)), language="de", public_address=APP)
    assert reply.citations[0].name == name


@pytest.mark.parametrize(
    ("url", "address", "expected"),
    [
        ("/api/documents/d1/pages/3", None, ""),  # the address of the app is unknown
        ("https://video.example/talk#t=83", None, "https://video.example/talk#t=83"),
        ("javascript:alert(1)", APP, ""),
        ("http://video.example/talk", APP, ""),
    ],
)
def test_links_lead_to_the_app_or_over_https(url: str, address: str | None, expected: str) -> None:
    reply = reply_of(_answer(citations=(_cited(url=url),)), language="en", public_address=address)
    assert reply.citations[0].url == expected


def test_a_long_quotation_is_cut_at_a_word() -> None:
    reply = reply_of(
        _answer(citations=(_cited(quote="word " * 300), _cited(n=2, quote="x" * 900))),
        language="en",
        public_address=APP,
    )
    first, second = (cited.abstract for cited in reply.citations)
    assert first.endswith("word …")
    assert all(len(text) <= MAX_ABSTRACT_CHARS for text in (first, second))


def test_a_picture_that_could_not_be_signed_is_left_out() -> None:
    figure = _answer().figures[0].model_copy(update={"image_url": None})
    assert reply_of(_answer(figures=(figure,)), language="en", public_address=APP).figures == ()


WRITES = 17  # writes of a question from delivery to end; the last test counts them

_PORTS = {
    "blobs": ("create", "write"),
    "run_log": ("create", "append"),
    "threads": ("create", "replace"),
    "runs": ("create",),
    "user_limits": ("change",),
    "bot_turns": ("put", "note_message"),
}


class MortalOutbox(Mortal):
    """An outbox that also makes the messages it begins subject to the simulated crash."""

    async def begin(self, *arguments: Any, **keywords: Any) -> Any:
        return Mortal(await self._inner.begin(*arguments, **keywords), ("finish",), self._death)


def dying(bot: Chat, death: Death) -> Chat:
    """Return the chat as used by a process that crashes at `death`."""
    services = death.mortal(bot.services, _PORTS)
    outbox: Any = MortalOutbox(bot.services.bot_outbox, ("say",), death)
    turns: Any = services.bot_turns
    return replace(bot, services=replace(services, bot_outbox=outbox), outbox=outbox, turns=turns)


async def replied(bot: Chat, death: Death, message: BotMessage) -> None:
    """Deliver a message until it is accepted, and repeat each step until it is confirmed, as a host would."""
    mortal = dying(bot, death)
    try:
        await handle(message, mortal.services, bot.orchestrations)
    except (Died, BaseExceptionGroup):
        await handle(message, bot.services, bot.orchestrations)
    step = first_step(message)
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
        assert len(death.calls) == at + 1, death.calls
        runs = [key for key, (name, _) in bot.orchestrations.started.items() if name == "answer_question"]
        assert runs == [reply_key(message, OWNER_ID_KEY)]
        thread = await bot.services.threads.get("anna", (await bot.turn()).thread_id or "")
        assert thread is not None
        assert thread.turn_count == 1
        whole = [text for text in bot.outbox.texts if ANSWERED in text]
        assert len(whole) == 1, death.calls
        assert (await bot.turn()).last_run_id == reply_key(message, OWNER_ID_KEY)


async def test_the_writes_are_counted() -> None:
    bot, death = await chat(), Death(999, is_behind=False)
    await replied(bot, death, bot.message(QUESTION))
    assert len(death.calls) == WRITES, death.calls
    assert [bot.outbox.texts.count(text) for text in bot.outbox.texts] == [1]
