"""The planning call: what the model is given, and what is made of its answer."""

from datetime import UTC, datetime

import pytest

from shared.answering.planning import documents_before, names_documents, plan_question
from shared.platform.language_models.models import CallLimits
from shared.runs.models import Conversation, RunRequest, Turn
from tests.fakes.models import ScriptedChatModel
from tests.world import ANNA, plan

LIMITS = CallLimits(timeout_s=1)
BEFORE = Conversation(
    summary="Pumps.",
    turns=(Turn(question="What is in it?", answer="Bolts.", doc_ids=("d1",), filenames=("a.pdf",)),),
)


def request(question: str, conversation: Conversation = BEFORE) -> RunRequest:
    return RunRequest(
        run_id="r",
        thread_id="t",
        user=ANNA,
        question=question,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        conversation=conversation,
    )


async def test_the_conversation_is_given_as_data_before_the_question() -> None:
    model = ScriptedChatModel(plan())
    await plan_question(model, "Who wrote it?", LIMITS, BEFORE)
    given = model.prompts[0].user
    assert given.index("</conversation>") < given.index("<question>Who wrote it?</question>")
    assert '<turn role="assistant" documents="a.pdf">Bolts.</turn>' in given


async def test_without_a_conversation_the_prompt_is_the_question_alone() -> None:
    model = ScriptedChatModel(plan())
    await plan_question(model, "Who?", LIMITS)
    assert model.prompts[0].user == "<question>Who?</question>"


@pytest.mark.parametrize(
    ("question", "references", "query_type", "names"),
    [
        ("Who wrote it?", (), "METADATA_SEARCH", True),
        ("How heavy is it?", (), "CONTENT_SEARCH", False),
        ("How heavy is it?", ("manual",), "CONTENT_SEARCH", True),
        ("Which manuals are there?", ("manual",), "LISTING", False),
    ],
)
def test_documents_are_looked_up_when_they_are_named_or_pointed_to(
    question: str, references: tuple[str, ...], query_type: str, names: bool
) -> None:
    planned = plan(document_references=references, query_type=query_type)
    assert names_documents(request(question), planned) is names


def test_a_name_in_the_question_counts_more_than_what_was_cited_before() -> None:
    assert documents_before(request("Who wrote it?"), plan()) == ("d1",)
    assert documents_before(request("Who wrote it?"), plan(document_references=("b.pdf",))) == ()
    assert documents_before(request("Who wrote it?", Conversation()), plan()) == ()
