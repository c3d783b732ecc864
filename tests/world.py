"""The app in memory: its real services over ports in this process, and a chat model that follows a script.

    world = World()                                        # no documents yet
    world = World(Model(plan(), answer="15 bar."))         # another model
    world = World(settings=fake_settings(max_retrieval_attempts=1))
    world = World(web_search=FoundPages())                 # any part of `Services`
    world = World(engine=True)                             # the local search engine ranks and checks rows

    await world.add("manual", "The pump runs at 15 bar.", readers=("engineering",))
    view, events = await world.ask("At what pressure?", BEN)

Only the ports are replaced: search, tables, blobs, queues, models and the directory. Everything above them is
the code of the app. Each replacement passes the contract tests of its port (tests/contract/clients), as do
the local search server and Azurite. By default, search uses the simple index of `tests.fakes.search_index`:
creating two indexes of the engine with three documents takes 50 ms of CPU time, two simple indexes 0.5 ms,
and about a thousand tests create them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.access.models import UserContext
from shared.answering.inline import RunChildren, run_to_end
from shared.answering.plan_reply import TYPES
from shared.answering.runs import begin_run, view_run
from shared.answering.services import AnsweringServices
from shared.documents.state import DocumentState, Rights
from shared.evidence.repairs import RepairedQuotations
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.retrieval.schema import content_index, documents_index
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.events import RunEvent
from shared.runs.models import ChatRequest, RunView
from shared.runs.plan import PlannedTodo, QuestionPlan
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.local_engine import LocalSearchIndex
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_services

ANNA = UserContext(user_id="anna", groups=("engineering",))
BEN = UserContext(user_id="ben")
QUESTION = "At what pressure does the pump run?"
UPLOADED = datetime(2026, 1, 1, tzinfo=UTC)
_LIMITS = CallLimits(timeout_s=1)

TEXTS = {
    "manual": ("The pump runs at 15 bar.", ("engineering",)),
    "report-2023": ("Revenue was 48 million euros.", ("*",)),
    "report-2024": ("Revenue was 53 million euros.", ("*",)),
}


def plan(**changes: Any) -> QuestionPlan:
    """Return a plan for `QUESTION` with some fields changed. By default, the intent matches the query
    type.
    """
    query_type = changes.get("query_type", "CONTENT_SEARCH")
    values: dict[str, Any] = {
        "query_type": query_type,
        "intent": next(intent for one, intent in TYPES.values() if one == query_type),
        "standalone_question": QUESTION,
        "reply": "",
        "search_queries": ("pump pressure",),
        "language": "en",
        "filters": (),
        "document_references": (),
        "todo": (
            PlannedTodo(description="Known", acceptance_criteria="Cited", dependencies=()),
            PlannedTodo(description="Checked", acceptance_criteria="Cited", dependencies=()),
        ),
    }
    return QuestionPlan.model_validate({**values, **changes})


@dataclass
class Model:
    """Scripted replies to the three prompts of a plain question."""

    plan: Reply
    answer: Reply = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    repair: Reply = RepairedQuotations(quotations=())  # noqa: RUF009  # frozen

    def chat_model(self) -> ScriptedChatModel:
        replies = {"plan": lambda: self.plan, "answer": lambda: self.answer, "repair": lambda: self.repair}

        def answer(prompt: Prompt) -> Reply:
            return replies[prompt.name]()

        return ScriptedChatModel(answer=answer)


class World:
    """The app's services in memory, with helpers for tests.

    Args:
        model: the chat model, by default a model that plans and answers `QUESTION`.
        engine: search with the local engine instead of the simple index.
        parts: fields of `Services` to replace.
    """

    def __init__(self, model: Model | ChatModel | None = None, *, engine: bool = False, **parts: Any) -> None:
        chat_model = model or Model(plan())
        if isinstance(chat_model, Model):
            chat_model = chat_model.chat_model()
        engines = _engines() if engine else {}
        self.services: Services = fake_services(**{"chat_model": chat_model, **engines, **parts})

    async def add(self, doc_id: str, *texts: str, readers: Sequence[str] = ("*",), **record: Any) -> None:
        """Add a document with a page and a block for each text.

        Args:
            record: fields of `DocumentRecord`. Fields that blocks have too are also set in the blocks.
        """
        await add_document(self.services, doc_id, *texts, readers=readers, **record)

    async def add_corpus(self) -> None:
        """Add the manual, which only engineers may read, and two public reports."""
        await add_corpus(self.services)

    async def ask(
        self, question: str = QUESTION, user: UserContext = ANNA, **body: Any
    ) -> tuple[RunView, list[RunEvent]]:
        """Ask a question and run it to its end."""
        return await ask(self.services, question, user, **body)

    def documents_of(self, user_id: str) -> DocumentSearch:
        """Return the documents that a person may read, as tools access them."""
        services = self.services
        user = UserContext(user_id=user_id)
        return DocumentSearch(SecuredIndex(services.documents_index, user, services.documents))


async def corpus_services(model: Model | None = None, **parts: Any) -> Services:
    """Return services that contain the documents of `World.add_corpus`."""
    world = World(model, **parts)
    await world.add_corpus()
    return world.services


async def add_corpus(services: Services) -> None:
    """Add the three documents of `TEXTS`."""
    for doc_id, (text, readers) in TEXTS.items():
        await add_document(
            services,
            doc_id,
            text,
            readers=readers,
            title=doc_id.replace("-", " "),
            document_type="manual" if doc_id == "manual" else "report",
        )


async def add_document(
    services: Services, doc_id: str, *texts: str, readers: Sequence[str] = ("*",), **record: Any
) -> None:
    """Store a document's row, and write it to both indexes with a page and a block for each text."""
    values: dict[str, Any] = {
        "doc_id": doc_id,
        "filename": f"{doc_id}.pdf",
        "upload_date": UPLOADED,
        "summary_brief": f"About {doc_id}.",
        "status": "ready",
        "version": 0,  # the version of blocks that tests write without a version
        "access_control_list": tuple(readers),
    }
    document = DocumentRecord(**{**values, **record})
    await add_record(services, document, version=document.version)
    if not texts:
        return
    vectors = await services.embedder.embed(list(texts), _LIMITS)
    blocks = [
        {
            "block_id": f"{doc_id}-{number}",
            "doc_id": doc_id,
            "project_id": document.project_id,
            "filename": document.filename,
            "block_type": "text",
            "page_number": number,
            "ordinal": number - 1,
            "content": text,
            "content_vector": list(vector),
            "access_control_list": list(readers),
            "version": document.version,
        }
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True), start=1)
    ]
    await services.content_index.upload(blocks)


