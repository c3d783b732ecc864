"""Tests for extractive summaries: each finding has its own proof, and numbers with units become metrics."""

from html import escape

import pytest
from pydantic import BaseModel

from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.requests import JsonSchema
from local.model_server.tasks import fill_schema
from shared.answering.summary_models import FindingChoice, MergedSummary, WindowSummary
from shared.evidence.alignment import align
from shared.evidence.block_text import BlockText
from tests.unit.model_server.conftest import request

TEXT = """The pump delivers water to the boiler. The relief valve opens at 9.5 bar and closes below it.
Each bearing is greased every 500 hours by a trained person. Version 3.2 of this manual replaces chapter 4.
The canteen serves soup on Mondays and salad on Fridays.
| Model | Mass |
|---|---|
| X200 | 1,250 kg |"""


def window(text: str = TEXT, focus: str = "") -> str:
    focus_element = f"<focus>{focus}</focus>" if focus else ""
    block = f'<block page="1" type="text">{escape(text, quote=False)}</block>'
    return f'{focus_element}<documents><document doc_id="m" filename="m.pdf">{block}</document></documents>'


PASSAGES = """<tags>pumps, safety</tags><passages>
<passage number="3" document="a.pdf">The relief valve opens at 9.5 bar.</passage>
<passage number="5" document="a.pdf">The pump delivers water to the boiler.</passage>
<passage number="8" document="b.pdf">Revenue grew to 53 million euros in the year.</passage>
</passages>"""


def filled(kind: type[BaseModel], message: str, embedder: EmbeddingService) -> BaseModel:
    schema = JsonSchema(name=kind.__name__, schema=kind.model_json_schema())
    return kind.model_validate_json(fill_schema(schema, request(message), embedder))


def read(embedder: EmbeddingService, message: str) -> WindowSummary:
    summary = filled(WindowSummary, message, embedder)
    assert isinstance(summary, WindowSummary)
    return summary


def test_findings_are_sentences_that_stand_there(embedder: EmbeddingService) -> None:
    summary = read(embedder, window())
    assert summary.findings
    assert all(align(finding.quote, BlockText(TEXT)) for finding in summary.findings)
    assert all(finding.text == " ".join(finding.quote.split()) for finding in summary.findings)
    assert summary.tags


def test_what_bears_on_the_focus_comes_first(embedder: EmbeddingService) -> None:
    summary = read(embedder, window(focus="When are bearings greased?"))
    assert "500 hours" in summary.findings[0].text


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("The relief valve opens at 9.5 bar.", "9.5", "bar"),
        ("Revenue was 53 million EUR last year.", "53", "million EUR"),
        ("Der Druck beträgt 6,5 bar im Betrieb.", "6,5", "bar"),
        ("The share rose to 12% in the year.", "12", "%"),
        ("| Model | Mass |\n|---|---|\n| X200 | 1,250 kg |", "1,250", "kg"),
    ],
)
def test_numbers_with_units_are_metrics(embedder: EmbeddingService, text: str, value: str, unit: str) -> None:
    (metric,) = read(embedder, window(text)).metrics
    assert (metric.value, metric.unit) == (value, unit)
    assert align(metric.quote, BlockText(text))
    assert metric.name


def test_numbers_without_units_and_parts_of_names_are_none(embedder: EmbeddingService) -> None:
    text = "Version 3.2 of chapter 4 names the X200s and the barge 5 barges 1/2 min-max of 2024."
    assert read(embedder, window(text)).metrics == ()


def test_a_window_without_sentences_gives_no_findings(embedder: EmbeddingService) -> None:
    assert read(embedder, window("Contents\n1 Scope\n2 Safety")).findings == ()
    assert read(embedder, "<documents></documents>").findings == ()


def test_the_choice_is_among_the_numbers_and_no_longer_than_asked(embedder: EmbeddingService) -> None:
    choice = filled(FindingChoice, f"<most>2</most>{PASSAGES}", embedder)
    assert isinstance(choice, FindingChoice)
    assert len(choice.numbers) == 2
    assert set(choice.numbers) <= {3, 5, 8}


def test_the_narrative_tells_of_every_document_and_names_its_findings(embedder: EmbeddingService) -> None:
    merged = filled(MergedSummary, PASSAGES, embedder)
    assert isinstance(merged, MergedSummary)
    assert {number for statement in merged.statements for number in statement.findings} == {3, 5, 8}
    assert all(statement.text in PASSAGES for statement in merged.statements)
    assert set(merged.key_findings) <= {3, 5, 8}
    assert merged.tags == ("pumps", "safety")
