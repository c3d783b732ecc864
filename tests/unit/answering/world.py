"""A small world: three documents with different readers, and a model that plans and answers by rule."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.access.models import UserContext
from shared.evidence.repairs import RepairedQuotations
from shared.platform.language_models.models import CallLimits, Prompt
from shared.retrieval.models import DocumentRecord
from shared.runs.plan import PlannedTodo, QuestionPlan
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_services

ANNA = UserContext(user_id="anna", groups=("engineering",))
BEN = UserContext(user_id="ben")
_LIMITS = CallLimits(timeout_s=1)

TEXTS = {
    "manual": ("The pump runs at 15 bar.", ("engineering",)),
    "report-2023": ("Revenue was 48 million euros.", ("*",)),
    "report-2024": ("Revenue was 53 million euros.", ("*",)),
}


def plan(**changes: Any) -> QuestionPlan:
    """A plan for a content question, changed as given."""
    values: dict[str, Any] = {
        "query_type": "CONTENT_SEARCH",
        "intent": "fact_lookup",
        "standalone_question": "At what pressure does the pump run?",
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
    """What the model says to each kind of prompt."""

    plan: Reply
    answer: Reply = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    repair: Reply = RepairedQuotations(quotations=())  # noqa: RUF009  # frozen

    def chat_model(self) -> ScriptedChatModel:
        replies = {"plan": lambda: self.plan, "answer": lambda: self.answer, "repair": lambda: self.repair}

        def answer(prompt: Prompt) -> Reply:
            return replies[prompt.name]()

        return ScriptedChatModel(answer=answer)


async def world(model: Model | None = None, **replacements: Any) -> Services:
    """Services over the three documents."""
    chat_model = (model or Model(plan())).chat_model()
    services = fake_services(**{"chat_model": chat_model, **replacements})
    await fill(services)
    return services


async def fill(services: Services) -> None:
    """Write the three documents into both indexes."""
    assert isinstance(services.documents_index, InMemorySearchIndex)
    for doc_id, (text, readers) in TEXTS.items():
        record = DocumentRecord(
            doc_id=doc_id,
            filename=f"{doc_id}.pdf",
            title=doc_id.replace("-", " "),
            document_type="manual" if doc_id == "manual" else "report",
            upload_date=datetime(2026, 1, 1, tzinfo=UTC),
            summary_brief=f"About {doc_id}.",
            status="ready",
            access_control_list=readers,
        )
        await services.documents_index.upload([record.model_dump(mode="json")])
        (vector,) = await services.embedder.embed([text], _LIMITS)
        block = {
            "block_id": f"{doc_id}-1",
            "doc_id": doc_id,
            "filename": f"{doc_id}.pdf",
            "block_type": "text",
            "page_number": 1,
            "content": text,
            "content_vector": list(vector),
            "access_control_list": list(readers),
        }
        await services.content_index.upload([block])
