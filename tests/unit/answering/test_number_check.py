"""Tests for the numbers that readers see in an answer calculated from tables."""

from datetime import date

import pytest

from shared.answering.answer_writer import AnswerWriter
from shared.answering.number_check import NumberCheck
from shared.answering.quote_repair import QuoteRepairer
from shared.answering.shown_answer import shown_text
from shared.evidence.citations import CitationBook
from shared.evidence.messages import ENGLISH
from shared.evidence.models import QueriedTable, TableResult
from shared.platform.language_models.models import CallLimits
from shared.retrieval.models import Hit
from shared.runs.event_log import open_event_log
from shared.runs.events import CitationEvent, TokenEvent, events_of
from shared.runs.memory_run_log import MemoryRunLog
from tests.fakes.models import ScriptedChatModel
from tests.unit.answering.recording import stream_to

LEFT_OUT = ENGLISH.withheld
MARK = "(Source: sales.csv, computed)[1]"
HIT = Hit(block_id="b1", doc_id="d1", filename="m.pdf", page_number=3, content="The pump runs at 15 bar.")
SALES = TableResult(
    result_id="q1",
    sql="SELECT …",
    sql_in_words="The sum of revenue.",
    columns=("region", "total"),
    rows=(("North", 1200), ("South", 900)),
    row_count=2,
    tables=(QueriedTable(table_id="d.1", doc_id="d", filename="sales.csv", content_hash="h"),),
)


OTHER = SALES.model_copy(
    update={"result_id": "q2", "sql": "SELECT 2", "rows": (("C-1007", 14880),), "row_count": 1}
)


async def write(text: str, size: int = 7, *, is_computed: bool = True) -> tuple[AnswerWriter, str]:
    """Write an answer and return its writer and the streamed text."""

    async def computed(_: TableResult) -> bool:
        return is_computed

    log = MemoryRunLog()
    await log.create("r")
    writer = AnswerWriter(
        stream_to(await open_event_log(log, "r", 3), (HIT,)),
        CitationBook((HIT,)),
        QuoteRepairer(ScriptedChatModel(), lambda: None),
        numbers=NumberCheck(
            [SALES, OTHER],
            computed,
            question="What are the top 2 of 5?",
            earlier_answers=["Contracts for EUR 73,980 end:\n\n- Apia\n- Bonn\n- Cork\n- Dover"],
            passages=[HIT.content],
            language="en",
            today=date(2026, 5, 4),
        ),
    )
    for end in range(size, len(text), size):
        await writer.write(text[:end])
    await writer.write(text, at_end=True)
    await writer.finish()
    await writer.stream.event_log.write()
    events = events_of(await log.read("r"))
    assert shown_text(events) == writer.draft.text
    citations = [event.citation for event in events if isinstance(event, CitationEvent)]
    assert citations == writer.book.citations
    return writer, "".join(event.text for event in events if isinstance(event, TokenEvent))


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_right_numbers_are_shown_with_what_they_are_from(size: int) -> None:
    writer, text = await write(
        'The North made 1,200 <cite result="q1"/>, the South 900 <cite result="q1"/>.', size
    )
    assert text == f"The North made 1,200 {MARK}, the South 900 {MARK}."
    (cited,) = writer.book.citations
    assert (cited.kind, cited.rows, cited.verified, cited.table_id) == ("table", SALES.rows, False, "d.1")
    assert cited.quote == "| region | total |\n| North | 1200 |\n| South | 900 |"
    assert writer.unsupported_claims == 0


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_sentence_with_a_wrong_number_is_never_shown(size: int) -> None:
    writer, text = await write(
        'Both grew. The North made 1,300. It leads. <cite result="q1"/>\n\nThe South: 900.', size
    )
    assert "1,300" not in text
    assert text == f"Both grew. {LEFT_OUT} It leads. {MARK}\n\nThe South: 900."
    assert writer.unsupported_claims == 1


async def test_a_number_that_cites_nothing_must_be_known() -> None:
    _, text = await write('- 1,200 <cite result="q1"/>\n- Together 2,100.\n- The pump runs at 15 bar.\n')
    assert text == f"- 1,200 {MARK}\n- {LEFT_OUT}\n- The pump runs at 15 bar.\n"


async def test_a_ranking_may_count_its_lines() -> None:
    table = "| # | Region | Total |\n|---|---|---|\n| 1 | North | 1,200 |\n| 2 | South | 900 |\n"
    _, text = await write(f'{table}\n<cite result="q1"/>')
    assert text == f"{table}\n{MARK}"


async def test_what_gives_other_rows_or_may_not_be_read_any_more_is_withheld() -> None:
    writer, text = await write('The North leads with 1,200 <cite result="q1"/>.', is_computed=False)
    assert text == f"{LEFT_OUT}."
    assert not writer.book.citations


async def test_a_result_that_there_is_not_proves_nothing() -> None:
    writer, text = await write('The North made 1,200 <cite result="q9"/>.')
    assert (text, writer.book.citations) == (f"{LEFT_OUT}.", [])


async def test_a_quotation_proves_its_own_numbers() -> None:
    _, text = await write('At 15 bar. <cite doc_id="d1" quote="The pump runs at 15 bar."/>')
    assert text == "At 15 bar. (Source: m.pdf, S. 3)[1]"


async def test_text_in_other_answers_is_not_held_back() -> None:
    log = MemoryRunLog()
    await log.create("r")
    book, repairer = CitationBook((HIT,)), QuoteRepairer(ScriptedChatModel(), lambda: CallLimits(timeout_s=1))
    writer = AnswerWriter(stream_to(await open_event_log(log, "r", 3), (HIT,)), book, repairer)
    await writer.write("It is 5 or ")
    assert writer.draft.text == "It is 5 or "


async def test_a_sentence_may_name_todays_date() -> None:
    sentence = "As of 4 May 2026 the North leads"
    _, text = await write(f'{sentence} <cite result="q1"/>.\n\n{sentence}.')
    assert text == f"{sentence} {MARK}.\n\n{sentence}."


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_citations_separated_by_a_space_prove_a_sentence_together(size: int) -> None:
    cites = '<cite result="q1"/> <cite result="q2"/>'
    _, text = await write(f"The North made 1,200 and EUR 14,880 for C-1007. {cites} It leads.", size)
    marks = f"{MARK} (Source: sales.csv, computed)[2]"
    assert text == f"The North made 1,200 and EUR 14,880 for C-1007. {marks} It leads."


async def test_numbers_of_earlier_answers_may_be_repeated() -> None:
    sentence = "Two of the four contracts, for EUR 73,980, are in the North."
    _, text = await write(
        f'{sentence} <cite result="q1"/>\n\n{sentence}\n\nOf five, 73,981. <cite result="q1"/>'
    )
    assert text == f"{sentence} {MARK}\n\n{sentence}\n\n{LEFT_OUT} {MARK}"


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_number_words_may_count_the_items_of_the_sentence(size: int) -> None:
    right = "All three grew: North, South and C-1007."
    wrong = "All three grew: North and South."
    _, text = await write(f'{right} {wrong} <cite result="q1"/> <cite result="q2"/>', size)
    marks = f"{MARK} (Source: sales.csv, computed)[2]"
    assert text == f"{right} {LEFT_OUT} {marks}"
