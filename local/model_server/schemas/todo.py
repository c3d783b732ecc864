"""The todo list of a plan: outcomes that are specific to the question. Pure."""

from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.text.languages import detect_language

MAX_ITEMS = 4


def plan_todo(
    question: str, query_type: str, references: Sequence[str], parts: Sequence[str]
) -> list[JsonValue]:
    """One to four items, each {description, acceptance_criteria, dependencies}."""
    german = detect_language(question) == "de"
    topic = question.rstrip("?. ")
    if query_type == "COMPARISON" and len(references) > 1:
        return _comparison(references[: MAX_ITEMS - 1], topic, german)
    if query_type == "CONTENT_SEARCH" and len(parts) > 1:
        return [_item(*_answered(part, german)) for part in parts[:MAX_ITEMS]]
    texts = _GERMAN_OUTCOMES if german else _ENGLISH_OUTCOMES
    description, criteria = texts[query_type]
    subject = references[0] if references and query_type == "DOCUMENT_SUMMARY" else topic
    return [_item(description.format(subject), criteria)]


def _comparison(references: Sequence[str], topic: str, german: bool) -> list[JsonValue]:
    found = "Was „{}“ dazu sagt, ist bekannt" if german else "What “{}” says on it is known"
    quoted = (
        "Mindestens ein Zitat aus diesem Dokument."
        if german
        else "At least one quotation from this document."
    )
    items = [_item(found.format(reference), quoted) for reference in references]
    description, criteria = (_GERMAN_OUTCOMES if german else _ENGLISH_OUTCOMES)["COMPARISON"]
    return [*items, _item(description.format(topic), criteria, list(range(1, len(items) + 1)))]


def _answered(part: str, german: bool) -> tuple[str, str]:
    description, criteria = (_GERMAN_OUTCOMES if german else _ENGLISH_OUTCOMES)["CONTENT_SEARCH"]
    return description.format(part), criteria


def _item(description: str, acceptance_criteria: str, dependencies: Sequence[int] = ()) -> JsonValue:
    return {
        "description": description,
        "acceptance_criteria": acceptance_criteria,
        "dependencies": list(dependencies),
    }


_ENGLISH_OUTCOMES = {
    "CONTENT_SEARCH": (
        "The answer is found: {}",
        "Each statement has a verbatim quotation, or the gap is named.",
    ),
    "DOCUMENT_SUMMARY": (
        "A summary exists: {}",
        "The main points are covered in order, each with a quotation.",
    ),
    "COMPARISON": ("Common ground and differences are shown: {}", "A table with a quotation in each cell."),
    "LISTING": ("The matching documents are listed: {}", "Title, file name, type and date of each document."),
    "METADATA_SEARCH": (
        "The documents' details are known: {}",
        "The field asked for is named with its document.",
    ),
}
_GERMAN_OUTCOMES = {
    "CONTENT_SEARCH": (
        "Die Antwort ist gefunden: {}",
        "Jede Aussage hat ein wörtliches Zitat, oder die Lücke ist benannt.",
    ),
    "DOCUMENT_SUMMARY": (
        "Eine Zusammenfassung liegt vor: {}",
        "Die Hauptpunkte in ihrer Reihenfolge, je mit Zitat.",
    ),
    "COMPARISON": (
        "Gemeinsames und Unterschiede sind gezeigt: {}",
        "Eine Tabelle mit einem Zitat in jeder Zelle.",
    ),
    "LISTING": (
        "Die passenden Dokumente sind aufgelistet: {}",
        "Titel, Dateiname, Art und Datum jedes Dokuments.",
    ),
    "METADATA_SEARCH": (
        "Die Angaben zu den Dokumenten sind bekannt: {}",
        "Die gefragte Angabe steht bei ihrem Dokument.",
    ),
}
