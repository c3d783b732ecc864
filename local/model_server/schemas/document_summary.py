"""WindowSummary, FindingChoice, MergedSummary: central sentences as findings, numbers with units as metrics.

Extractive: every finding is a sentence of its block and its own proof; a narrative is the central findings
one after the other. It puts nothing in other words, and translates nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from local.model_server.prompt_reader import (
    Document,
    NumberedPassage,
    element_text,
    read_documents,
    read_passages,
)
from local.model_server.schemas.document_metadata import find_tags
from local.model_server.schemas.task import SchemaTask
from local.model_server.text.central import central_indices, is_byline
from local.model_server.text.languages import detect_language
from local.model_server.text.sentences import TableRow, is_table_line, split_sentences, table_rows
from local.model_server.text.words import is_content_word, stem, stems_of, topic_words, words_of

MAX_FINDINGS = 6
MAX_METRICS = 10  # as the prompt allows
MAX_TAGS = 4
MAX_STATEMENTS = 8
MAX_KEY_FINDINGS = 8
MIN_WORDS = 5
MAX_WORDS = 60
MAX_NAME_WORDS = 8
TWO_COLUMNS = 2  # name and value: the head of the second says nothing more
_UNITS = (
    r"%|‰|°C|°F|K|bar|mbar|Pa|kPa|MPa|psi|mm|cm|m|km|m²|m³|µm|ft|mg|g|kg|t|tonnes?|ml|l|litres?|liters?|Liter|"
    r"W|kW|MW|GW|kWh|MWh|GWh|V|kV|A|mA|Hz|kHz|MHz|GHz|rpm|min-1|l/min|m/s|km/h|Nm|N|kN|dB|"
    r"s|seconds?|Sekunden?|min|minutes?|Minuten?|h|hours?|Stunden?|days?|Tagen?|Tage|weeks?|Wochen?|months?|"
    r"Monaten?|Monate|years?|Jahren?|Jahre|EUR|USD|GBP|CHF|€|\$|£|"
    r"(?:thousand|million|billion|Mio\.?|Mrd\.?|Millionen|Milliarden)"
    r"(?: (?:EUR|USD|GBP|CHF|euros?|Euro|dollars?))?|"
    r"euros?|Euro|dollars?|employees|people|Mitarbeiter|points?|percent|per cent|Prozent"
)
_MEASURE = re.compile(
    r"(?<![\w.,/-])(?P<value>[-−]?\d{1,3}(?:[ ,.]\d{3})*(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    rf"\s?(?P<unit>{_UNITS})(?!\w)"
)
_CURRENCY_FIRST = re.compile(
    r"(?P<unit>[$€£]|EUR|USD|GBP|CHF)\s?(?P<value>\d{1,3}(?:[ ,.]\d{3})*(?:[.,]\d+)?)(?![\w])"
)
_BULLET = re.compile(r"^(?:[-*•‣▪◦·–]|\(?[0-9]{1,2}[.)]|\(?[a-z]\))\s+")


@dataclass(frozen=True)
class _Sentence:
    """A sentence, or a table's row, verbatim; `reading` is it on one line, a row as a sentence."""

    quote: str
    reading: str
    row: TableRow | None = None


def summarise_window(task: SchemaTask) -> dict[str, JsonValue]:
    """{"findings": [{"text", "quote"}], "metrics": [{"name", "value", "unit", "quote"}], "tags": […]}."""
    documents = read_documents(task.message)
    sentences = [one for document in documents for one in _sentences(document)]
    prose = [one for one in sentences if one.row is None and _is_sentence(one.reading)]
    chosen = _weightiest([one.reading for one in prose], MAX_FINDINGS, task)
    text = "\n".join(block.text for document in documents for block in document.blocks)
    return {
        "findings": [{"text": prose[place].reading, "quote": prose[place].quote} for place in chosen],
        "metrics": _metrics(sentences, _focus(task)),
        "tags": list(find_tags(text, detect_language(text))[:MAX_TAGS]),
    }


def choose_findings(task: SchemaTask) -> dict[str, JsonValue]:
    """{"numbers": […]}: the central findings, those on the focus ahead."""
    passages = read_passages(task.message)
    most = element_text(task.message, "most") or ""
    count = int(most) if most.isdecimal() else MAX_KEY_FINDINGS
    chosen = _weightiest([passage.text for passage in passages], count, task)
    return {"numbers": [passages[place].number for place in chosen]}


