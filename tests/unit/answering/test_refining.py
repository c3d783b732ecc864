"""Evidence that retrieval is not sure of: ordered and sorted out by the model, and never lost."""

from datetime import UTC, datetime

from shared.answering.inline import run_to_end
from shared.answering.retrieval import FEWEST_KEPT, refine
from shared.answering.runs import begin_run
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.retrieval.models import (
    DocumentRecord,
    Hit,
    PassageGrade,
    PassageGrades,
    PassageScore,
    PassageScores,
)
from shared.runs.models import ChatRequest
from shared.runs.working_memory import Evidence
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_settings
from tests.unit.answering.world import ANNA, Model, plan, world


def limits() -> CallLimits:
    return CallLimits(timeout_s=1)


HITS = tuple(
    Hit(block_id=f"b{number}", doc_id=f"d{number}", filename="f", content="c", score=0.5)
    for number in range(1, 7)
)
RECORDS = tuple(
    DocumentRecord(doc_id=hit.doc_id, filename="f", upload_date=datetime(2026, 1, 1, tzinfo=UTC))
    for hit in HITS
)
EVIDENCE = Evidence(hits=HITS, records=RECORDS)


def scores(*values: int) -> PassageScores:
    numbered = enumerate(values, start=1)
    return PassageScores(scores=tuple(PassageScore(number=number, score=score) for number, score in numbered))


def grades(*values: bool) -> PassageGrades:
    numbered = enumerate(values, start=1)
    return PassageGrades(
        grades=tuple(PassageGrade(number=number, relevant=good) for number, good in numbered)
    )


async def test_the_best_comes_first_and_what_does_not_help_is_left_out() -> None:
    model = ScriptedChatModel(scores(0, 1, 2, 3, 4, 9), grades(True, True, False, True, False, False))
    refined = await refine("q", EVIDENCE, model, limits)
    assert [hit.block_id for hit in refined.hits] == ["b6", "b5", "b4", "b3"]
    assert {record.doc_id for record in refined.records} == {"d6", "d5", "d4", "d3"}


async def test_some_are_kept_whatever_the_model_says() -> None:
    refined = await refine("q", EVIDENCE, ScriptedChatModel(scores(*[0] * 6), grades(*[False] * 6)), limits)
    assert len(refined.hits) == FEWEST_KEPT


async def test_a_model_that_is_down_leaves_the_evidence_as_it_was() -> None:
    down = [DependencyError("The model is out of reach.") for _ in range(2)]
    assert await refine("q", EVIDENCE, ScriptedChatModel(*down), limits) == EVIDENCE


async def test_a_run_refines_what_it_is_not_sure_of_and_says_so() -> None:
    said: dict[str, Reply] = {
        "plan": plan(),
        "rerank": scores(1, 9, 2),
        "grade": grades(True, True, True),
        "answer": Model(plan()).answer,
    }

    def answer(prompt: Prompt) -> Reply:
        return said[prompt.name]

    model = ScriptedChatModel(answer=answer)
    services = await world(
        chat_model=model, settings=fake_settings(refine_evidence=True, subagents_enabled=False)
    )
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    await run_to_end(request.run_id, services)
    assert [prompt.name for prompt in model.prompts] == ["plan", "rerank", "grade", "answer"]
    assert isinstance(services.run_log, InMemoryRunLog)
    events = services.run_log.events(request.run_id)
    tools = [event.data["tool"] for event in events if event.name == "TOOL_RESULT"]
    assert tools == ["rag_semantic_search", "rerank"]
    assert events[-1].name == "COMPLETE"
