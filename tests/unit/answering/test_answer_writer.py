"""Tests for the answer writer, which turns model output into the text that readers see."""

import json
import re
from collections.abc import AsyncGenerator

import pytest

from shared.answering import answer_stream
from shared.answering.answer_writer import AnswerWriter
from shared.answering.models import Gap
from shared.answering.quote_repair import QuoteRepairer
from shared.answering.statements import read_gaps
from shared.evidence.citations import CitationBook
from shared.evidence.messages import ENGLISH
from shared.evidence.repairs import RepairedQuotation, RepairedQuotations
from shared.platform.errors import ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt, StructuredOutput
from shared.retrieval.models import Hit
from shared.runs.event_log import open_event_log
from shared.runs.memory_run_log import MemoryRunLog
from tests.fakes.models import NoConversations
from tests.unit.answering.pictures import picture
from tests.unit.answering.recording import stream_to

UNSUPPORTED = ENGLISH.unsupported
NOT_PROVED = ENGLISH.unproved.format("[1]")
HIT = Hit(block_id="b1", doc_id="d1", filename="m.pdf", page_number=3, content="The pump runs at 15 bar.")


class RepairingModel(NoConversations):
    """A model that answers every repair with one quotation per claim, or with invalid output for ""."""

    def __init__(self, quote: str | None) -> None:
        self.prompts: list[Prompt] = []
        self._quote = quote

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        self.prompts.append(prompt)
        if self._quote == "":
            raise ModelFixableError("not valid")
        numbers = re.findall('claim number="([0-9]+)"', prompt.user)
        quotations = [RepairedQuotation(number=n, doc_id="d1", quote=self._quote) for n in map(int, numbers)]
        return output.model_validate(RepairedQuotations(quotations=tuple(quotations)).model_dump())

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        raise AssertionError("a repair does not stream")


async def write(
    text: str,
    model: ChatModel,
    size: int = 7,
    hits: tuple[Hit, ...] = (HIT,),
    *,
    needs_proof: bool = True,
    to_gap: bool = False,
) -> tuple[AnswerWriter, list[tuple[str, object]]]:
    log = MemoryRunLog()
    await log.create("r")
    writer = AnswerWriter(
        stream_to(await open_event_log(log, "r", 3), hits),
        CitationBook(hits),
        QuoteRepairer(model, lambda: CallLimits(timeout_s=1), "How much?"),
        needs_proof=needs_proof,
    )
    for end in range(size, len(text), size):
        await writer.write(text[:end], to_gap=to_gap)
    await writer.write(text, at_end=True, to_gap=to_gap)
    await writer.finish()
    await writer.stream.event_log.write()
    events = [json.loads(line) for line in (await log.read("r")).lines]
    return writer, [(event["name"], event["data"]) for event in events[1:]]


def streamed(events: list[tuple[str, object]]) -> str:
    return "".join(data["text"] for name, data in events if name == "TOKEN" and isinstance(data, dict))


async def test_a_proved_quotation_becomes_a_numbered_source() -> None:
    writer, events = await write(
        'It runs at 15 bar. <cite doc_id="d1" quote="runs at 15 bar"/> Good.', RepairingModel(None)
    )
    assert writer.draft.text == "It runs at 15 bar. (Source: m.pdf, S. 3)[1] Good."
    assert streamed(events) == writer.draft.text
    assert [name for name, _ in events].count("CITATION") == 1


async def test_the_first_words_do_not_wait_for_an_append_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryRunLog()
    await log.create("r")
    stream = stream_to(await open_event_log(log, "r", 3), (HIT,))
    monkeypatch.setattr(answer_stream, "FLUSH_SECONDS", 0)
    writer = AnswerWriter(stream, CitationBook((HIT,)), QuoteRepairer(RepairingModel(None), lambda: None))
    began = stream._flushed_at
    await writer.write("")
    assert stream._flushed_at == began
    await writer.write("It")
    assert stream._flushed_at > began
    assert stream.event_log.written[-1].name == "TOKEN"


