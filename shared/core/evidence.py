"""Proving what an answer cites. Pure: finds the block in which a quotation stands, numbers citations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from shared.core.moments import clock_time, moment_url
from shared.core.quotes import is_verbatim, normalise
from shared.models.citations import Citation
from shared.models.search import Hit

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