async def add_record(services: Services, document: DocumentRecord, *, version: int = 0) -> None:
    """Store a document's row, and write its record to the index, without blocks."""
    await add_row(services, document, version=version)
    await services.documents_index.upload([document.model_dump(mode="json")])


async def add_row(services: Services, document: DocumentRecord, *, version: int = 0) -> None:
    """Store or replace the row of a document, which makes the document readable for its readers."""
    state = state_of_record(document).model_copy(update={"version": version})
    stored = await services.documents.get(document.doc_id)
    if stored is None:
        await services.documents.create(state)
    else:
        await services.documents.replace(state.model_copy(update={"revision": stored.revision}))


def state_of_record(document: DocumentRecord) -> DocumentState:
    """Return the state of a document as if it had been ingested with this record."""
    rights = Rights(
        acl=document.access_control_list, owner_id=document.owner_id, project_id=document.project_id
    )
    return DocumentState(
        doc_id=document.doc_id,
        blob_name=document.filename,
        filename=document.filename,
        status="ready",
        rights=rights,
        wanted_rights=rights,
        blob_etag="1",
        content_hash=document.content_hash or f"hash of {document.doc_id}",
        upload_date=document.upload_date,
        updated_at=document.upload_date,
    )


async def remove_row(services: Services, doc_id: str) -> None:
    """Delete a document's row, which makes the document unreadable. Its contents stay in both indexes."""
    state = await services.documents.get(doc_id)
    assert state is not None
    await services.documents.delete(state)


async def ask(
    services: Services,
    question: str = QUESTION,
    user: UserContext = ANNA,
    *,
    children: RunChildren | None = None,
    **body: Any,
) -> tuple[RunView, list[RunEvent]]:
    """Ask a question, run it to its end, and return the run with its events.

    Args:
        children: runs sub-agents; by default, in this process.
        body: further fields of `ChatRequest`.
    """
    request = await begin_run(ChatRequest.model_validate({"question": question, **body}), user, services)
    await run_to_end(request.run_id, services, children=children)
    view = await view_run(await owned_run(request.run_id, user, services.runs), services, user)
    return view, events_of(services, request.run_id)


def events_of(services: AnsweringServices, run_id: str) -> list[RunEvent]:
    """Return the public events of a run."""
    assert isinstance(services.run_log, InMemoryRunLog)
    return services.run_log.events(run_id)


def _engines() -> dict[str, LocalSearchIndex]:
    return {
        "content_index": LocalSearchIndex(content_index("content", 64)),
        "documents_index": LocalSearchIndex(documents_index("documents")),
    }
