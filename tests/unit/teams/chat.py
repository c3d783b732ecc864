"""A chat over fakes: the steps of replies are performed one after the other, and runs are executed when they
start.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.access.models import UserContext
from shared.answering.inline import run_to_end, waits
from shared.answering.script import StepResults
from shared.answering.steps import AnswerArrived, AnswerTimedOut
from shared.platform.errors import GroundworkError
from shared.teams.context import ReplyDependencies
from shared.teams.models import (
    BotActivity,
    BotAttachment,
    BotConversation,
    BotFeedback,
    BotJoined,
    BotMessage,
    BotSender,
    BotTurn,
    ButtonValue,
    ReplyStep,
)
from shared.teams.parsing import conversation_key, owner_of, reply_key
from shared.teams.steps import perform_reply
from shared.teams.store import folder_of
from shared.teams.turns import handle
from shared.wiring import Services
from tests.fakes.bot import InMemoryBotTurnStore, RecordingOrchestrations, RecordingOutbox, Said
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.services import OWNER_ID_KEY, fake_settings
from tests.scripts import observe
from tests.world import Model, corpus_services, plan

ANNA = BotSender(channel_user_id="29:anna", object_id="anna", tenant_id="tenant")
BEN = BotSender(channel_user_id="29:ben", object_id="ben", tenant_id="tenant")
PERSONAL = BotConversation(
    channel="msteams",
    service_url="https://smba.trafficmanager.net/emea/",
    conversation_id="a:1",
    tenant_id="tenant",
    bot_id="28:bot",
    locale="en-US",
)
GROUP = PERSONAL.model_copy(update={"conversation_id": "19:group", "kind": "group"})
QUESTION = "At what pressure does the pump run?"
ANSWERED = "It runs at 15 bar."


@dataclass
class Chat:
    """A bot with its stores and fakes. `states` contains the results of runs that wait for the user."""

    services: Services
    outbox: RecordingOutbox
    turns: InMemoryBotTurnStore
    orchestrations: RecordingOrchestrations
    runs_are_run: bool = True
    refused: Mapping[str, GroundworkError] = field(default_factory=dict)
    stored: list[str] = field(default_factory=list)
    threads_of_files: list[str] = field(default_factory=list)
    states: dict[str, StepResults] = field(default_factory=dict)
    steps: list[ReplyStep] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def deps(self) -> ReplyDependencies:
        return ReplyDependencies(
            self.services, self.outbox, self.turns, self.orchestrations, self._store_file
        )

    @property
    def last(self) -> Said:
        return self.outbox.said[-1]

    def message(self, text: str = "", sender: BotSender = ANNA, **fields: Any) -> BotMessage:
        """Return a message with a new id."""
        defaults = {
            "activity_id": f"activity-{next(self.numbers)}",
            "conversation": PERSONAL,
            "sender": sender,
        }
        return BotMessage.model_validate({**defaults, "text": text, **fields})

    async def write(self, text: str = "", sender: BotSender = ANNA, **fields: Any) -> list[Said]:
        """Send a message to the bot, and return the bot's messages."""
        return await self.send(self.message(text, sender, **fields))

    async def press(self, value: ButtonValue, sender: BotSender = ANNA) -> list[Said]:
        return await self.write("", sender, button=value)

    async def send(self, activity: BotActivity) -> list[Said]:
        """Send an activity to the bot, and return the bot's messages. Every reply runs to its end, or until
        it waits for days.
        """
        before = len(self.outbox.said)
        earlier_ids = set(self.orchestrations.started)
        await handle(activity, self.services, self.orchestrations)
        for instance_id in [one for one in self.orchestrations.started if one not in earlier_ids]:
            name, payload = self.orchestrations.started[instance_id]
            if name == "reply_in_channel":
                await self.reply(ReplyStep.model_validate(payload))
        return self.outbox.said[before:]

    async def reply(self, step: ReplyStep) -> ReplyStep:
        """Perform the steps of a reply until its end, or until a step that starts at least an hour later.
        Return the last step.
        """
        while step.kind != "end" and step.delay_s < 3600:
            step = await perform_reply(step.model_copy(update={"delay_s": 0.0}), self.deps)
            self.steps.append(step)
            await self.run_runs()
        return step

    async def rate(self, message_id: str, thumb: str, sender: BotSender = ANNA) -> Any:
        defaults = {
            "activity_id": f"activity-{next(self.numbers)}",
            "conversation": PERSONAL,
            "sender": sender,
        }
        feedback = BotFeedback.model_validate({**defaults, "message_id": message_id, "thumb": thumb})
        return await handle(feedback, self.services, self.orchestrations)

    async def join(self, conversation: BotConversation = PERSONAL, *, is_us: bool = True) -> list[Said]:
        joined = BotJoined(
            activity_id=f"activity-{next(self.numbers)}", conversation=conversation, sender=ANNA, is_us=is_us
        )
        return await self.send(joined)

    async def nobody_answers(self, run_id: str) -> None:
        """Let the time for a clarification expire, so that the run continues without an answer."""
        await self._go_on(run_id, observe(self.states.pop(run_id), AnswerTimedOut()))

    async def turn(self, conversation: BotConversation = PERSONAL, sender: BotSender = ANNA) -> BotTurn:
        turn = await self.turns.get(conversation_key(conversation), owner_of(conversation, sender))
        assert turn is not None
        return turn

    async def run_runs(self) -> None:
        """Execute runs that were started or received a reply since the last call."""
        if not self.runs_are_run:
            return
        for run_id, (name, _) in list(self.orchestrations.started.items()):
            if name == "answer_question" and run_id not in self.states and not await self._has_ended(run_id):
                await self._go_on(run_id)
        for run_id, _ in list(self.orchestrations.told):
            if run_id in self.states:
                await self._go_on(run_id, observe(self.states.pop(run_id), AnswerArrived()))

    async def _go_on(self, run_id: str, state: StepResults = ()) -> None:
        ended = await run_to_end(run_id, self.services, state)
        if waits(ended):
            self.states[run_id] = ended

    async def _has_ended(self, run_id: str) -> bool:
        record = await self.services.runs.get(run_id)
        return record is None or record.status in ("completed", "failed", "cancelled")

    async def _store_file(
        self, attachment: BotAttachment, conversation: BotConversation, user: UserContext, thread_id: str
    ) -> str:
        if attachment.name in self.refused:
            raise self.refused[attachment.name]
        assert (await self.services.threads.get(user.user_id, thread_id)) is not None
        self.threads_of_files.append(thread_id)
        self.stored.append(f"{user.user_id}/{attachment.name}")
        return attachment.name.partition(".")[0]


async def chat(model: Model | None = None, **settings: Any) -> Chat:
    """Return a bot for people of one organisation. The directory contains Anna, an engineer, and Ben."""
    outbox, turns = RecordingOutbox(), InMemoryBotTurnStore()
    directory = InMemoryDirectory({"anna": frozenset({"engineering"}), "ben": frozenset()})
    services = await corpus_services(
        model or Model(plan()),
        settings=fake_settings(**{"subagents_enabled": False, "bot_stream_seconds": 0.3, **settings}),
        directory=directory,
        bot_outbox=outbox,
        bot_turns=turns,
    )
    return Chat(services, outbox, turns, RecordingOrchestrations())


def first_step(message: BotMessage) -> ReplyStep:
    """Return the input of the orchestration that replies to a message."""
    return ReplyStep(reply_key=reply_key(message, OWNER_ID_KEY), folder=folder_of(message, OWNER_ID_KEY))
