"""Which documents a question is about, and whether to ask its author first. Pure.

Asked is only when one document is meant, several fit the words equally, and neither the rest of the question
nor the turn before tells which.
"""

import re
from collections.abc import Mapping, Sequence

from shared.core.document_names import (
    fits_whole,
    is_plural,
    match_reference,
    naming_words,
    spelled_as_named,
)
from shared.models.base import Model
from shared.models.clarification import ClarificationOption
from shared.models.documents import DocumentRecord
from shared.models.plan import QueryType

MAX_OPTIONS = 9  # one digit each; a name that fits more documents is too general to choose by
MAX_NAMED = 6  # documents that a search is narrowed to; more are no narrowing worth its risk
_ASKED_FOR: frozenset[QueryType] = frozenset({"CONTENT_SEARCH", "DOCUMENT_SUMMARY", "METADATA_SEARCH"})
_QUANTIFIERS = (
    "all both every each any either which what some several various most other no alle allen aller beide "
    "beiden beider jede jeder jedes jedem jeden sämtliche sämtlichen welche welcher welches welchen mehrere "
    "mehreren einige manche kein keine"
).split()
# "both of the", "all", "a": right before a reference they say that no single document is meant.
_NOT_ONE = re.compile(
    rf"\b(?:(?:{'|'.join(_QUANTIFIERS)})\s+(?:of\s+|von\s+)?(?:(?:the|our|these|those|der|den|die|unsere[rn]?)\s+)?"
    r"|(?:an?|einen?|einem|einer|eines|ein)\s+)$"
)
_WORD = re.compile(r"[^\W_]+")
_GERMAN = frozenset("der die das den dem ist sind wie wer was welche im und steht laut bitte fasse".split())


class Resolution(Model):
    """What the references of a question mean.

    Attributes:
        documents: those that are meant, each once; none when the question names none, or too many.
        reference, candidates: a reference of which only its author knows what it means, and what it may mean.
    """

    documents: tuple[DocumentRecord, ...] = ()
    reference: str = ""
    candidates: tuple[DocumentRecord, ...] = ()


def resolve_references(
    question: str,
    query_type: QueryType,
    found: Mapping[str, Sequence[DocumentRecord]],
    cited_before: Sequence[str] = (),
    *,
    may_ask: bool = True,
) -> Resolution:
    """Which documents a question is about.

    Args:
        question: standing alone, with the references in it.
        found: reference -> documents that it may mean, as a search found them.
        cited_before: ids of documents that the answer before cited: what is spoken of goes on being meant.
        may_ask: False when the caller chose the documents.
    """
    named: dict[str, DocumentRecord] = {}
    unclear = ""
    candidates: tuple[DocumentRecord, ...] = ()
    for reference, records in found.items():
        name = spelled_as_named(reference, records)
        fitting = _told_by_context(question, match_reference(name, records), cited_before)
        asks = may_ask and not unclear and query_type in _ASKED_FOR
        if asks and not _means_not_one(question, reference) and _is_unclear(question, name, fitting):
            unclear, candidates = reference, fitting
        else:
            named |= {record.doc_id: record for record in fitting}
    documents = tuple(named.values()) if len(named) <= MAX_NAMED else ()
    return Resolution(documents=documents, reference=unclear, candidates=candidates)


def options_of(candidates: Sequence[DocumentRecord]) -> tuple[ClarificationOption, ...]:
    """Documents as numbered options."""
    return tuple(
        ClarificationOption(
            number=number,
            doc_id=record.doc_id,
            filename=record.filename,
            title=record.title,
            date=record.upload_date.date().isoformat(),
        )
        for number, record in enumerate(candidates, start=1)
    )


def question_back(question: str, reference: str, option_count: int) -> str:
    """What the author is asked, in German for a German question, else in English."""
    if len(_GERMAN & set(_WORD.findall(question.casefold()))) > 1:
        return (
            f"„{reference}“ kann {option_count} Dokumente meinen. Welches ist gemeint? "
            "Antworten Sie mit der Nummer oder in eigenen Worten."
        )
    return (
        f"“{reference}” may mean {option_count} documents. Which one do you mean? "
        "Answer with its number, or in your own words."
    )


def event_name(ask_step: int) -> str:
    """The external event that says that a question was answered: one name per question."""
    return f"answered-{ask_step}"


def _told_by_context(
    question: str, fitting: Sequence[DocumentRecord], cited_before: Sequence[str]
) -> tuple[DocumentRecord, ...]:
    """Those that the rest of the question, or else the turn before, speaks of; all when it tells nothing."""
    if len(fitting) < 2:
        return tuple(fitting)
    told = _told_apart(question, fitting)
    if len(told) < len(fitting):
        return tuple(told)
    cited = tuple(record for record in fitting if record.doc_id in cited_before)
    return cited or tuple(fitting)


def _told_apart(question: str, fitting: Sequence[DocumentRecord]) -> list[DocumentRecord]:
    """The documents with the most words of the question that not all of them bear; numbers count first."""
    bearing = [_all_words(record) for record in fitting]
    telling = naming_words(question) - frozenset.intersection(*bearing)
    numbers = frozenset(word for word in telling if word.isdigit())
    for words in (numbers, telling):
        told = [(record, words & borne) for record, borne in zip(fitting, bearing, strict=True)]
        if any(hits for _, hits in told):
            most = max(len(hits) for _, hits in told)
            return [record for record, hits in told if len(hits) == most]
    return list(fitting)


def _is_unclear(question: str, reference: str, fitting: Sequence[DocumentRecord]) -> bool:
    if _different(fitting) < 2 or len(fitting) > MAX_OPTIONS:
        return False
    if not all(fits_whole(reference, record) for record in fitting):
        return False  # words were left out: the search may look there, but nobody named them
    if _each_is_told(question, fitting):
        return False
    return not is_plural(reference, fitting)


def _different(fitting: Sequence[DocumentRecord]) -> int:
    """How many different contents: copies of one file are no choice."""
    return len({record.content_hash or record.doc_id for record in fitting})


def _each_is_told(question: str, fitting: Sequence[DocumentRecord]) -> bool:
    """The question names each by a word of its own: "2023 and 2024"."""
    words = naming_words(question)
    bearing = [_all_words(record) for record in fitting]
    shared = frozenset.intersection(*bearing)
    told = [words & (borne - shared) for borne in bearing]
    return all(told) and len(set(told)) > 1


def _means_not_one(question: str, reference: str) -> bool:
    """Whether a word right before the reference, or in it, says that no single document is meant."""
    named = reference.casefold()
    before, found, _ = question.casefold().partition(named)
    is_inside = not set(_QUANTIFIERS).isdisjoint(_WORD.findall(named))
    return is_inside or bool(found and _NOT_ONE.search(before))


def _all_words(record: DocumentRecord) -> frozenset[str]:
    people = (record.author or "", record.department or "")
    return naming_words(
        record.filename, record.title, record.document_type or "", *people, " ".join(record.tags)
    )
