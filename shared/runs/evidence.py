"""What a question is answered from: its plan, and what was found for it. Pure."""

from datetime import datetime

from shared.access.models import UserContext
from shared.platform.models import Model
from shared.retrieval.models import DocumentRecord, Hit, ReadableDocuments
from shared.runs.models import ClarificationOption
from shared.runs.plan import QuestionPlan

# Of the best score. Of 16 questions over the samples, those that needed a picture had it at .77 to .86; half
# of the pictures that had nothing to do with a question lay at .33 to .61.
_NEAR_BEST = 0.7


TABLE_SUFFIXES = (".csv", ".tsv", ".xlsx", ".xlsm")


class MissingDocument(Model):
    """A document that a question names and that there is not, or not for the person who asks.

    Attributes:
        nearest: file names that come nearest, of documents that the person may read.
        is_certain: the name is a file's, or holds a number that no document has. Another name may be a
            description in words that the document does not use.
    """

    reference: str
    nearest: tuple[str, ...] = ()
    is_certain: bool = False


class StoredPlan(Model):
    """The plan whole; the loop's state carries only its type, intent and todo list.

    Attributes:
        doc_ids: of the documents that the plan's references mean; empty when they mean none.
        is_choice: a person chose the documents: no search may leave them.
        missing: names that the question gives to documents, of which no document has one.
        reference, options: a reference that may mean each of several documents, and these.
        resumed_at: when the run went on after a wait for a person; None = it did not wait.
        asker: whose rights count since then; None = those that the question came with.
        warnings: what did not go as it should, in words.
    """

    plan: QuestionPlan
    doc_ids: tuple[str, ...] = ()
    missing: tuple["MissingDocument", ...] = ()
    is_choice: bool = False
    reference: str = ""
    options: tuple[ClarificationOption, ...] = ()
    resumed_at: datetime | None = None
    asker: UserContext | None = None
    warnings: tuple[str, ...] = ()

    @property
    def names_only_missing(self) -> bool:
        """Whether it is about documents that there are not: no other one is summarised in their place."""
        is_about_documents = self.plan.query_type in ("DOCUMENT_SUMMARY", "COMPARISON", "METADATA_SEARCH")
        is_missing = bool(self.missing) and all(document.is_certain for document in self.missing)
        return is_about_documents and is_missing and not self.doc_ids


class TableCard(Model):
    """A table that a question may be calculated from, as a prompt shows it: `text` is JSON."""

    doc_id: str
    text: str


class Evidence(Model):
    """What an answer may be written from.

    Attributes:
        hits: blocks, best first, the rest of `whole` documents behind; empty for listing and metadata
            questions.
        cited_before: blocks that the answer before cited, read again: a question may continue with it.
        whole: ids of documents of which all blocks are among `hits`.
        figures: the best pictures on the pages of these blocks.
        records: metadata of every document that occurs; for listings in the order to show.
        filters: what `records` were narrowed to, in words; empty = to nothing.
        unmatched: filters of the plan that no document meets, and which were not applied, in words.
        missing: documents that the question names and that there are not.
        tables: that fit a question which takes calculating.
        unreadable: documents that the question is about and that have no text to search.
        unique_names: names of files that no other document has that the person may read.
        total: how many documents there are in all, where `records` are the first of them; else None.
        warnings: what did not go as it should, in words.
        unfinished: the search was not waited for to its end, so that nothing here says nothing.
    """

    hits: tuple[Hit, ...] = ()
    cited_before: tuple[Hit, ...] = ()
    whole: tuple[str, ...] = ()
    figures: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    narrowed: bool = False
    filters: str = ""
    unmatched: str = ""
    missing: tuple[MissingDocument, ...] = ()
    tables: tuple[TableCard, ...] = ()
    unreadable: tuple[DocumentRecord, ...] = ()
    unique_names: tuple[str, ...] = ()
    total: int | None = None
    warnings: tuple[str, ...] = ()
    unfinished: bool = False

    @property
    def blocks(self) -> tuple[Hit, ...]:
        """What the model is shown, each block once."""
        return tuple({hit.block_id: hit for hit in (*self.hits, *self.cited_before, *self.figures)}.values())

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to read of any document that was found."""
        return bool(self.hits) and {hit.doc_id for hit in self.hits} <= set(self.whole)

    @property
    def has_tables(self) -> bool:
        """Whether tables can be calculated with: some fit, or what was found is from a spreadsheet."""
        names = (hit.filename for hit in self.hits)
        return bool(self.tables) or any(name.casefold().endswith(TABLE_SUFFIXES) for name in names)

    @property
    def doc_ids(self) -> set[str]:
        """Ids of all documents and databases that occur."""
        records = (*self.records, *self.unreadable)
        return {
            *(hit.doc_id for hit in self.blocks),
            *(record.doc_id for record in records),
            *(table.doc_id for table in self.tables),
        }

    def only_readable(self, documents: ReadableDocuments) -> "Evidence":
        """Return the part that the asker may read now."""
        of_documents = {
            name: tuple(one for one in getattr(self, name) if one.doc_id in documents)
            for name in ("records", "tables", "unreadable")
        }
        of_blocks = {
            name: tuple(hit for hit in getattr(self, name) if documents.admits(hit))
            for name in ("hits", "cited_before", "figures")
        }
        lost = {hit.doc_id for hit in self.blocks if not documents.admits(hit)}
        whole = tuple(doc_id for doc_id in self.whole if doc_id not in lost)
        return self.model_copy(update={**of_documents, **of_blocks, "whole": whole})

    def best_figures(self, most: int) -> tuple[Hit, ...]:
        """The pictures that the search found to fit nearly as well as the best block, best first."""
        least = _NEAR_BEST * max((hit.score for hit in self.hits), default=0.0)
        pictures = [hit for hit in self.hits if hit.block_type == "image" and hit.score >= least > 0]
        return tuple(sorted(pictures, key=lambda hit: -hit.score)[:most])