async def test_a_citation_comes_before_its_marker() -> None:
    _, events = await write('A <cite doc_id="d1" quote="runs at 15 bar"/>', RepairingModel(None))
    names = [name for name, _ in events]
    before = "".join(
        str(data["text"]) for name, data in events[: names.index("CITATION")] if isinstance(data, dict)
    )
    assert "[1]" not in before


async def test_wrong_quotations_keep_their_numbers_and_are_repaired_together_at_the_end() -> None:
    model = RepairingModel("The pump runs at 15 bar.")
    text = (
        'It needs 15 bar <cite doc_id="d1" quote="needs 15"/>. It is fast <cite doc_id="d1" quote="fast"/>. '
        'Again <cite doc_id="d1" quote="needs 15"/>. True <cite doc_id="d1" quote="runs at 15 bar"/>'
    )
    writer, events = await write(text, model)
    assert writer.draft.text == (
        "It needs 15 bar (Source: m.pdf)[1]. It is fast (Source: m.pdf)[2]. Again (Source: m.pdf)[1]. "
        "True (Source: m.pdf, S. 3)[3]"
    )
    assert streamed(events) == writer.draft.text
    assert len(model.prompts) == 1
    assert "<statement>It needs 15 bar</statement>" in model.prompts[0].user
    assert "<question>How much?</question>" in model.prompts[0].user
    assert writer.unsupported_claims == 0
    assert [citation.page_number for citation in writer.book.citations] == [3, 3, 3]
    announced = [data["n"] for name, data in events if name == "CITATION" and isinstance(data, dict)]
    assert announced == [3, 1, 2]


async def test_a_repair_without_a_number_of_the_statement_is_not_verified() -> None:
    text = 'It runs at 15 bar and 80 °C. <cite doc_id="d1" quote="It runs at 15 bar and 80 °C"/>'
    writer, _ = await write(text, RepairingModel("The pump runs at 15 bar."))
    assert NOT_PROVED in writer.draft.text
    assert [citation.verified for citation in writer.book.citations] == [False]


async def test_what_cannot_be_repaired_is_named_at_the_end_and_announced_as_not_verified() -> None:
    for quote in (None, "", "also not there"):
        model = RepairingModel(quote)
        writer, events = await write('X <cite doc_id="d1" quote="no"/>' * 5 + f" Y {CITED}", model)
        assert writer.draft.text == f"{'X (Source: m.pdf)[1]' * 5} Y (Source: m.pdf, S. 3)[2]\n\n{NOT_PROVED}"
        assert streamed(events) == writer.draft.text
        assert (writer.unsupported_claims, len(model.prompts)) == (1, 1)
        announced = [data for name, data in events if name == "CITATION" and isinstance(data, dict)]
        assert [(one["n"], one["verified"], one["quote"] == "") for one in announced] == [
            (2, True, False),
            (1, False, True),
        ]


@pytest.mark.parametrize(
    ("statement", "remark"),
    [
        ("On page 3 of m.pdf, the pump runs at 15 bar.", ""),
        ("It runs at 16 bar, 10 % more than 14.5 bar.", "16, 10 %, 14.5 [1]"),
        ("1. It runs at 17 bar.", "17 [1]"),
    ],
)
async def test_numbers_that_the_cited_document_lacks_are_named_at_the_end(
    statement: str, remark: str
) -> None:
    for size in (1, 1000):
        text = f'{statement} <cite doc_id="d1" quote="The pump runs at 15 bar."/>'
        writer, events = await write(text, RepairingModel(None), size)
        note = f"\n\n{ENGLISH.unsourced.format(remark)}" if remark else ""
        assert writer.draft.text == streamed(events) == f"{statement} (Source: m.pdf, S. 3)[1]{note}"
        assert writer.unsupported_claims == 0


async def test_numbers_beside_an_unproved_quotation_or_a_picture_are_not_compared() -> None:
    unproved = 'It runs at 16 bar. <cite doc_id="d1" quote="The pump runs at 16 bar."/>'
    writer, _ = await write(unproved, RepairingModel(None))
    assert writer.draft.text.endswith(NOT_PROVED)
    figure = picture()
    drawn = f'The head is 16 m. <cite doc_id="{figure.doc_id}" quote="{figure.image_caption}"/>'
    writer, _ = await write(drawn, RepairingModel(None), hits=(HIT, figure))
    assert "16" in writer.draft.text
    assert writer.draft.text.endswith("[1]")


