"""Selects the documents for a listing, or for a question about documents, by the filters of its plan.

Fields with a closed vocabulary (file type, language, dates) are filtered as given. Document types,
departments, authors and tags are free text: a filter selects the existing values that contain its words. If
there are none, the filter isn't applied, because the documents may use other words, and the prompt says so.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo

from shared.platform.search import DateRange, FacetValue, Filters
from shared.retrieval.document_names import fits_whole, naming_words, spelled_as_named
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunRequest
from shared.runs.plan import DATE_FIELDS, FilterField, PlanFilter, QueryType, QuestionPlan
from shared.tools.searches import caller_limits

_NEWEST = 100
_LISTED = 50
_MAX_VALUES = 100
_FREE_WORDS: frozenset[FilterField] = frozenset({"document_type", "department", "author", "tags"})
_READING: frozenset[QueryType] = frozenset({"CONTENT_SEARCH", "DOCUMENT_SUMMARY", "COMPARISON"})
_WORD = re.compile(r"[^\W_]+")


async def gather_documents(request: RunRequest, stored: StoredPlan, documents: DocumentSearch) -> Evidence:
    """Return at most 50 readable documents that match the filters of the plan, those that match its words
    first."""
    plan, limits = stored.plan, caller_limits(request)
    if stored.doc_ids and plan.query_type == "METADATA_SEARCH":
        return Evidence(records=tuple((await documents.get_many(stored.doc_ids)).values()))
    values_by_field = _by_field(plan.filters)
    applied = await _applied(request, values_by_field, documents)
    filters = {**limits, **applied}
    newest, all_count = await documents.newest(filters, _NEWEST)
    words = " ".join((plan.standalone_question, *plan.search_queries))
    matches = await documents.find(words, filters, _LISTED)
    total: int | None
    if matches and plan.query_type == "METADATA_SEARCH" and not applied:
        records, total = tuple(matches), None
    else:
        # The best matches come first. `total` also counts documents beyond the limit.
        total = all_count
        records = tuple({record.doc_id: record for record in [*matches, *newest]}.values())[:_LISTED]
    return Evidence(
        records=records,
        total=total,
        filters=_in_words({field: texts for field, texts in values_by_field.items() if field in applied}),
        unmatched=_in_words(
            {field: texts for field, texts in values_by_field.items() if field not in applied}
        ),
    )


async def documents_of_kind(
    request: RunRequest, plan: QuestionPlan, documents: DocumentSearch
) -> tuple[DocumentRecord, ...]:
    """Return the readable documents of the kind that the question asks about, such as "all contracts", newest
    first. At most 50 are returned.

    They have the kind's words in their names or types, and match the filters of the plan. If no document has
    these words, which may be in another language, all documents that match the filters are returned.
    """
    kind = plan.every.strip()
    if not kind or plan.query_type not in _READING:
        return ()
    applied = await _applied(request, _by_field(plan.filters), documents)
    filters = {**caller_limits(request), **applied}
    candidates = await documents.find_named(kind, filters) if naming_words(kind) else []
    spelled = spelled_as_named(kind, candidates)
    every = [record for record in candidates if fits_whole(spelled, record)]
    if not every and applied:
        every = (await documents.newest(filters, _LISTED))[0]
    return tuple(sorted(every, key=_date_and_name, reverse=True))


def _date_and_name(record: DocumentRecord) -> tuple[str, str]:
    return record.printed_date or record.upload_date.date().isoformat(), record.filename


async def _applied(
    request: RunRequest, values_by_field: Mapping[FilterField, Sequence[str]], documents: DocumentSearch
) -> Filters:
    """Return the search conditions for those filters of the plan that can be applied."""
    free_fields = sorted(values_by_field.keys() & _FREE_WORDS)
    limits = caller_limits(request)
    values = (await documents.facets(free_fields, limits, _MAX_VALUES))[0] if free_fields else {}
    conditions = {
        field: conditions_of(field, texts, values, ZoneInfo(request.timezone))
        for field, texts in values_by_field.items()
    }
    return {field: condition for field, condition in conditions.items() if condition is not None}


def conditions_of(
    field: FilterField,
    texts: Sequence[str],
    values: Mapping[str, Sequence[FacetValue]],
    zone: tzinfo,
) -> tuple[str, ...] | DateRange | None:
    """Convert one filter of the plan to a search condition. Return None if the filter can't be applied.

    Args:
        values: existing values by field, for free-text fields.
        zone: the user's time zone.
    """
    if field in DATE_FIELDS:
        # A date printed in a document is a calendar day without a time zone.
        return _days(texts, zone if field == "upload_date" else UTC)
    if field in _FREE_WORDS:
        existing = [str(value.value) for value in values.get(field, ())]
        matching = [value for text in texts for value in _matching_values(text, existing)]
        return tuple(dict.fromkeys(matching)) or None
    if field == "language":
        return tuple(text.lower().split("-")[0] for text in texts)
    return tuple(text.lower().removeprefix(".") for text in texts)


def _by_field(filters: Sequence[PlanFilter]) -> dict[FilterField, list[str]]:
    by_field: dict[FilterField, list[str]] = {}
    for plan_filter in filters:
        values = [value.strip() for value in plan_filter.values]
        if any(values):
            by_field.setdefault(plan_filter.field, []).extend(
                values if plan_filter.field in DATE_FIELDS else filter(None, values)
            )
    return by_field


def _days(texts: Sequence[str], zone: tzinfo) -> DateRange | None:
    """Return the range from the start of the first day to the end of the last day. A single date is both.
    Return None if a date is invalid or both are missing.
    """
    try:
        first, last = (
            date.fromisoformat(text) if text else None for text in (texts[0], texts[1 % len(texts)])
        )
    except ValueError:
        return None
    start = datetime.combine(first, time.min, zone).isoformat() if first else None
    end = datetime.combine(last, time.max, zone).isoformat() if last else None
    return DateRange(start=start, end=end) if start or end else None


def _matching_values(text: str, existing: Sequence[str]) -> list[str]:
    """Return the existing values that equal `text` in words. If there are none, return values that contain
    its words, or else have it as initials.

    Similar values contain the words, or have them as initials.
    """
    words = naming_words(text)
    if not words:
        return []
    equal = [value for value in existing if naming_words(value) == words]
    return (
        equal
        or [value for value in existing if words <= naming_words(value)]
        or [value for value in existing if _initials(value) == text.casefold()]
    )


def _initials(value: str) -> str:
    return "".join(word[0] for word in _WORD.findall(value.casefold()))


def _in_words(filters: Mapping[FilterField, Sequence[str]]) -> str:
    parts = []
    for field, values in filters.items():
        between = " to " if field in DATE_FIELDS else ", "
        parts.append(f"{field.replace('_', ' ')}: {between.join(dict.fromkeys(values))}")
    return "; ".join(parts)
