"""Decides which documents the references in a question mean, which are ambiguous, and which documents are
missing.
"""

import re
from collections.abc import Mapping, Sequence

from shared.platform.models import Model
from shared.retrieval.document_names import (
    fits_whole,
    is_described,
    is_plural,
    match_reference,
    naming_words,
    similarity,
    spelled_as_named,
)
from shared.retrieval.models import DocumentRecord
from shared.runs.evidence import Evidence, MissingDocument
from shared.runs.plan import QueryType

_WORD = re.compile(r"[^\W_]+")
_FILE_NAME = re.compile(r"\w\.[A-Za-z]{2,4}$")
_NUMBER = re.compile(r"\d+")
_MAX_NEAREST = 3
# Measured on synthetic names: this similarity is reached by 99.6 % of 4,000 variants of a name (another year
# or suffix, a typo, a word added or removed), by none of 18,600 pairs without a common word, and by 14 % of
# 1,400 pairs with one, such as "leave-policy" and "retention-policy".
_MIN_SIMILARITY = 0.55
# Maximum number of options, so that one digit selects an option. If a name matches more documents, a list of
# options would not help.
MAX_OPTIONS = 9
# Maximum number of documents read for a request such as "all annual reports": two sub-agents with six each.
# Not measured.
MAX_READ = 12
# Maximum number of documents to which a search is restricted. With more, the restriction gains too little to
# risk missing others.
MAX_NAMED = 6
_ASKED_FOR: frozenset[QueryType] = frozenset({"CONTENT_SEARCH", "DOCUMENT_SUMMARY", "METADATA_SEARCH"})

_QUANTIFIERS = (
    "all both every each any either which what some several various most other no alle allen aller beide "
    "beiden beider jede jeder jedes jedem jeden sämtliche sämtlichen welche welcher welches welchen mehrere "
    "mehreren einige manche kein keine"
).split()

# Matches words such as "both of the", "all" or "a". Directly before a reference, they show that it doesn't
# mean one particular document.
_NOT_ONE = re.compile(
    rf"\b(?:(?:{'|'.join(_QUANTIFIERS)})\s+(?:of\s+|von\s+)?(?:(?:the|our|these|those|der|den|die|unsere[rn]?)\s+)?"
    r"|(?:an?|einen?|einem|einer|eines|ein)\s+)$"
)


class Resolution(Model):
    """The documents to which a question refers, or an ambiguous reference with its candidates.

    Attributes:
        documents: the documents referred to, without duplicates; empty if there are none or too many.
        reference, candidates: an ambiguous reference that only the user can resolve, and its candidates.
    """

    documents: tuple[DocumentRecord, ...] = ()
    reference: str = ""
    candidates: tuple[DocumentRecord, ...] = ()


def resolve_references(
    question: str,
    query_type: QueryType,
    candidates_of: Mapping[str, Sequence[DocumentRecord]],
    cited_before: Sequence[str] = (),
    *,
    may_ask: bool = True,
) -> Resolution:
    """Decide which documents the references in a question mean, or which reference the user must clarify.

    Args:
        question: the standalone question that contains the references.
        candidates_of: candidate documents by reference, as returned by a search.
        cited_before: ids of documents cited in the previous answer; they take precedence in a follow-up.
        may_ask: False if the caller selected the documents.
    """
    documents_by_id: dict[str, DocumentRecord] = {}
    unclear = ""
    candidates: tuple[DocumentRecord, ...] = ()
    for reference, records in candidates_of.items():
        name = spelled_as_named(reference, records)
        fitting = _narrowed_by_context(question, match_reference(name, records), cited_before)
        asks = may_ask and not unclear and query_type in _ASKED_FOR
        if asks and not _excludes_single(question, reference) and _is_unclear(question, name, fitting):
            unclear, candidates = reference, fitting
        else:
            documents_by_id |= {record.doc_id: record for record in fitting}
    documents = tuple(documents_by_id.values()) if len(documents_by_id) <= MAX_NAMED else ()
    return Resolution(documents=documents, reference=unclear, candidates=candidates)


def missing_documents(candidates_of: Mapping[str, Sequence[DocumentRecord]]) -> tuple[MissingDocument, ...]:
    """Return the references that match no document, each with similar file names.

    Args:
        candidates_of: candidate documents by reference, as returned by a search.
    """
    return tuple(
        MissingDocument(
            reference=reference,
            nearest=_similar_names(reference, records),
            is_certain=_is_certain(reference, records),
        )
        for reference, records in candidates_of.items()
        if not match_reference(spelled_as_named(reference, records), records)
    )


