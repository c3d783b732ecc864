"""Creates the numbered citations of an answer and the markers that refer to them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from shared.evidence.alignment import OMISSION, Alignment, align
from shared.evidence.block_text import BlockText
from shared.evidence.cues import seconds_at
from shared.evidence.metadata_proof import metadata_text, prove_metadata
from shared.evidence.models import Citation, TableResult, WebPage
from shared.evidence.number_format import column_texts
from shared.evidence.source_links import clock_time, moment_url, source_address
from shared.evidence.untrusted_text import as_seen, markdown_name, one_line
from shared.platform.database_sources import is_database_id
from shared.platform.web_addresses import host_of
from shared.retrieval.models import DocumentRecord, Hit

_QUOTED_ROWS = 20
_MAX_PLACES = 3  # sources named in a marker; the citation lists all
_CONTEXT_CHARS = 400  # about one paragraph before and after a quotation

CITED_ID = "cited"
"""HTML id of the highlighted passage in the text view of a document."""


@dataclass
class CitationBook:
    """The numbered citations of one answer in order of appearance, with the evidence that they are checked
    against.

    Identical quotations from the same block share a number.

    Attributes:
        hits: the evidence: blocks shown to the model or used by sub-agents as proof.
        records: metadata by doc_id, which may be cited as well.
        run_id: the answer's run; empty if no view can look up its citations.
        pages: fetched web pages.
        shared_names: file names that several documents have; their markers include the publisher.
        source_urls: addresses that documents were taken from, by doc_id.
    """

    hits: tuple[Hit, ...]
    source_urls: Mapping[str, str] = field(default_factory=dict)
    run_id: str = ""
    records: Mapping[str, DocumentRecord] = field(default_factory=dict)
    pages: tuple[WebPage, ...] = ()
    shared_names: Collection[str] = ()
    citations: list[Citation] = field(default_factory=list)
    _blocks: dict[str, BlockText] = field(default_factory=dict)
    _open: dict[tuple[str, str], Citation] = field(default_factory=dict)

    def prove(self, doc_id: str, quote: str) -> tuple[Citation, bool] | None:
        """Return the citation that proves a quotation, and whether it is new. Return None if the evidence
        doesn't contain the quotation.

        The cited document is searched first. A quotation found in another document of the evidence is
        attributed to that document. Text takes precedence over captions, which a model wrote and which prove
        nothing; the cited document's metadata comes last. A web page proves only quotations that cite it, so
        outside text can't pass for a document's.
        """
        page = next((page for page in self.pages if page.doc_id == doc_id), None)
        if page is not None:
            return self._prove_page(page, quote)
        citation = self._find(
            quote, sorted(self.hits, key=lambda hit: (_is_image(hit), hit.doc_id != doc_id))
        )
        if citation is not None:
            return self._add(citation)
        record = self.records.get(doc_id)
        statement = prove_metadata(quote, record) if record is not None else None
        if record is None or statement is None:
            return None
        return self._add(self._metadata_citation(record, statement))

    def compute(self, result: TableResult, language: str = "en") -> tuple[Citation, bool]:
        """Return the citation of a table query result, and whether it is new. The same query on the same file
        shares one citation.

        Args:
            language: ISO 639-1 code of the answer.
        """
        first = result.tables[0]
        for earlier in self.citations:
            if (earlier.sql, earlier.content_hash) == (result.sql, first.content_hash):
                return earlier, False
        n = len(self.citations) + 1
        page = f"pages/{first.page_number}" if first.page_number is not None else "readable"
        view = _with_query(f"/api/documents/{first.doc_id}/{page}", self._led_by(n))
        in_german = language[:2].casefold() == "de" and bool(result.sql_in_german)
        words = result.sql_in_german if in_german else result.sql_in_words
        left_out = (cells.in_words(in_german=in_german) for cells in result.left_out)
        citation = Citation(
            n=n,
            kind="table",
            block_id="",
            published_by=self._publisher(first.doc_id),
            quote=_first_rows(result, language),
            verified=False,
            url="" if is_database_id(first.doc_id) else view,
            source_url=self._source_address(first.doc_id, first.filename, None),
            sql_in_words=" ".join((words, *left_out)),
            **first.model_dump(include={"doc_id", "filename", "page_number", "table_id", "content_hash"}),
            columns=result.labels or result.columns,
            **result.model_dump(include={"sql", "rows", "row_count", "source_rows", "tables"}),
        )
        self.citations.append(citation)
        return citation, True

    def marker(self, citation: Citation) -> str:
        """Return the text marker of a citation. It names the publisher if several documents have the same
        file name.
        """
        name = citation.filename
        is_shared = name in self.shared_names or any(
            hit.doc_id != citation.doc_id and as_seen(hit.filename) == as_seen(name) for hit in self.hits
        )
        return marker(citation, names_publisher=is_shared)

    def _prove_page(self, page: WebPage, quote: str) -> tuple[Citation, bool] | None:
        block = self._blocks.setdefault(page.doc_id, BlockText(page.text))
        alignment = align(quote, block)
        if alignment is None:
            return None
        return self._add(
            Citation(
                n=len(self.citations) + 1,
                kind="web",
                doc_id="",
                block_id="",
                filename=host_of(page.final_url).removeprefix("www."),
                quote=alignment.quote,
                verified=True,
                url=page.final_url,
                final_url=page.final_url,
                fetched_at=page.fetched_at,
                context=_around(alignment, block.text),
            )
        )

    def hold(self, doc_id: str, quote: str) -> tuple[Citation, bool] | None:
        """Reserve a citation number for a quotation that was not found and will be repaired later. Return the
        citation and whether it is new.

        Return None if the document is unknown, because there is nothing to repair the quotation from.
        """
        number = self._open.get((doc_id, quote))
        if number is not None:
            return number, False
        filename = next((hit.filename for hit in self.hits if hit.doc_id == doc_id), None)
        if filename is None:
            return None
        n = len(self.citations) + 1
        url = f"/api/documents/{doc_id}/readable"
        citation = Citation(
            n=n,
            doc_id=doc_id,
            block_id="",
            filename=filename,
            published_by=self._publisher(doc_id),
            quote="",
            verified=False,
            url=url,
            source_url=self._source_address(doc_id, filename, None),
        )
        self._open[doc_id, quote] = citation
        self.citations.append(citation)
        return citation, True

    def repair(self, n: int, quote: str, *, proves: Callable[[str], bool] = lambda _: True) -> Citation:
        """Replace reserved citation `n` with one for the repaired quotation, and return it. If the document
        doesn't contain the quotation, keep the unverified citation.

        Words of other documents don't count, because the file name is already shown.

        Args:
            proves: whether the quotation, in the words of the document, proves the claim.
        """
        citation = self.citations[n - 1]
        of_document = (hit for hit in self.hits if hit.doc_id == citation.doc_id and not _is_image(hit))
        repaired = self._find(quote, of_document, n)
        if repaired is None or not proves(repaired.quote):
            return citation
        self.citations[n - 1] = repaired
        return repaired

    def source_texts(self, citation: Citation) -> Iterator[str]:
        """Yield the texts of the cited document or page that belong to the evidence, with its metadata."""
        for hit in self.hits:
            if hit.doc_id == citation.doc_id:
                yield from (hit.filename, hit.heading_path, hit.content, hit.image_caption or "")
                yield str(hit.page_number or "")
        if record := self.records.get(citation.doc_id):
            yield metadata_text(record)
        for page in self.pages:
            if page.final_url == citation.final_url:
                yield from (page.final_url, page.title, page.published_at or "", page.text)

    def _find(self, quote: str, hits: Iterable[Hit], n: int | None = None) -> Citation | None:
        """Return a citation of the first block in `hits` that contains the quotation, or None if no block
        does. `n` defaults to the next free number.
        """
        n = n or len(self.citations) + 1
        for hit in hits:
            if (block := self._blocks.get(hit.block_id)) is None:
                text = (hit.image_caption or "") if _is_image(hit) else hit.content
                block = self._blocks[hit.block_id] = BlockText(text)
            if (alignment := align(quote, block)) is None:
                continue
            cue_s = seconds_at(hit.cues, block.text, alignment.start) if hit.cues else None
            moment_s = hit.start_seconds if cue_s is None else cue_s
            return Citation(
                n=n,
                doc_id=hit.doc_id,
                block_id=hit.block_id,
                filename=hit.filename,
                page_number=hit.page_number,
                start_seconds=moment_s,
                published_by=self._publisher(hit.doc_id),
                quote=alignment.quote,
                verified=not _is_image(hit),
                url=_view_url(hit, moment_s, self.source_urls.get(hit.doc_id), self._led_by(n)),
                source_url=self._source_address(hit.doc_id, hit.filename, hit.page_number),
            )
        return None

    def _metadata_citation(self, record: DocumentRecord, statement: str) -> Citation:
        n = len(self.citations) + 1
        return Citation(
            n=n,
            kind="metadata",
            doc_id=record.doc_id,
            block_id="",
            filename=record.filename,
            published_by=record.published_by,
            quote=statement,
            verified=False,
            url=_with_query(f"/api/documents/{record.doc_id}/readable", self._led_by(n)),
            source_url=self._source_address(record.doc_id, record.filename, None),
        )

    def _source_address(self, doc_id: str, filename: str, page_number: int | None) -> str | None:
        return source_address(self.source_urls.get(doc_id), filename, page_number)

    def _add(self, citation: Citation) -> tuple[Citation, bool]:
        for earlier in self.citations:
            if _source(earlier) == _source(citation):
                return earlier, False
        self.citations.append(citation)
        return citation, True

    def _publisher(self, doc_id: str) -> str | None:
        record = self.records.get(doc_id)
        return record.published_by if record is not None else None

    def _led_by(self, n: int) -> dict[str, str]:
        return {"run": self.run_id, "n": str(n)} if self.run_id else {}


# prevents a name from closing a marker or imitating a page number
_NO_BRACKETS = str.maketrans("()[],", "     ")
_KINDS = {"metadata": "metadata", "table": "computed"}


def _source(citation: Citation) -> tuple[str | None, ...]:
    return citation.doc_id, citation.block_id, citation.final_url, citation.quote


def marker(citation: Citation, *, names_publisher: bool = False) -> str:
    """Format the marker that follows a statement in an answer: ` (Source: manual.pdf, S. 3)[1]`.

    Other kinds are labelled: ` (Source: manual.pdf, S. 3, figure)[2]`, ` (Source: manual.pdf, metadata)[3]`,
    ` (Source: sales.xlsx, S. 1, computed)[4]`, ` (Source: example.org, web)[5]`. A moment of a recording is a
    link: ` (Source: talk.vtt, [01:23](…#t=83))[3]`. An unproved citation names its document only. A query
    over several sheets names each: ` (Source: sales.xlsx, S. 1; sales.xlsx, S. 2, computed)[4]`. With
    `names_publisher`, the publisher's name follows the first file name.
    """
    kind = ", web" if citation.kind == "web" else ""
    if citation.quote and not citation.verified:
        kind = f", {_KINDS.get(citation.kind, 'figure')}"
    moment = ""
    if citation.start_seconds is not None:
        moment = f", [{clock_time(citation.start_seconds)}]({citation.url})"
    publisher = citation.published_by if names_publisher else None
    first, *others = citation.places
    places = [source_place(*first, publisher), *(_place(*other) for other in others)]
    if len(places) > _MAX_PLACES:
        places[_MAX_PLACES:] = [f"{len(places) - _MAX_PLACES} more"]
    return f" ({'; '.join(places)}{moment}{kind})[{citation.n}]"


def source_place(filename: str, page_number: int | None, publisher: str | None = None) -> str:
    """Format the source of a citation: `Source: manual.pdf, S. 3`, or `Source: manual.pdf (Mara Ek), S. 3`
    with a publisher.
    """
    return f"Source: {_place(filename, page_number, publisher)}"


def _place(filename: str, page_number: int | None, publisher: str | None = None) -> str:
    page = f", S. {page_number}" if page_number is not None else ""
    name = markdown_name((publisher or "").translate(_NO_BRACKETS))
    return f"{markdown_name(filename)}{f' ({name})' if name else ''}{page}"


def _around(alignment: Alignment, text: str) -> str:
    """Return the quotation with up to 400 characters of context on either side, cut at word boundaries."""
    last = alignment.fragments[-1]
    end = max(text.find(last, alignment.start), alignment.start) + len(last)
    before, after = text[: alignment.start], text[end:]
    if len(before) > _CONTEXT_CHARS:
        before = OMISSION.lstrip() + before[-_CONTEXT_CHARS:].partition(" ")[2]
    if len(after) > _CONTEXT_CHARS:
        after = after[:_CONTEXT_CHARS].rpartition(" ")[0] + OMISSION.rstrip()
    return f"{before}{text[alignment.start : end]}{after}"


def _first_rows(result: TableResult, language: str) -> str:
    """Render the column names and first rows of a query result as a Markdown table, with numbers formatted
    for the language.
    """
    columns = result.labels or result.columns
    rows = result.rows[:_QUOTED_ROWS]
    cells = (
        column_texts([row[place] for row in rows], language, f"{name} {columns[place]}")
        for place, name in enumerate(result.columns)
    )
    lines = (
        [one_line(cell).replace("|", r"\|") for cell in line] for line in (columns, *zip(*cells, strict=True))
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _is_image(hit: Hit) -> bool:
    return hit.block_type == "image"


def _view_url(hit: Hit, moment_s: float | None, source_url: str | None, led_by: Mapping[str, str]) -> str:
    """Return the URL at which readers see the cited passage: on its page, at its time in a recording, or in
    the text view.

    The URL contains no words of the document, because platforms log URLs. The view locates the passage by run
    and citation number.
    """
    document = f"/api/documents/{hit.doc_id}"
    if hit.start_seconds is not None and moment_s is not None:
        # Without a run id, the view can't mark the passage and has anchors only at the starts of blocks.
        anchor = CITED_ID if led_by else f"t-{max(0, int(hit.start_seconds))}"
        own = f"{document}/readable?{urlencode({**led_by, 't': max(0, int(moment_s))})}#{anchor}"
        return moment_url(source_url, moment_s) or own
    if hit.page_number is not None:
        return _with_query(f"{document}/pages/{hit.page_number}", led_by)
    return _with_query(f"{document}/readable", led_by)


def _with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}#{CITED_ID}" if query else path
