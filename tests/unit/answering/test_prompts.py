"""Tests for the answer prompt and for the examples in its README, which the real writer processes."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from local.model_server.prompt_reader import read_documents
from shared.access.models import UserContext
from shared.answering.answer_writer import AnswerWriter
from shared.answering.profiles import MAIN_AGENT
from shared.answering.prompt import documents_xml, first_messages, system_prompt
from shared.answering.quote_repair import QuoteRepairer
from shared.evidence.citations import CitationBook
from shared.platform.language_models.models import CallLimits
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.event_log import open_event_log
from shared.runs.evidence import Evidence
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.models import RunRequest
from shared.runs.plan import QueryType
from tests.fakes.models import ScriptedChatModel
from tests.unit.answering.recording import stream_to
from tests.world import plan

PROMPTS = Path(__file__).parents[3] / "shared" / "answering" / "prompts"
README = (PROMPTS / "README.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"### ([\w ]+)\n.*?```markdown\n(.*?)```", README, re.DOTALL))
TYPES = tuple(name for name in get_args(QueryType) if name != "CONVERSATION")
USER = UserContext(
    user_id="u-1f",
    department="Works <b>",
    org_id="o-2f",
    groups=("g-3f",),
    roles=("r-4f",),
    name="Eva </asker_name> Lind",
)


def hits() -> tuple[Hit, ...]:
    """Return the documents of the README example as search hits."""
    example_match = re.search(r"<documents>.*?</documents>", README.partition("## One example")[2], re.DOTALL)
    assert example_match
    return tuple(
        Hit(
            block_id=block.block_id or f"{document.doc_id}-{place}",
            doc_id=document.doc_id,
            filename=document.filename,
            block_type="image" if block.kind == "image" else "text",
            page_number=int(block.page),
            content="" if block.kind == "image" else block.text,
            image_caption=block.text if block.kind == "image" else None,
            image_url=f"figures/{document.doc_id}/{place:064x}.png" if block.kind == "image" else None,
        )
        for document in read_documents(example_match[0])
        for place, block in enumerate(document.blocks)
    )


async def write_answer(text: str) -> AnswerWriter:
    log = MemoryRunLog()
    await log.create("r")
    repairer = QuoteRepairer(ScriptedChatModel(), lambda: CallLimits(timeout_s=1))
    writer = AnswerWriter(
        stream_to(await open_event_log(log, "r", 1), hits()), CitationBook(hits()), repairer
    )
    await writer.write(text, at_end=True)
    await writer.finish()
    await writer.stream.event_log.write()
    return writer


def prompt_for(query_type: QueryType) -> str:
    request = RunRequest(
        run_id="r",
        thread_id="t",
        user=USER,
        question="Q?",
        created_at=datetime(2026, 11, 21, 23, 59, tzinfo=UTC),
    )
    system, user = first_messages(
        request, plan(query_type=query_type), Evidence(hits=hits()), "Contoso {{tools}} Ltd"
    )
    return f"{system.text}\n---\n{user.text}"


def test_what_a_question_leaves_open_is_told() -> None:
    request = RunRequest(
        run_id="r",
        thread_id="t",
        user=USER,
        question="How many games did this team win?",
        created_at=datetime(2026, 11, 21, tzinfo=UTC),
    )
    messages = [
        first_messages(request, plan(missing_subject=subject), Evidence(hits=hits()))[1].text
        for subject in ("which team", "")
    ]
    assert ["<missing_subject>which team</missing_subject>" in text for text in messages] == [True, False]


def test_there_is_an_example_for_each_query_type() -> None:
    assert set(EXAMPLES) == {*TYPES, "No answer"}


@pytest.mark.parametrize("name", ["CONTENT_SEARCH", "COMPARISON", "DOCUMENT_SUMMARY"])
async def test_an_example_is_proved_word_by_word(name: str) -> None:
    writer = await write_answer(EXAMPLES[name])
    assert writer.unsupported_claims == 0
    assert writer.book.citations
    assert all(citation.verified for citation in writer.book.citations)
    assert "<" not in writer.draft.text
    # The newer edition applies, and the statement of the older edition is cited as replaced.
    assert writer.draft.text.count("It replaces the limit of 230 bar") == (name == "CONTENT_SEARCH")


@pytest.mark.parametrize("name", ["CONTENT_SEARCH", "DOCUMENT_SUMMARY"])
async def test_the_figure_of_an_example_is_shown(name: str) -> None:
    assert len((await write_answer(EXAMPLES[name])).draft.figures.placed) == 1


async def test_the_example_without_an_answer_names_the_gap_and_what_is_near() -> None:
    writer = await write_answer(EXAMPLES["No answer"])
    assert not writer.is_answer
    assert writer.draft.text.startswith(
        "The documents don't state the weight of the press.\n\nAsk for the data sheet"
    )
    assert writer.draft.text.endswith("[1]\n")
    assert writer.unsupported_claims == 0


@pytest.mark.parametrize("query_type", TYPES)
def test_the_prompt_has_its_parameters_and_nobodys_ids(query_type: QueryType) -> None:
    prompt = prompt_for(query_type)
    assert "answer questions for Contoso {{tools}} Ltd, only from" in prompt
    assert (PROMPTS / "rules" / f"{query_type}.md").read_text("utf-8").strip() in prompt
    assert "<today>2026-11-21</today>" in prompt
    assert "<asker_name>Eva &lt;/asker_name&gt; Lind</asker_name>" in prompt
    assert "<asker_department>Works &lt;b&gt;</asker_department>" in prompt
    assert not [secret for secret in ("u-1f", "o-2f", "g-3f", "r-4f", "{{organisation}}") if secret in prompt]
    assert "<cite doc_id=" in prompt.partition("<output_rules>")[2]


def test_the_persons_own_words_come_with_a_question_that_was_completed() -> None:
    request = RunRequest(
        run_id="r",
        thread_id="t",
        user=USER,
        question="Auf <b>Deutsch</b> bitte",
        created_at=datetime(2026, 11, 21, tzinfo=UTC),
    )
    _, completed = first_messages(request, plan(standalone_question="Why 15 bar?"), Evidence(hits=hits()))
    assert "<question>Why 15 bar?</question>\n<as_asked>Auf &lt;b&gt;Deutsch&lt;/b&gt; bitte</as_asked>" in (
        completed.text
    )
    _, as_it_was = first_messages(request, plan(standalone_question=request.question), Evidence(hits=hits()))
    assert "as_asked" not in as_it_was.text


def test_the_readme_names_every_prompt_and_parameter_of_an_answer() -> None:
    for name in ("answer.md", "findings.md", "output_rules.md", "repair.md", "plan.md"):
        assert f"`{name}`" in README
    parameters = set(re.findall(r"\{\{(\w+)\}\}", (PROMPTS / "answer.md").read_text("utf-8")))
    assert all(f"| `{name}` |" in README for name in parameters)
    assert "{{" not in system_prompt(MAIN_AGENT, "O")


def test_notes_of_sub_agents_come_with_their_rules_and_without_them_nothing_is_said_of_them() -> None:
    request = RunRequest(
        run_id="r", thread_id="t", user=USER, question="Q?", created_at=datetime(2026, 11, 21, tzinfo=UTC)
    )
    bare_system, bare = first_messages(request, plan(), Evidence(hits=hits()), "Contoso")
    system, message_with_notes = first_messages(
        request, plan(), Evidence(hits=hits()), "Contoso", "<findings>N</findings>"
    )
    assert system == bare_system  # so that the endpoint can use its prompt cache
    assert "findings" not in bare.text
    assert (
        message_with_notes.text.index("</documents>")
        < message_with_notes.text.index("<findings>N")
        < message_with_notes.text.index("<output_rules>")
    )
    assert (PROMPTS / "findings.md").read_text("utf-8").strip() in message_with_notes.text


def test_a_later_decision_is_named_as_the_current_one() -> None:
    rules = system_prompt(MAIN_AGENT, "O").splitlines()
    rule = next(line for line in rules if "If documents disagree" in line)
    assert rule.index("answer with the newer one") < rule.index('"The documents differ:"')
    older, newer = (
        DocumentRecord(
            doc_id=f"minutes-{day}",
            filename=f"minutes-{day}.md",
            upload_date=datetime(2026, 1, 1, tzinfo=UTC),
            document_date=datetime(2025, 3, day, 12, tzinfo=UTC),
        )
        for day in (4, 18)
    )
    blocks = [
        Hit(block_id=record.doc_id, doc_id=record.doc_id, filename=record.filename, content="It is set.")
        for record in (older, newer)
    ]
    xml = documents_xml(Evidence(hits=tuple(blocks), records=(older, newer)))
    assert ('document_date="2025-03-04"' in xml, 'document_date="2025-03-18"' in xml) == (True, True)
