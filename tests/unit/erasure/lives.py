"""A person who has used every feature, so that every kind of personal data exists. The person owns no
documents.

Works on fakes and on real services alike. What a person says holds their words, which nobody else says.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.access.idempotency import claim_key
from shared.access.limits import admit
from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.answering.agent_sessions import WaitingRun
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.answering.summary_runs import begin_summary
from shared.conversations.models import RememberTask
from shared.conversations.remembering import remember
from shared.platform.errors import ModelFixableError
from shared.platform.hashing import digest
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.names import WORK
from shared.quality.models import OpeningRecord
from shared.quality.recording import key_of, rate_run
from shared.retrieval.models import DocumentRecord
from shared.runs.models import ChatRequest, Clarification, FeedbackBody, RunRequest, SummaryOrder
from shared.runs.run_files import RunFiles
from shared.runs.run_store import owned_run
from shared.teams.models import BotConversation, BotMessage, BotSender, BotTurn
from shared.teams.parsing import conversation_key, reply_key
from shared.teams.store import folder_of, store_activity
from shared.tools.workspace import Workspace
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.world import add_record, plan

_FACT = "The pump runs at 15 bar."


@dataclass(frozen=True)
class Life:
    """A person with the ids of everything that they created."""

    user: UserContext
    words: str
    answered: RunRequest
    at_work: RunRequest
    ids: tuple[str, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts that identify data of the person, wherever it is stored."""
        return (self.user.user_id, self.words, *self.ids)


def model_of_lives() -> ScriptedChatModel:
    """Return a model that plans and answers every question in the same way. It fails for all other prompts,
    which fall back to rules.
    """

    def answer(prompt: Prompt) -> Reply:
        if prompt.name == "plan":
            return plan()
        if prompt.name == "answer":
            return f'It runs at 15 bar. <cite doc_id="manual" quote="{_FACT}"/>'
        return ModelFixableError("This model says nothing to that.")

    return ScriptedChatModel(answer=answer)


async def fill(services: Services) -> None:
    """Write a document that everybody may read into both indexes, but without files or a state."""
    record = DocumentRecord(
        doc_id="manual",
        filename="manual.pdf",
        title="manual",
        document_type="manual",
        upload_date=datetime(2026, 1, 1, tzinfo=UTC),
        summary_brief="About the pump.",
        status="ready",
        access_control_list=("*",),
    )
    await add_record(services, record)
    (vector,) = await services.embedder.embed([_FACT], CallLimits(timeout_s=10))
    block = {
        "block_id": "manual-1",
        "doc_id": "manual",
        "filename": "manual.pdf",
        "block_type": "text",
        "page_number": 1,
        "version": 1,
        "content": _FACT,
        "content_vector": list(vector),
        "access_control_list": ["*"],
    }
    await services.content_index.upload([block])


async def live(user_id: str, words: str, services: Services) -> Life:
    """Use every feature as a person, and return the ids of the created data."""
    user = UserContext(user_id=user_id, name=f"Name of {user_id}")
    first = await _ask(f"At what pressure does the pump run? {words}", user, services)
    second = await _ask(f"And why? {words}", user, services, first.thread_id)
    at_work = await begin_run(ChatRequest(question=f"How long? {words}"), user, services)
    task = RememberTask(owner_id=user_id, thread_id=first.thread_id, run_id=second.run_id)
    await remember(task, services)
    await _rate(first, words, user, services)
    order = SummaryOrder(doc_ids=("manual",), focus=words)
    summary = await begin_summary(order, user, services)
    await claim_key(
        "a key", user, services.idempotency, route="POST /chat", body="digest", resource_id=first.run_id
    )
    await admit(user, services.settings, services.user_limits)
    await Workspace(services.blobs, user).write("notes.md", words, "create")
    waiting = await _wait_in_a_program(words, user, services)
    ids = (first.run_id, second.run_id, at_work.run_id, first.thread_id, at_work.thread_id, waiting)
    key = await _chat(words, second, user, services)
    return Life(user, words, first, at_work, (*ids, summary.run_id, key))


async def _ask(
    question: str, user: UserContext, services: Services, thread_id: str | None = None
) -> RunRequest:
    request = await begin_run(ChatRequest(question=question, thread_id=thread_id), user, services)
    await run_to_end(request.run_id, services)
    return request


async def _rate(request: RunRequest, words: str, user: UserContext, services: Services) -> None:
    feedback = FeedbackBody(rating=2, comment=f"Not so good: {words}")
    await rate_run(request.run_id, feedback, user, services)
    record = await owned_run(request.run_id, user, services.runs)
    await services.quality.add(OpeningRecord(key=key_of(request.run_id), at=record.created_at, n=1))


async def _wait_in_a_program(words: str, user: UserContext, services: Services) -> str:
    """Store a waiting question of a program that uses the agents as a library. Only the work container
    contains it.
    """
    key = services.settings.identity.owner_id_key
    run_id = owned_id(user.user_id, key, digest("waiting", words))
    now = datetime.now(UTC)
    request = RunRequest(run_id=run_id, thread_id="session", user=user, question=words, created_at=now)
    await RunFiles(services.blobs, run_id).put_request(request)
    clarification = Clarification(question=words, options=(), expires_at=now + timedelta(days=1))
    waiting_run = WaitingRun(run_id=run_id, journal=(), results=(), ask_step=0, clarification=clarification)
    await services.blobs.write(WORK, f"sessions/{run_id}.json", waiting_run.model_dump_json().encode())
    return run_id


async def _chat(words: str, answered_request: RunRequest, user: UserContext, services: Services) -> str:
    """Store a chat message that waits for its answer, and a conversation with an answered question."""
    place = BotConversation(
        channel="msteams",
        service_url="https://smba.example/",
        conversation_id=f"a:{user.user_id}",
        bot_id="28:bot",
    )
    sender = BotSender(channel_user_id=f"29:{user.user_id}", object_id=user.user_id, name=user.name)
    message = BotMessage(activity_id="1", conversation=place, sender=sender, text=words)
    key = reply_key(message, services.settings.identity.owner_id_key)
    folder = folder_of(message, services.settings.identity.owner_id_key)
    await store_activity(message, key, folder, services.blobs)
    assert services.bot_turns is not None
    turn = BotTurn(conversation=place, owner_id=user.user_id, updated_at=datetime.now(UTC))
    await services.bot_turns.put(conversation_key(place), turn)
    await services.bot_turns.note_message(
        conversation_key(place), "m1", answered_request.run_id, user.user_id
    )
    return key
