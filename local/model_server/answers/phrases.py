"""The words around the documents' own words, in English and German. A table, no logic but the choice."""

from dataclasses import dataclass

from local.model_server.text.languages import detect_language


@dataclass(frozen=True)
class Phrases:
    """Scaffolding of answers in one language; `{}` is filled in."""

    missing: str
    next_step: str
    no_documents: str
    attribute_missing: str
    summary_of: str
    aspect: str
    not_mentioned: str
    changed: str
    differences: str
    differ: str
    by_document: str
    version: str
    one_document: str
    documents: str
    some_documents: str
    author: str
    date: str
    department: str
    document_type: str


_ENGLISH = Phrases(
    missing="{}",
    next_step="Name the document or the topic more exactly, or add a document that covers it.",
    no_documents="No document at hand fits: {}",
    attribute_missing="The {} of “{}” is not recorded.",
    summary_of="Summary of **{}**",
    aspect="Aspect",
    not_mentioned="–",
    changed="**Different values:**",
    differences="Comparison of {}",
    differ="**The documents differ:**",
    by_document="**In the other documents:**",
    version="version {}",
    one_document="1 document:",
    documents="{} documents:",
    some_documents="{} of {} documents:",
    author="author",
    date="date",
    department="department",
    document_type="type",
)
_GERMAN = Phrases(
    missing="{}",
    next_step="Dokument oder Thema genauer nennen, oder ein Dokument dazu hinzufügen.",
    no_documents="Kein vorliegendes Dokument passt zu: {}",
    attribute_missing="Die Angabe „{}“ ist für „{}“ nicht erfasst.",
    summary_of="Zusammenfassung von **{}**",
    aspect="Aspekt",
    not_mentioned="–",
    changed="**Abweichende Werte:**",
    differences="Vergleich von {}",
    differ="**Die Dokumente unterscheiden sich:**",
    by_document="**In den anderen Dokumenten:**",
    version="Version {}",
    one_document="1 Dokument:",
    documents="{} Dokumente:",
    some_documents="{} von {} Dokumenten:",
    author="Verfasser",
    date="Datum",
    department="Abteilung",
    document_type="Art",
)


def phrases_for(question: str) -> Phrases:
    """Scaffolding in the question's language; English for all but German."""
    return _GERMAN if detect_language(question) == "de" else _ENGLISH
