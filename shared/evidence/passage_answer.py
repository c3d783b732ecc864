"""Writes answers without a model by quoting the passages that best match the question. Pure.

The answer states nothing about the question and proves every line like any other quotation, so it can be
incomplete but not wrong.
"""

import re
from collections.abc import Sequence

from shared.evidence.citations import CitationBook
from shared.evidence.messages import Messages
from shared.evidence.reader_text import readable
from shared.evidence.text import split_sentences
from shared.evidence.untrusted_text import markdown_name
from shared.retrieval.models import DocumentRecord, Hit
from shared.retrieval.terms import FUNCTION_WORDS

MAX_PASSAGES = 4  # Readers can't compare more passages at once; value unmeasured.
MAX_DOCUMENTS = 20
_MAX_QUOTE_CHARS = 300
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
_LONGEST_TITLE_CHARS = 100
_TABLE_RULE = re.compile(r"[\s|:-]+")


def quote_passages(question: str, book: CitationBook, words: Messages) -> str:
    """Return an answer that quotes the passages that best match the question, and add their citations to
    `book`. Return "" if none match.
    """
    terms = _words(question) - FUNCTION_WORDS
    candidates = [(hit.doc_id, _best_sentence(hit, terms)) for hit in book.hits]
    sentences = [(doc_id, quote) for doc_id, quote in candidates if _says_something(quote)]
    quotes = sentences or [(doc_id, quote) for doc_id, quote in candidates if quote]
    fewest = max((len(terms & _words(quote)) for _, quote in quotes), default=0) / 2
    lines: list[str] = []
    for doc_id, quote in quotes:
        # The sentence shares too few words with the question; they may be just a name.
        if len(terms & _words(quote)) < fewest:
            continue
        proof = book.prove(doc_id, quote)
        # The quotation is unproved, or another passage has already provided it.
        if proof is None or not proof[1]:
            continue
        lines.append(f"- “{shown_quote(quote)}”{book.marker(proof[0])}")
        if len(lines) == MAX_PASSAGES:
            break
    return "\n".join((words.passages, "", *lines)) if lines else ""


def list_documents(records: Sequence[DocumentRecord], words: Messages) -> str:
    """Return an answer that lists the documents, or "" if there are none."""
    lines = [f"- {_described(record)}" for record in records[:MAX_DOCUMENTS]]
    return "\n".join((words.documents, "", *lines)) if lines else ""


def _best_sentence(hit: Hit, terms: frozenset[str]) -> str:
    """Return the sentence of the block that shares the most words with the question, truncated if it is too
    long.

    Titles count only as a last resort. Among equals, a sentence with a number comes first, which a table
    heading rarely has; otherwise the earliest.
    """
    if hit.block_type != "text":
        return ""
    sentences = [sentence for sentence in split_sentences(hit.content) if not _TABLE_RULE.fullmatch(sentence)]

    def fit(sentence: str) -> tuple[bool, int, bool]:
        shared = len(terms & _words(sentence))
        return _says_something(sentence), shared, any(map(str.isdigit, sentence))

    best = max(sentences, key=fit, default="")
    # Cut at white space, because a quotation that ends within a word can't be proved.
    return best if len(best) <= _MAX_QUOTE_CHARS else best[:_MAX_QUOTE_CHARS].rpartition(" ")[0]


def _says_something(sentence: str) -> bool:
    """Return whether the text looks like a statement or a table row, and not like a heading."""
    return bool(_SENTENCE_END.search(sentence)) or "|" in sentence or len(sentence) > _LONGEST_TITLE_CHARS


def shown_quote(quote: str) -> str:
    """Return a quotation on one line for display. The cells of a table row are separated by dots."""
    cells = [" ".join(cell.split()) for cell in quote.split("|")]
    return readable(" · ".join(cell for cell in cells if cell))


def _described(record: DocumentRecord) -> str:
    name, file = markdown_name(record.title or record.filename), markdown_name(record.filename)
    date = record.upload_date.date().isoformat()
    return f"{name} ({date})" if name == file else f"{name} ({file}, {date})"


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))
