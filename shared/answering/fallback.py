"""The answer when no model wrote one: what the evidence says word for word, or that there is none."""

from shared.answering.models import Gap
from shared.evidence.citations import CitationBook
from shared.evidence.messages import Messages
from shared.evidence.passage_answer import list_documents, quote_passages
from shared.evidence.untrusted_text import markdown_name, markdown_text
from shared.runs.evidence import Evidence
from shared.runs.models import RunAnswer


def nothing_found(words: Messages, evidence: Evidence) -> Gap:
    """The gap when the search brought nothing: what was named or narrowed to, if that is why."""
    missing, next_step = words.nothing_found, words.nothing_found_step
    if evidence.missing:
        missing = "; ".join(
            words.no_such_document.format(markdown_name(one.reference)) for one in evidence.missing
        )
        nearest = [markdown_name(name) for one in evidence.missing for name in one.nearest]
        next_step = words.nearest_names.format(", ".join(dict.fromkeys(nearest))) if nearest else next_step
    elif evidence.filters:
        missing = words.none_with.format(markdown_text(evidence.filters))
    return Gap(missing=missing, next_step=next_step)


def answer_without_model(
    question: str, evidence: Evidence, book: CitationBook, words: Messages, note: str
) -> RunAnswer:
    """Quotations, or a list of documents; an abstention when there is neither. Cites into `book`.

    Args:
        note: why no model wrote it.
    """
    text = quote_passages(question, book, words) or list_documents(evidence.records, words)
    gap = None if text else nothing_found(words, evidence)
    if gap is not None:
        text = f"{words.no_answer.format(gap.missing)}\n\n{words.next_step.format(gap.next_step)}"
    return RunAnswer(
        run_id=book.run_id,
        text=f"{text}\n\n{words.note.format(note)}",
        citations=tuple(book.citations),
        abstained=gap is not None,
        missing=gap.missing if gap else "",
        next_step=gap.next_step if gap else "",
    )
