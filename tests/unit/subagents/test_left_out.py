"""An answer over several documents cites each of them that sub-agents proved anything of."""

import pytest

from shared.answering.answer_writer import AnswerWriter, QuoteRepairer
from shared.evidence.citations import CitationBook
from shared.evidence.messages import ENGLISH, GERMAN, Messages
from shared.platform.language_models.models import CallLimits
from shared.retrieval.models import Hit
from shared.runs.event_log import open_event_log
from shared.runs.memory_run_log import MemoryRunLog
from shared.subagents.models import FoundProof
from shared.subagents.results import proofs_of_each
from tests.fakes.models import ScriptedChatModel
from tests.unit.subagents.children import claim, state
from tests.unit.subagents.delegation_requests import hit

A = hit("a", content="Revenue was 48 million euros.")
B = hit("b", content="| year | revenue |\n|---|---|\n| 2024 | 53 million |")
OF_A = FoundProof(quote="Revenue was 48 million euros.", doc_id="a", block_id="a-0")
OF_B = FoundProof(quote="| 2024 | 53 million |", doc_id="b", block_id="b-0")
ON_A = 'It was 48 million. <cite doc_id="a" quote="Revenue was 48 million euros."/>'
ON_BOTH = f'{ON_A} Then 53. <cite doc_id="b" quote="| 2024 | 53 million |"/>'


async def written(
    text: str, proofs: tuple[FoundProof, ...], words: Messages = ENGLISH, hits: tuple[Hit, ...] = (A, B)
) -> tuple[AnswerWriter, list[str]]:
    log = MemoryRunLog()
    await log.create("r")
    limits = CallLimits(timeout_s=1)
    writer = AnswerWriter(
        event_log=await open_event_log(log, "r", 1),
        book=CitationBook(hits=hits),
        repairer=QuoteRepairer(ScriptedChatModel(), "", lambda: limits, question="Q?"),
        words=words,
        proofs=proofs,
    )
    await writer.feed(text)
    await writer.finish(["*(Note: N)*"])
    return writer, list((await log.read("r")).lines)


async def test_a_document_that_the_answer_leaves_out_is_quoted_at_its_end() -> None:
    writer, lines = await written(ON_A, (OF_A, OF_B))
    assert [citation.doc_id for citation in writer.book.citations] == ["a", "b"]
    added = f"\n\n{ENGLISH.also} “2024 · 53 million” (Source: b.pdf)[2]\n\n*(Note: N)*"
    assert writer.text.endswith(added)
    second = next(number for number, line in enumerate(lines) if '"n":2' in line)
    assert not any("[2]" in line for line in lines[:second])
    assert "[2]" in "".join(lines[second:])


async def test_what_is_cited_already_is_not_said_again() -> None:
    writer, _ = await written(ON_BOTH, (OF_A, OF_B))
    assert ENGLISH.also not in writer.text
    assert len(writer.book.citations) == 2


@pytest.mark.parametrize(
    "text", ['<abstain missing="x" next_step="y"/>', "Something that nothing proves.", ""]
)
async def test_where_nothing_is_answered_nothing_is_added(text: str) -> None:
    writer, _ = await written(text, (OF_A, OF_B))
    assert ENGLISH.also not in writer.text
    assert writer.book.citations == []


async def test_an_answer_to_a_part_is_completed_too() -> None:
    partial = f'{ON_A} <abstain missing="the outlook" next_step="Ask."/>'
    writer, _ = await written(partial, (OF_B,), GERMAN)
    assert GERMAN.also in writer.text


async def test_a_proof_that_stands_elsewhere_or_nowhere_is_not_given_for_the_document() -> None:
    elsewhere = OF_A.model_copy(update={"doc_id": "b"})
    writer, _ = await written(ON_A, (elsewhere, OF_B), hits=(A,))
    assert [citation.doc_id for citation in writer.book.citations] == ["a"]


def test_of_each_document_of_a_question_about_several_there_is_one_short_proof() -> None:
    long = hit("a", 1, content="x" * 500)
    brought = state([A, B, long], [claim("1", long), claim("2", B), claim("3", A), claim("4", B)])
    found = proofs_of_each([brought], ("a", "b", "c"))
    assert [(proof.doc_id, proof.quote) for proof in found] == [("a", A.content), ("b", B.content)]
    assert proofs_of_each([brought], ("a",)) == ()