def merge_findings(task: SchemaTask) -> dict[str, JsonValue]:
    """{"statements": [{"text", "findings"}], "key_findings": […], "tags": […]}."""
    passages = read_passages(task.message)
    told = sorted(_from_each(passages, task))
    key = _weightiest([passage.text for passage in passages], MAX_KEY_FINDINGS, task)
    tags = element_text(task.message, "tags") or ""
    return {
        "statements": [
            {"text": passages[place].text, "findings": [passages[place].number]} for place in told
        ],
        "key_findings": [passages[place].number for place in key],
        "tags": [tag.strip() for tag in tags.split(",") if tag.strip()],
    }


def _from_each(passages: Sequence[NumberedPassage], task: SchemaTask) -> list[int]:
    """Places of the findings to tell: of every document some."""
    by_document: dict[str, list[int]] = {}
    for place, passage in enumerate(passages):
        by_document.setdefault(passage.document, []).append(place)
    each = max(1, MAX_STATEMENTS // max(len(by_document), 1))
    return [
        places[chosen]
        for places in by_document.values()
        for chosen in _weightiest([passages[place].text for place in places], each, task)
    ]


def _weightiest(texts: Sequence[str], count: int, task: SchemaTask) -> list[int]:
    """Places of the texts that share most with the focus, then of the central ones; each group in order."""
    focus = _focus(task)
    shared = {place: len(focus & set(stems_of(text))) for place, text in enumerate(texts)}
    on_focus = sorted((place for place in shared if shared[place]), key=lambda place: -shared[place])
    chosen = on_focus[:count]
    rest = [place for place in range(len(texts)) if place not in set(chosen)]
    central = central_indices([texts[place] for place in rest], count - len(chosen), task.embedder)
    return chosen + ([rest[place] for place in central] if count > len(chosen) else [])


def _focus(task: SchemaTask) -> set[str]:
    """Stems of what the focus is about."""
    return {stem(word) for word in topic_words(element_text(task.message, "focus") or "")}


def _sentences(document: Document) -> list[_Sentence]:
    found = []
    for block in document.blocks:
        prose = "\n".join(line for line in block.text.split("\n") if not is_table_line(line))
        bare = (_BULLET.sub("", one) for one in split_sentences(prose))
        found += [_Sentence(one, " ".join(one.split())) for one in bare]
        found += [_Sentence(row.line, row.reading, row) for row in table_rows(block.text)]
    return found


def _is_sentence(text: str) -> bool:
    words = text.split()
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and text.endswith((".", "!", "?"))
        and not text.startswith("#")
        and not is_byline(text)
    )


def _metrics(sentences: Sequence[_Sentence], focus: set[str]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for sentence in sorted(sentences, key=lambda one: -len(focus & set(stems_of(one.reading)))):
        for measure in (*_MEASURE.finditer(sentence.quote), *_CURRENCY_FIRST.finditer(sentence.quote)):
            if name := _name_of(sentence, measure):
                found.append(
                    {
                        "name": name,
                        "value": measure["value"],
                        "unit": measure["unit"],
                        "quote": sentence.quote,
                    }
                )
            if len(found) == MAX_METRICS:
                return found
    return found


def _name_of(sentence: _Sentence, measure: re.Match[str]) -> str:
    """What is measured, in words of the text; empty when no word before the number says it."""
    if sentence.row is not None:
        return _name_in_row(sentence.row, measure.group())
    clause = re.split(r"[.;:!?](?:\s|$)|,\s", sentence.quote[: measure.start()])[-1]
    words = clause.split()[-MAX_NAME_WORDS:]
    while words and not _tells(words[-1]):
        words.pop()
    while words and not _tells(words[0]):
        words.pop(0)
    return " ".join(words).strip(" ,(-")


def _name_in_row(row: TableRow, measured: str) -> str:
    """The row's first cell, and the head of the number's column."""
    place = next((place for place, cell in enumerate(row.cells) if measured in cell), 0)
    if place == 0:
        return ""
    head = row.header[place] if place < len(row.header) else ""
    return f"{row.cells[0]}: {head}" if head and len(row.cells) > TWO_COLUMNS else row.cells[0]


def _tells(word: str) -> bool:
    return any(is_content_word(part) and not part.isdigit() for part in words_of(word))
