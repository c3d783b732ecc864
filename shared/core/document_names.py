"""Which documents a question names. Pure: words of a reference against file names and titles."""

import re
from collections.abc import Iterable, Sequence

from shared.models.documents import DocumentRecord

_WORD = re.compile(r"\d+|[^\W\d_]+")  # HX200 and HX-200 are the same words
_FILLERS = frozenset(
    "the a an of for and in on to our my this that file document documents pdf report's der die das den dem "
    "des ein eine einen von und für im zum zur datei dokument".split()
)
_MIN_SHARE = 0.6  # of a reference's words; unmeasured beyond the samples
_NEAR_BEST = 0.85


def match_reference(reference: str, records: Iterable[DocumentRecord]) -> tuple[DocumentRecord, ...]:
    """The documents that a reference may mean, best first; empty when none fits well enough.

    A reference equal to a file name or title fits that document alone. Otherwise a document fits by the
    share of the reference's words that stand in its file name, title or type; every number of the reference
    must stand there, for a number is what tells one year, version or model from another.
    """
    if not reference.strip():
        return ()
    known = list(records)
    exact = [record for record in known if _same_name(reference, record)]
    if exact:
        return tuple(exact)
    wanted = _words(reference)
    if not wanted:
        return ()
    scored = [(_score(wanted, _document_words(record)), record) for record in known]
    best = max((score for score, _ in scored), default=0.0)
    if best < _MIN_SHARE:
        return ()
    fitting = [(score, record) for score, record in scored if score >= best * _NEAR_BEST]
    return tuple(record for _, record in sorted(fitting, key=lambda pair: (-pair[0], pair[1].filename)))


def match_references(
    references: Sequence[str], records: Sequence[DocumentRecord]
) -> tuple[DocumentRecord, ...]:
    """The documents that any of the references may mean, each once, in the order of the references."""
    matched = [record for reference in references for record in match_reference(reference, records)]
    return tuple({record.doc_id: record for record in matched}.values())


def _score(wanted: set[str], words: set[str]) -> float:
    numbers = {word for word in wanted if word.isdigit()}
    return len(wanted & words) / len(wanted) if numbers <= words else 0.0


def _same_name(reference: str, record: DocumentRecord) -> bool:
    name = reference.strip().casefold()
    return name in (
        record.filename.casefold(),
        record.filename.rpartition(".")[0].casefold(),
        record.title.casefold(),
    )


def _document_words(record: DocumentRecord) -> set[str]:
    return _words(f"{record.filename} {record.title} {record.document_type or ''}")


def _words(text: str) -> set[str]:
    return {
        word[:-1] if len(word) > 3 and word.endswith("s") else word
        for word in _WORD.findall(text.casefold())
        if word not in _FILLERS
    }
