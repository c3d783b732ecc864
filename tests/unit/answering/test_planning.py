"""Tests for the planning call: its prompt and the plan read from the reply."""

import json
from datetime import UTC, datetime

import pytest

from shared.answering.plan_reply import TYPES, PlanReply
from shared.answering.planning import documents_before, names_documents, plan_question
from shared.platform.language_models.chat_request import output_format
from shared.platform.language_models.models import CallLimits
from shared.runs.models import Conversation, ConversationTurn, RunRequest
from tests.fakes.models import ScriptedChatModel
from tests.world import ANNA, plan

LIMITS = CallLimits(timeout_s=1)
BEFORE = Conversation(
    summary="Pumps.",
    turns=(
        ConversationTurn(question="What is in it?", answer="Bolts.", doc_ids=("d1",), filenames=("a.pdf",)),
    ),
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
    prompt_text = model.prompts[0].user
    assert prompt_text.index("</conversation>") < prompt_text.index("<question>Who wrote it?</question>")
    assert '<turn role="assistant" documents="a.pdf">Bolts.</turn>' in prompt_text


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


PLAIN: dict[str, object] = {
    "kind": "fact",
    "language": "en",
    "question": None,
    "searches": [],
    "documents": [],
    "more": None,
}


async def test_a_plain_question_needs_a_short_plan() -> None:
    assert len(json.dumps(PLAIN)) < 100  # the search can't start before the model has written the whole plan
    planned = await plan_question(ScriptedChatModel(PlanReply.model_validate(PLAIN)), "How heavy?", LIMITS)
    assert planned == plan(standalone_question="How heavy?", search_queries=(), todo=())


@pytest.mark.parametrize("kind", TYPES)
async def test_every_kind_of_question_has_a_type_and_an_intent(kind: str) -> None:
    model = ScriptedChatModel(PlanReply.model_validate({**PLAIN, "kind": kind}))
    planned = await plan_question(model, "How heavy?", LIMITS)
    assert (planned.query_type, planned.intent) == TYPES[kind]  # type: ignore[index]


async def test_details_of_a_plan_are_read() -> None:
    more = {
        "reply": "",
        "filters": [],
        "every": "contracts",
        "needs_tables": True,
        "missing_subject": "",
        "todo": [],
    }
    reply = {
        **PLAIN,
        "question": " Which renew? ",
        "searches": ["renewal", " "],
        "more": {**more, "todo": []},
    }
    planned = await plan_question(
        ScriptedChatModel(PlanReply.model_validate({**reply, "more": more})), "And these?", LIMITS
    )
    assert (planned.standalone_question, planned.search_queries) == ("Which renew?", ("renewal",))
    assert (planned.every, planned.needs_tables) == ("contracts", True)


def test_a_strict_schema_requires_every_field() -> None:
    schema = output_format(PlanReply)["response_format"]["json_schema"]["schema"]
    objects = [schema, *(one for one in schema["$defs"].values() if one["type"] == "object")]
    assert len(objects) == 4
    for one in objects:
        assert one["required"] == list(one["properties"])
        assert one["additionalProperties"] is False
        assert not any("default" in field for field in one["properties"].values())
