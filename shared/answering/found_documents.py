"""What is known about the documents of found passages: records, unique names, and which are short."""

import asyncio
from collections.abc import Collection, Mapping

from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError
from shared.platform.telemetry import get_logger
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord

# Time limit of a search by document ids, which takes 10 ms.
DESCRIBING_S = 2.0


class FoundDocuments:
    """The documents of a question's passages, described once each.

    Attributes:
        records: by document id; documents that were not described in time are missing.
        unique_names: file names that no other readable document has.
    """

    def __init__(self, documents: DocumentSearch, blocks: DocumentBlocks) -> None:
        self._documents = documents
        self._blocks = blocks
        self._ids_of_short: dict[str, set[str]] = {}
        self.records: dict[str, DocumentRecord] = {}
        self.unique_names: set[str] = set()

    async def describe(self, filenames: Mapping[str, str]) -> None:
        """Look up the records of documents, which file names are unique, and which documents are short. A
        timeout is only logged.

        Args:
            filenames: file names by document; empty if not yet known.
        """
        unknown = {doc_id: name for doc_id, name in filenames.items() if doc_id not in self.records}
        if not unknown:
            return
        try:
            async with asyncio.timeout(DESCRIBING_S):
                (records, unique), short = await run_together(
                    self._documents.get_with_namesakes(
                        sorted(unknown), sorted(filter(None, set(unknown.values())))
                    ),
                    self._blocks.ids_of_short(sorted(unknown)),
                )
                self.records |= records
                self.unique_names |= unique
                self._ids_of_short |= short
        except (TimeoutError, CallTimeoutError):
            get_logger().warning("documents.metadata_late", error_type=CallTimeoutError.code)

    def is_whole(self, doc_id: str, block_ids: Collection[str]) -> bool:
        """Return whether these blocks are all that a document has. False unless it is known to be short."""
        return doc_id in self._ids_of_short and self._ids_of_short[doc_id].issubset(block_ids)