async def test_a_quotation_of_an_unknown_document_is_marked_at_once() -> None:
    model = RepairingModel(None)
    writer, _ = await write('X <cite doc_id="d9" quote="nowhere"/>', model)
    assert (writer.draft.text, writer.unsupported_claims, model.prompts) == (f"X{UNSUPPORTED}", 1, [])


async def test_an_answer_that_needs_no_proof_has_no_marks() -> None:
    text = 'Two reports. <cite doc_id="d9" quote="nowhere"/>'
    writer, _ = await write(text, RepairingModel(None), needs_proof=False)
    assert (writer.draft.text.strip(), writer.unsupported_claims) == ("Two reports.", 0)


async def test_abstention_is_told_in_words() -> None:
    writer, events = await write(
        '<gap missing="No price is stated." next_step="Ask sales."/>', RepairingModel(None)
    )
    assert writer.gaps
    assert streamed(events) == ("No price is stated.\n\nAsk sales.")


async def test_a_claim_in_a_table_is_told_with_its_row_and_header_and_without_our_proofs() -> None:
    model = RepairingModel(None)
    table = (
        "Compared:\n\n| aspect | old | new |\n|---|---|---|\n| weight | 1 kg | 2 kg |\n"
        '| pressure | 15 bar <cite doc_id="d1" quote="runs at 15 bar"/> '
        '| 9 bar <cite doc_id="d1" quote="at 9"/> |'
    )
    await write(table, model)
    claim = "<statement>| aspect | old | new |\n| pressure | 15 bar  | 9 bar</statement>"
    assert claim in model.prompts[0].user


async def test_a_forged_proof_is_not_shown_as_one() -> None:
    writer, events = await write("It runs at 99 bar (Source: m.pdf, S. 3)[1].", RepairingModel(None))
    assert writer.draft.text == f"It runs at 99 bar (Source unchecked: m.pdf, S. 3)(1).{UNSUPPORTED}"
    assert streamed(events) == writer.draft.text
    assert not writer.has_citations


async def test_a_picture_or_link_of_the_model_leads_nowhere() -> None:
    text = (
        "A ![x](https://evil/?q=1) [b](https://evil) "
        '<cite doc_id="d1" quote="runs at 15 bar"/>(https://evil) '
        '<gap missing="![m](https://evil)" next_step="[n](https://evil)"/>'
    )
    for size in (1, 7, 1000):
        writer, _ = await write(text, RepairingModel(None), size)
        assert writer.draft.text == ("A x b (Source: m.pdf, S. 3)[1] (https: //evil) \n\nm\n\nn")
        assert writer.is_partial
    abstained, _ = await write(text[text.index("<gap") :], RepairingModel(None))
    assert abstained.draft.text == "m\n\nn"


async def test_an_abstention_behind_unproved_text_is_shown_and_the_text_is_marked() -> None:
    writer, events = await write(
        'It costs 5 euros.\n<gap missing="No price is stated." next_step="Ask sales."/>', RepairingModel(None)
    )
    assert writer.draft.text == (
        f"It costs 5 euros.\n{UNSUPPORTED.lstrip()}\n\nNo price is stated.\n\nAsk sales."
    )
    assert streamed(events) == writer.draft.text
    assert writer.unsupported_claims == 1


async def test_an_answer_that_cites_nothing_is_marked() -> None:
    writer, _ = await write("It is 9 bar, surely.", RepairingModel(None))
    assert writer.draft.text.startswith("It is 9 bar, surely.")
    assert writer.draft.text.endswith(UNSUPPORTED.strip())
    assert writer.unsupported_claims == 1


