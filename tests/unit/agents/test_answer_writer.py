"""What readers see of what a model writes."""

import json
from collections.abc import AsyncGenerator

from shared.agents.answer_writer import UNSUPPORTED, AnswerWriter
from shared.agents.journal import open_journal
from shared.agents.memory_log import MemoryRunLog
from shared.agents.quote_repair import QuoteRepairer
from shared.core.evidence import CitationBook
from shared.errors import ModelFixableError
from shared.models.citations import QuoteRepair
from shared.models.prompts import CallLimits, Prompt
from shared.models.search import Hit
from shared.ports import ChatModel, StructuredOutput
from tests.fakes.models import NoConversations

HIT = Hit(block_id="b1", doc_id="d1", filename="m.pdf", page_number=3, content="The pump runs at 15 bar.")


class RepairingModel(NoConversations):
    """Answers every repair with one quotation; "" means that its output is not valid."""

    def __init__(self, quote: str | None) -> None:
        self.prompts: list[Prompt] = []
        self._quote = quote

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        self.prompts.append(prompt)
        if self._quote == "":
            raise ModelFixableError("not valid")
        return output.model_validate(QuoteRepair(quote=self._quote).model_dump())

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        raise AssertionError("a repair does not stream")


async def write(text: str, model: ChatModel, size: int = 7) -> tuple[AnswerWriter, list[tuple[str, object]]]:
    log = MemoryRunLog()
    await log.create("r")
    writer = AnswerWriter(
        journal=await open_journal(log, "r", 3),
        book=CitationBook((HIT,)),
        repairer=QuoteRepairer(model, "<documents/>", CallLimits(timeout_s=1), "How much?"),
    )
    for start in range(0, len(text), size):
        await writer.feed(text[start : start + size])
    await writer.finish()
    events = [json.loads(line) for line in (await log.read("r")).lines]
    return writer, [(event["name"], event["data"]) for event in events[1:]]


def streamed(events: list[tuple[str, object]]) -> str:
    return "".join(data["text"] for name, data in events if name == "TOKEN" and isinstance(data, dict))


async def test_a_proved_quotation_becomes_a_numbered_source() -> None:
    writer, events = await write(
        'It runs at 15 bar. <cite doc_id="d1" quote="runs at 15 bar"/> Good.', RepairingModel(None)
    )
    assert writer.text == "It runs at 15 bar. (Source: m.pdf, S. 3)[1] Good."
    assert streamed(events) == writer.text
    assert [name for name, _ in events].count("CITATION") == 1


async def test_a_citation_comes_before_its_marker() -> None:
    _, events = await write('A <cite doc_id="d1" quote="runs at 15 bar"/>', RepairingModel(None))
    names = [name for name, _ in events]
    before = "".join(
        str(data["text"]) for name, data in events[: names.index("CITATION")] if isinstance(data, dict)
    )
    assert "[1]" not in before


async def test_a_wrong_quotation_is_repaired_once() -> None:
    model = RepairingModel("The pump runs at 15 bar.")
    writer, _ = await write('First. It needs 15 bar <cite doc_id="d1" quote="needs 15"/>', model)
    assert writer.text.endswith("(Source: m.pdf, S. 3)[1]")
    assert "<claim>First. It needs 15 bar</claim>" in model.prompts[0].user
    assert "<question>How much?</question>" in model.prompts[0].user
    assert writer.unsupported_claims == 0


async def test_what_cannot_be_repaired_is_marked() -> None:
    for quote in (None, "", "also not there"):
        writer, events = await write('X <cite doc_id="d1" quote="nowhere"/>', RepairingModel(quote))
        assert writer.text == f"X{UNSUPPORTED}"
        assert writer.unsupported_claims == 1
        assert "CITATION" not in [name for name, _ in events]


async def test_repairs_are_limited() -> None:
    model = RepairingModel(None)
    await write('<cite doc_id="d1" quote="nowhere"/>' * 6, model)
    assert len(model.prompts) == 3


async def test_abstention_is_told_in_words() -> None:
    writer, events = await write(
        '<abstain missing="the price" next_step="Ask sales."/>', RepairingModel(None)
    )
    assert writer.abstention is not None
    assert streamed(events) == (
        "The documents do not answer this. Missing: the price.\n\nNext step: Ask sales."
    )


async def test_a_claim_in_a_table_is_told_with_its_row_and_header_and_without_our_proofs() -> None:
    model = RepairingModel(None)
    table = (
        "Compared:\n\n| aspect | old | new |\n|---|---|---|\n| weight | 1 kg | 2 kg |\n"
        '| pressure | 15 bar <cite doc_id="d1" quote="runs at 15 bar"/> '
        '| 9 bar <cite doc_id="d1" quote="at 9"/> |'
    )
    await write(table, model)
    claim = "<claim>| aspect | old | new |\n| pressure | 15 bar  | 9 bar</claim>"
    assert claim in model.prompts[0].user


async def test_a_forged_proof_is_not_shown_as_one() -> None:
    writer, events = await write("It runs at 99 bar (Source: m.pdf, S. 3)[1].", RepairingModel(None))
    assert writer.text == f"It runs at 99 bar (Source unchecked: m.pdf, S. 3)(1).{UNSUPPORTED}"
    assert streamed(events) == writer.text
    assert not writer.has_citations


async def test_a_picture_or_link_of_the_model_leads_nowhere() -> None:
    text = (
        "A ![x](https://evil/?q=1) [b](https://evil) "
        '<cite doc_id="d1" quote="runs at 15 bar"/>(https://evil) '
        '<abstain missing="![m](https://evil)" next_step="[n](https://evil)"/>'
    )
    for size in (1, 7, 1000):
        writer, _ = await write(text, RepairingModel(None), size)
        assert writer.text == (
            "A x b (Source: m.pdf, S. 3)[1] (https: //evil) \n\n"
            "The documents do not answer the rest. Missing: m.\n\nNext step: n"
        )
        assert writer.is_partial
    abstained, _ = await write(text[text.index("<abstain") :], RepairingModel(None))
    assert "Missing: m." in abstained.text
    assert abstained.text.endswith("Next step: n")


async def test_an_abstention_behind_unproved_text_is_shown_and_the_text_is_marked() -> None:
    writer, events = await write(
        'It costs 5 euros.\n<abstain missing="the price" next_step="Ask sales."/>', RepairingModel(None)
    )
    assert writer.text == (
        f"It costs 5 euros.\n{UNSUPPORTED.lstrip()}\n\n"
        "The documents do not answer this. Missing: the price.\n\nNext step: Ask sales."
    )
    assert streamed(events) == writer.text
    assert writer.unsupported_claims == 1


async def test_an_unproved_citation_behind_the_last_repair_costs_no_search_for_its_claim() -> None:
    writer, _ = await write(
        "x" * 20_000 + '<cite doc_id="d1" quote="nowhere"/>' * 500, RepairingModel(None), 9
    )
    assert writer.unsupported_claims == 500


async def test_an_answer_that_cites_nothing_is_marked() -> None:
    writer, _ = await write("It is 9 bar, surely.", RepairingModel(None))
    assert writer.text.startswith("It is 9 bar, surely.")
    assert writer.text.endswith(UNSUPPORTED.strip())
    assert writer.unsupported_claims == 1
