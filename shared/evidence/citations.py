"""The citations of an answer, how they are shown, and conflicts between them.

Two proved quotations of different documents conflict when they share most of their words, but differ in their
numbers or in whether they deny something. Quotations that name different years or different products don't
conflict.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from shared.evidence.document_prompt import clock_time, moment_url
from shared.evidence.models import Citation, Conflict
from shared.evidence.quotes import is_verbatim, normalise
from shared.evidence.reader_text import readable
from shared.retrieval.models import Hit

_MARKUP = re.compile(r"[\\`*|\[\]]|(?<![^\W_])_|_(?![^\W_])")  # an underscore inside a word is none
CITED_ID = "cited"
"""The anchor of the marked passage in a view of its document."""

_ENTITY_START = re.compile(r"&(?=#?\w+;)")


@dataclass
class CitationBook:
    """The citations of one answer, numbered from 1 in order of appearance.

    The same quotation of the same block keeps its number.

    Attributes:
        run_id: of the run whose answer it is; empty where views cannot look a citation up.
        source_urls: where a recording can be seen, by doc_id, for those that were taken from elsewhere.
    """

    hits: tuple[Hit, ...]
    source_urls: Mapping[str, str] = field(default_factory=dict)
    run_id: str = ""
    citations: list[Citation] = field(default_factory=list)

    def prove(self, doc_id: str, quote: str) -> tuple[Citation, bool] | None:
        """The citation for a quotation, and whether it is new; None when no block holds the quotation.

        The cited document is searched first. A quotation that stands in another document of the evidence is
        cited from there: what is shown is where it really stands. Text comes before captions: a caption is a
        model's description of a picture, so a quotation from one points to it and proves nothing.
        """
        ordered = sorted(self.hits, key=lambda hit: (hit.block_type == "image", hit.doc_id != doc_id))
        proof = next((hit for hit in ordered if is_verbatim(quote, _shown_text(hit))), None)
        return None if proof is None else self._cite(proof, quote)

    def _cite(self, hit: Hit, quote: str) -> tuple[Citation, bool]:
        wanted = normalise(quote)
        for known in self.citations:
            if known.block_id == hit.block_id and normalise(known.quote) == wanted:
                return known, False
        n = len(self.citations) + 1
        led_by = {"run": self.run_id, "n": str(n)} if self.run_id else {}
        citation = Citation(
            n=n,
            doc_id=hit.doc_id,
            block_id=hit.block_id,
            filename=hit.filename,
            page_number=hit.page_number,
            start_seconds=hit.start_seconds,
            quote=quote,
            verified=hit.block_type == "text",
            url=_view_url(hit, self.source_urls.get(hit.doc_id), led_by),
        )
        self.citations.append(citation)
        return citation, True


def marker(citation: Citation) -> str:
    """What stands in the text for a citation: ` (Source: manual.pdf, S. 3)[1]`.

    One that points to a picture says so: ` (Source: manual.pdf, S. 3, figure)[2]`. A moment of a recording is
    a link to it: ` (Source: talk.vtt, [01:23](…#t=83))[3]`.
    """
    kind = "" if citation.verified else ", figure"
    moment = ""
    if citation.start_seconds is not None:
        moment = f", [{clock_time(citation.start_seconds)}]({citation.url})"
    place = source_place(citation.filename, citation.page_number)
    return f" ({place}{moment}{kind})[{citation.n}]"


def source_place(filename: str, page_number: int | None) -> str:
    """`Source: manual.pdf, S. 3`, without the parentheses around it.

    White space in a file name is made single blanks; what Markdown or HTML would read as a sign is escaped.
    """
    name = _MARKUP.sub(r"\\\g<0>", " ".join(filename.split()))
    name = _ENTITY_START.sub("&amp;", name).replace("<", "&lt;").replace(">", "&gt;")
    page = f", S. {page_number}" if page_number is not None else ""
    return f"Source: {name}{page}"


def _shown_text(hit: Hit) -> str:
    return (hit.image_caption or "") if hit.block_type == "image" else hit.content


def _view_url(hit: Hit, source_url: str | None, led_by: Mapping[str, str]) -> str:
    """Where a reader sees the passage: its page, the moment of a recording, else the text around it.

    No word of the document is in it: platforms log addresses. The view finds the passage by run and number.
    """
    document = f"/api/documents/{hit.doc_id}"
    if hit.start_seconds is not None:
        moment = moment_url(source_url, hit.start_seconds)
        second = max(0, int(hit.start_seconds))
        return moment or f"{document}/readable?{urlencode({**led_by, 't': second})}#t-{second}"
    if hit.page_number is not None:
        return _with_query(f"{document}/pages/{hit.page_number}", led_by)
    return _with_query(f"{document}/readable", led_by)


def _with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}#{CITED_ID}" if query else path


_MIN_SHARED_WORDS = 3
_LIKENESS = 0.6  # shared words of all words, numbers left out; unmeasured
_MAX_CONFLICTS = 3
_MAX_QUOTE_CHARS = 160
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\d+(?:[.,'\u2009 ]\d{3})*(?:[.,]\d+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CODE = re.compile(r"\b[^\W\d_]+[\w-]*\d[\w-]*")
_DENYING = frozenset(
    "no not never without nor kein keine keinen keinem keiner nicht nie niemals ohne".split()
)


def find_conflicts(citations: Sequence[Citation]) -> list[Conflict]:
    """Pairs of citations that conflict, each document pair at most once, in the order of the citations."""
    found: list[Conflict] = []
    seen: set[frozenset[str]] = set()
    proved = [citation for citation in citations if citation.verified]
    for place, first in enumerate(proved):
        for second in proved[place + 1 :]:
            pair = frozenset((first.doc_id, second.doc_id))
            if len(pair) == 2 and pair not in seen and _conflict(first.quote, second.quote):
                seen.add(pair)
                found.append(Conflict(first=first.n, second=second.n))
    return found[:_MAX_CONFLICTS]


def is_named(conflict: Conflict, text: str) -> bool:
    """Whether the answer sets the two beside each other: one line, or row of a table, cites both."""
    marks = (f"[{conflict.first}]", f"[{conflict.second}]")
    return any(all(mark in line for mark in marks) for line in text.split("\n"))


def describe(conflict: Conflict, citations: Sequence[Citation], dates: Mapping[str, datetime]) -> str:
    """`“…” (Source: a.pdf, S. 1)[1], 2023-05-01; “…” (Source: b.pdf, S. 2)[2], 2024-05-01`.

    Args:
        dates: of the documents, by doc_id.
    """
    numbered = {citation.n: citation for citation in citations}
    sides = (numbered[conflict.first], numbered[conflict.second])
    return "; ".join(_side(citation, dates.get(citation.doc_id)) for citation in sides)


def _side(citation: Citation, date: datetime | None) -> str:
    quote = " ".join(citation.quote.split())
    short = quote if len(quote) <= _MAX_QUOTE_CHARS else quote[:_MAX_QUOTE_CHARS].rpartition(" ")[0] + " …"
    day = f", {date.date().isoformat()}" if date else ""
    return f"“{readable(short)}”{marker(citation)}{day}"


def _conflict(first: str, second: str) -> bool:
    one, other = normalise(first), normalise(second)
    words, others = _words(one), _words(other)
    shared = (words & others) - _DENYING
    likeness = len(shared) / max(1, len((words | others) - _DENYING))
    if len(shared) < _MIN_SHARED_WORDS or likeness < _LIKENESS:
        return False
    if _years(one) != _years(other) or _codes(one) != _codes(other):
        return False
    return _numbers(one) != _numbers(other) or bool(words & _DENYING) != bool(others & _DENYING)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _years(text: str) -> set[str]:
    return set(_YEAR.findall(text))


def _codes(text: str) -> set[str]:
    """Names with digits in them, such as X200: two products are two things."""
    return set(_CODE.findall(text))


def _numbers(text: str) -> Counter[str]:
    return Counter(re.sub(r"[ \u2009']", "", number) for number in _NUMBER.findall(text))