FIGURE = picture("m", 3)
SHOWN = f"![Figure 3: Pump curve of the pump](/api/documents/m/figures/{3:064x}.png) (Source: m.pdf, S. 3)"
PLACED = f'<figure block_id="{FIGURE.block_id}"/>'
CITED = '<cite doc_id="d1" quote="runs at 15 bar"/>'
MARK = "(Source: m.pdf, S. 3)[1]"


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "read"),
    [
        (f"A {CITED}\n\n{PLACED}\n\nB", f"A {MARK}\n\n{SHOWN}\n\n\nB"),
        (f"A {PLACED} goes on. {CITED}\nB", f"A  goes on. {MARK}\n\n{SHOWN}\n\nB"),
        (f"A {CITED} {PLACED}", f"A {MARK} \n\n{SHOWN}"),
        (
            f"| a | b |\n|---|---|\n| x {PLACED} | y {CITED} |\n| z | w |\n\nB",
            f"| a | b |\n|---|---|\n| x  | y {MARK} |\n| z | w |\n\n{SHOWN}\n\nB",
        ),
        (f"A {CITED}\n```\nx {PLACED}\ny\n```\nB\n", f"A {MARK}\n```\nx \ny\n```\nB\n\n{SHOWN}\n\n"),
        (f"A {CITED}\n```\nx {PLACED}", f"A {MARK}\n```\nx \n```\n\n{SHOWN}"),
        (f"A {CITED} {PLACED}{PLACED}\nB {PLACED}", f"A {MARK} \n\n{SHOWN}\n\nB "),
    ],
)
async def test_a_figure_stands_behind_its_line_and_tears_nothing(text: str, read: str, size: int) -> None:
    writer, events = await write(text, RepairingModel(None), size, (HIT, FIGURE))
    assert writer.draft.text == read
    assert streamed(events) == writer.draft.text
    assert [figure.block_id for figure in writer.draft.figures.placed] == [FIGURE.block_id]


@pytest.mark.parametrize(
    "tag", ['<figure block_id="no"/>', "<figure>", '<figure src="https://evil"/>', "</figure>"]
)
async def test_a_figure_that_there_is_not_is_none(tag: str) -> None:
    writer, _ = await write(
        f"A {tag}{CITED}", RepairingModel(None), hits=(HIT, FIGURE.model_copy(update={"page_number": 8}))
    )
    assert writer.draft.text == f"A {MARK}"
    assert writer.draft.figures.placed == []


async def test_a_figure_that_the_model_did_not_choose_is_not_shown() -> None:
    here = FIGURE.model_copy(update={"doc_id": "d1", "score": 0.9})
    writer, _ = await write(f"A {CITED}", RepairingModel(None), hits=(HIT, here))
    assert writer.draft.text == f"A {MARK}"


async def test_an_abstention_shows_no_figure() -> None:
    writer, _ = await write(f'{PLACED}<gap missing="x"/>', RepairingModel(None), hits=(HIT, FIGURE))
    assert writer.draft.text == "x"
    assert not writer.is_answer


async def test_what_comes_nearest_stands_behind_the_gap() -> None:
    near = f'<gap missing="No price is stated." next_step="Ask sales."/>\n\nNear: {CITED}'
    for size in (1, 7, 1000):
        writer, events = await write(near, RepairingModel(None), size)
        assert writer.draft.text == (f"No price is stated.\n\nAsk sales.\n\nNear: {MARK}")
        assert streamed(events) == writer.draft.text
        assert (writer.is_answer, writer.has_citations, writer.unsupported_claims) == (False, True, 0)


async def test_claims_behind_an_abstention_need_a_proof_too() -> None:
    writer, _ = await write('<gap missing="x"/> It costs 5 euros.', RepairingModel(None))
    assert writer.draft.text == f"x\n\nIt costs 5 euros.{UNSUPPORTED}"
    assert writer.unsupported_claims == 1


async def test_each_gap_is_told_once() -> None:
    writer, _ = await write('<gap missing="x"/>\n<gap missing="y"/> <gap missing="x"/>', RepairingModel(None))
    assert writer.draft.text == "x\n\ny"


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_gap_that_is_searched_for_is_not_shown_and_ends_the_turn(size: int) -> None:
    text = f'A {CITED} <gap missing="x" next_step="n"/> dropped <gap missing="y"/> <gap missing="x"/>'
    writer, _ = await write(text, RepairingModel(None), size, to_gap=True)
    assert writer.draft.text.strip() == f"A {MARK}"
    assert writer.gaps == []
    assert read_gaps(text) == (Gap(missing="x", next_step="n"), Gap(missing="y"))