def not_in_evidence(missing: Sequence[MissingDocument], evidence: Evidence) -> tuple[MissingDocument, ...]:
    """Return the missing documents that the search for evidence did not find either.

    The search by content may find a document that the search by name missed, such as one with the words of
    the reference in a heading, author, summary or first block. These don't count for a certainly missing
    document: the report of 2023 may have a section about 2022.
    """
    names = [naming_words(f"{hit.filename} {hit.heading_path}") for hit in evidence.blocks]
    openings = {hit.doc_id: hit.content for hit in evidence.blocks if hit.ordinal == 0}

    def is_found(document: MissingDocument) -> bool:
        reference = document.reference
        if match_reference(spelled_as_named(reference, evidence.records), evidence.records):
            return True
        if document.is_certain or _FILE_NAME.search(reference):
            return False
        words = naming_words(reference)
        return (bool(words) and any(words <= name for name in names)) or any(
            is_described(reference, record, openings.get(record.doc_id, "")) for record in evidence.records
        )

    return tuple(document for document in missing if not is_found(document))


def _similar_names(reference: str, records: Sequence[DocumentRecord]) -> tuple[str, ...]:
    """Return up to three file names that are similar to `reference`, the most similar first."""
    ranked = sorted(
        (-max(similarity(reference, record.filename), similarity(reference, record.title)), record.filename)
        for record in records
    )
    return tuple(name for score, name in ranked if -score >= _MIN_SIMILARITY)[:_MAX_NEAREST]


def _is_certain(reference: str, records: Sequence[DocumentRecord]) -> bool:
    """Return whether a reference that matches no document is specific enough to exclude every other document.

    That is the case for file names, and for names that match a document except for their numbers.
    """
    if _FILE_NAME.search(reference):
        return True
    without_numbers = _NUMBER.sub("", reference)
    return without_numbers != reference and bool(match_reference(without_numbers, records))


def _narrowed_by_context(
    question: str, fitting: Sequence[DocumentRecord], cited_before: Sequence[str]
) -> tuple[DocumentRecord, ...]:
    """Return the documents that match best in the context: documents that share words with the question, or
    otherwise documents that the previous answer cited.

    Return all of them if neither helps.
    """
    if len(fitting) < 2:
        return tuple(fitting)
    narrowed = _by_distinguishing_words(question, fitting)
    if len(narrowed) < len(fitting):
        return tuple(narrowed)
    cited = tuple(record for record in fitting if record.doc_id in cited_before)
    return cited or tuple(fitting)


def _by_distinguishing_words(question: str, fitting: Sequence[DocumentRecord]) -> list[DocumentRecord]:
    """Return the documents that share the most distinguishing words with the question. Numbers such as years
    take precedence over words.
    """
    words_of_documents = [_all_words(record) for record in fitting]
    distinguishing = naming_words(question) - frozenset.intersection(*words_of_documents)
    numbers = frozenset(word for word in distinguishing if word.isdigit())
    for words in (numbers, distinguishing):
        matches = [
            (record, words & document_words)
            for record, document_words in zip(fitting, words_of_documents, strict=True)
        ]
        if any(hits for _, hits in matches):
            most = max(len(hits) for _, hits in matches)
            return [record for record, hits in matches if len(hits) == most]
    return list(fitting)


def _is_unclear(question: str, reference: str, fitting: Sequence[DocumentRecord]) -> bool:
    if _count_distinct(fitting) < 2 or len(fitting) > MAX_OPTIONS:
        return False
    if not all(fits_whole(reference, record) for record in fitting):
        # only part of the reference matches, so search these documents without offering them as options
        return False
    if _distinguishes_each(question, fitting):
        return False
    return not is_plural(reference, fitting)


def _count_distinct(fitting: Sequence[DocumentRecord]) -> int:
    """Return the number of documents that differ in their contents. Copies of a file count once."""
    same = (record.content_hash if not record.thread_id else "" for record in fitting)
    return len({content or record.doc_id for content, record in zip(same, fitting, strict=True)})


def _distinguishes_each(question: str, fitting: Sequence[DocumentRecord]) -> bool:
    """Return whether the question distinguishes every document by a word, such as "2023 and 2024", so that
    all of them are meant.
    """
    words = naming_words(question)
    words_of_documents = [_all_words(record) for record in fitting]
    shared = frozenset.intersection(*words_of_documents)
    words_of_each = [words & (own - shared) for own in words_of_documents]
    return all(words_of_each) and len(set(words_of_each)) > 1


def _excludes_single(question: str, reference: str) -> bool:
    """Return whether a quantifier such as "all" or "a" shows that the reference doesn't mean one particular
    document.
    """
    folded = reference.casefold()
    before, separator, _ = question.casefold().partition(folded)
    is_inside = not set(_QUANTIFIERS).isdisjoint(_WORD.findall(folded))
    return is_inside or bool(separator and _NOT_ONE.search(before))


def _all_words(record: DocumentRecord) -> frozenset[str]:
    people = (record.author or "", record.department or "")
    return naming_words(
        record.filename, record.title, record.document_type or "", *people, " ".join(record.tags)
    )
