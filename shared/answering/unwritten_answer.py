"""Composes answers without a model: quotations, lists of documents, and abstentions."""

from shared.answering.models import Gap
from shared.evidence.citations import CitationBook
from shared.evidence.messages import Messages
from shared.evidence.passage_answer import list_documents, quote_passages
from shared.evidence.untrusted_text import markdown_name, markdown_text
from shared.retrieval.models import DocumentRecord
from shared.runs.evidence import Evidence
from shared.runs.models import RunAnswer


def nothing_found(words: Messages, evidence: Evidence) -> Gap:
    """Return the gap to report if a search found nothing. It names the reason if it is known, such as a
    missing document.
    """
    missing, next_step = words.nothing_found, words.nothing_found_step
    if evidence.missing:
        missing = "; ".join(
            words.no_such_document.format(markdown_name(document.reference)) for document in evidence.missing
        )
        nearest = [markdown_name(name) for document in evidence.missing for name in document.nearest]
        next_step = words.nearest_names.format(", ".join(dict.fromkeys(nearest))) if nearest else next_step
    elif evidence.unreadable:
        missing = "; ".join(_unreadable(words, record) for record in evidence.unreadable)
        next_step = words.unreadable_step
    elif evidence.filters:
        missing = words.none_with.format(markdown_text(evidence.filters))
    return Gap(missing=missing, next_step=next_step)


def _unreadable(words: Messages, record: DocumentRecord) -> str:
    pages = words.pages.format(record.page_count) if record.page_count else ""
    return words.unreadable.format(markdown_name(record.filename), pages)


def answer_without_model(
    question: str, evidence: Evidence, book: CitationBook, words: Messages, note: str
) -> RunAnswer:
    """Return an answer of quotations, else a list of documents, else an abstention. Its citations are added
    to `book`.

    Args:
        note: the reason why no model wrote the answer.
    """
    text = quote_passages(question, book, words) or list_documents(evidence.records, words)
    gap = None if text else nothing_found(words, evidence)
    if gap is not None:
        text = words.abstention(gap.missing, gap.next_step)
    return RunAnswer(
        run_id=book.run_id,
        text=f"{text}\n\n{words.note.format(note)}",
        citations=tuple(book.citations),
        abstained=gap is not None,
        missing=gap.missing if gap else "",
        next_step=gap.next_step if gap else "",
    )
