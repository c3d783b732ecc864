"""A sub-agent with a stored task, over two manuals that Anna may read and one that she may not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.access.models import UserContext
from shared.answering.delegation_tasks import starts_of
from shared.answering.inline import run_child
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyOutput
from shared.answering.profiles import BackedClaim, Claim, DocReaderReport, EvidenceReport, Proof
from shared.answering.subagent_models import (
    Delegation,
    SubagentEnd,
    SubagentStart,
    SubagentState,
    SubagentTask,
    TakeSubagentTurn,
    TurnResult,
)
from shared.answering.subagent_step import take_subagent_turn
from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.runs.events import RunEvent
from shared.runs.models import ProfileName, RunRequest, SubagentTool
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.services import fake_services
from tests.unit.subagents.lines import keep_delegation, stored_delegation, stored_state
from tests.world import ANNA, add_document, events_of

RUN = "run-1"
STEP = 4
SECRET = "The secret valve opens at 99 bar."
PRESSURE = {"old": "The maximum pressure is 230 bar.", "new": "The maximum pressure is 250 bar."}
FILTER = "The filter is replaced every 500 hours."
READERS = {"old": ("engineering",), "new": ("engineering",), "closed": ("board",)}
TOOLS: tuple[SubagentTool, ...] = ("retrieve_documents", "query_metadata")


def texts_of(doc_id: str, pages: int) -> list[str]:
    """Return the text of each page of a document."""
    if doc_id == "closed":
        return [SECRET]
    filling = [f"Chapter {page} of the {doc_id} press manual is about part {page}." for page in range(pages)]
    return [PRESSURE[doc_id], FILTER, *filling]


@dataclass
class StoredChild:
    """A sub-agent with its task and services."""

    services: Services
    task: SubagentTask

    @property
    def start(self) -> SubagentStart:
        (start,) = starts_of([self.task])
        return start

    def turn(
        self, number: int = 1, *, attempt: int = 0, closing: bool = False, **changes: Any
    ) -> TakeSubagentTurn:
        values: dict[str, Any] = {
            "turn": number,
            "attempt": attempt,
            "profile": self.task.profile,
            "closing": closing,
        }
        return TakeSubagentTurn(**{**values, **changes})

    async def take(self, *args: Any, **kwargs: Any) -> TurnResult:
        return await take_subagent_turn(self.task.place, self.turn(*args, **kwargs), self.services)

    async def run(self) -> SubagentEnd:
        return await run_child(self.start, self.services)

    async def state(self) -> SubagentState:
        state = await stored_state(self.services, RUN, STEP, self.task.index)
        assert state is not None
        return state

    async def opened(self, task: SubagentTask) -> list[str]:
        """Replace the stored task by `task`, run its first turn, and return the ids of its initial
        passages.
        """
        delegation = await stored_delegation(self.services, RUN, STEP)
        assert delegation is not None
        await self.services.run_log.delete(RUN)
        await keep_delegation(self.services, RUN, delegation.model_copy(update={"tasks": (task,)}))
        await self.take(closing=True)
        return [hit.block_id for hit in (await self.state()).hits]

    def events(self, name: str = "") -> list[RunEvent]:
        return [event for event in events_of(self.services, RUN) if name in ("", event.name)]

    def phases(self) -> list[str]:
        return [event.data["phase"] for event in self.events("STATUS")]


async def stored_child(
    chat_model: Any,
    profile: ProfileName = "evidence_builder",
    *,
    doc_ids: Sequence[str] = (),
    budget: dict[str, Any] | None = None,
    seconds: float = 60.0,
    tools: Sequence[SubagentTool] = TOOLS,
    pages: int = 30,
    request: dict[str, Any] | None = None,
    question: str = "What is the maximum pressure of the press?",
    asker: UserContext | None = None,
    **services: Any,
) -> StoredChild:
    """Store a task for Anna as its parent would, and return it with its services.

    Args:
        pages: of filling in each manual.
        asker: Anna as of now, if the run has waited for her.
    """
    world = fake_services(chat_model=chat_model, **services)
    await fill(world, pages)
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "run_id": RUN,
        "thread_id": "thread-1",
        "user": ANNA,
        "question": "And of the press?",
        "created_at": now,
    }
    await RunFiles(world.blobs, RUN).put_request(RunRequest(**{**values, **(request or {})}))
    await world.run_log.create(RUN)
    allocation: dict[str, Any] = {
        "max_child_latency_ms": int(seconds * 1000),
        "max_child_tokens": 12_000,
        "max_child_cost_usd": 0.03,
        "max_child_turns": 3,
    }
    task = SubagentTask(
        child_id=f"{RUN}:s{STEP:03d}c0",
        run_id=RUN,
        step=STEP,
        index=0,
        profile=profile,
        question=question,
        doc_ids=tuple(doc_ids),
        tools=tuple(tools),
        budget=BudgetAllocation(**{**allocation, **(budget or {})}),
        deadline=now + timedelta(seconds=seconds),
    )
    decided = DelegationPolicyOutput(decision="delegate", reason_codes=(), selected_profile=profile)
    delegation = Delegation(
        step=STEP, decided=decided, tasks=(task,), decided_at=now, asker=asker, language="en"
    )
    await keep_delegation(world, RUN, delegation)
    return StoredChild(world, task)


async def second_child(first: StoredChild, chat_model: Any) -> StoredChild:
    """Add a second child with its own model to the same step, and return it."""
    task = first.task.model_copy(update={"child_id": f"{RUN}:s{STEP:03d}c1", "index": 1})
    delegation = await stored_delegation(first.services, RUN, STEP)
    assert delegation is not None
    await first.services.run_log.delete(RUN)
    both = delegation.model_copy(update={"tasks": (first.task, task)})
    await keep_delegation(first.services, RUN, both)
    return StoredChild(replace(first.services, chat_model=chat_model), task)


async def fill(services: Services, pages: int) -> None:
    """Write the documents into both indexes."""
    for doc_id, readers in READERS.items():
        await add_document(
            services,
            doc_id,
            *texts_of(doc_id, pages),
            readers=readers,
            title=f"Press manual, {doc_id}",
            document_type="manual",
            project_id="presses",
            summary_brief=f"About the {doc_id} press.",
        )


def calls(*requests: tuple[str, str], text: str = "") -> ModelTurn:
    """Return a turn of the model that calls tools, each given as (name, arguments as JSON)."""
    return ModelTurn(
        text=text,
        tool_calls=tuple(
            ToolCall(call_id=f"call-{place}", name=name, arguments=arguments)
            for place, (name, arguments) in enumerate(requests)
        ),
    )


READY = ModelTurn(text="READY")


def proof(doc_id: str, quote: str | None = None) -> Proof:
    return Proof(doc_id=doc_id, quote=quote or PRESSURE[doc_id])


def evidence(*claims: tuple[str, tuple[Proof, ...]]) -> EvidenceReport:
    return EvidenceReport(
        claims=tuple(BackedClaim(text=text, confidence=0.9, proofs=proofs) for text, proofs in claims)
    )


GOOD = evidence(("The limit is 250 bar.", (proof("new"),)))
READ = DocReaderReport(
    sections=(), claims=(Claim(text="The limit is 230 bar.", proofs=(proof("old"),)),), uncertainty=()
)
SEARCH = calls(("rag_semantic_search", '{"query": "filter replaced"}'))
THREE = evidence(
    ("The limit is 250 bar.", (proof("new"),)),
    ("It was 230 bar.", (proof("old"),)),
    ("The filter lasts 500 hours.", (proof("new", FILTER),)),
)
