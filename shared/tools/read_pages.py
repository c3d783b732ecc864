"""The tool `read_pages`, which reads consecutive pages of a document."""

from dataclasses import dataclass, field
from typing import Self

from pydantic import Field

from shared.evidence.document_prompt import unreadable
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.runs.provenance import UsedDocument
from shared.tools.base import Parameters, Tool, ToolEvidence, ToolResult
from shared.tools.binding import Binding
from shared.tools.semantic_search import search_results

# Maximum number of pages per call.
MAX_PAGES = 10


class ReadPagesParameters(Parameters):
    """Arguments of `read_pages`."""

    doc_id: str = Field(description="doc_id of the document.", min_length=1, max_length=1000)
    first: int = Field(default=1, ge=1, description="The first page, counted from 1.")
    last: int = Field(
        default=0,
        ge=0,
        description=f"The last page; 0 reads `first` only. At most {MAX_PAGES} pages are read.",
    )


@dataclass(frozen=True)
class ReadPages(Tool):
    """Reads up to ten consecutive pages of a document that the user may read."""

    blocks: DocumentBlocks
    documents: DocumentSearch
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    name = "read_pages"
    description = (
        "Read consecutive pages of a document: the text around a passage, or a whole short document. "
        "A document without pages counts as one page."
    )
    parameters = ReadPagesParameters
    documentation = "Up to ten pages of a document in reading order; the same `results`."
    example = '{"doc_id": "manual"}'
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(DocumentBlocks(binding.blocks), DocumentSearch(binding.documents), binding.evidence)

    async def _run(self, arguments: ReadPagesParameters) -> ToolResult:
        first = arguments.first
        last = min(max(arguments.last, first), first + MAX_PAGES - 1)
        hits = await self.blocks.pages(arguments.doc_id, first, last)
        self.evidence.hits.extend(hits)
        if not hits:
            return {**search_results(hits, {}), "hints": [await self._why_empty(arguments)]}
        return search_results(hits, {})

    async def _why_empty(self, arguments: ReadPagesParameters) -> str:
        """Return a hint that explains why the requested pages contain nothing: they don't exist, or have no
        text.

        Raises:
            DocumentNotFoundError: there is no such document, or the user may not read it.
        """
        record = await self.documents.get(arguments.doc_id)
        self.evidence.documents.append(UsedDocument(doc_id=record.doc_id, version=record.version))
        pages = record.page_count
        if pages is not None and arguments.first > pages:
            return f"{record.filename} has {pages} pages."
        if await self.blocks.whole(arguments.doc_id):
            return f"These pages of {record.filename} have no readable text; others do."
        return f"{unreadable(record)} Say so; other documents can't replace it."
