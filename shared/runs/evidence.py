"""The plan of a question and the evidence found for it. Pure."""

from datetime import datetime

from shared.access.models import UserContext
from shared.platform.models import Model
from shared.platform.names import TABLE_SUFFIXES
from shared.retrieval.models import DocumentRecord, Hit, ReadableDocuments
from shared.runs.models import ClarificationOption
from shared.runs.plan import QuestionPlan
from shared.runs.provenance import UNKNOWN, Provenance, UsedDocument

# Minimum score of a figure that the answer should show, as a share of the best block's score. In 16 questions
# about the samples, required figures had a share of 0.77 to 0.86, and half of the others 0.33 to 0.61.
_NEAR_BEST = 0.7


class MissingDocument(Model):
    """A document that the question names but the user cannot read, or that doesn't exist.

    Attributes:
        nearest: most similar file names among the documents that the user may read.
        is_certain: the reference is a file name or contains a number that no document has. Other references
            may describe a document in words that it doesn't use.
    """

    reference: str
    nearest: tuple[str, ...] = ()
    is_certain: bool = False


class StoredPlan(Model):
    """The complete plan of a question, as stored in the journal. The loop state holds only the question's
    type, its intent and the todo list.

    Attributes:
        doc_ids: documents matched by the plan's references; empty if none match.
        every_ids: all documents of the kind that the question asks about; `doc_ids` are those to be read.
        is_choice: a user chose the documents, so searches must stay within them.
        missing: document references in the question that match no document.
        reference, options: an ambiguous reference, and the documents that match it.
        named: documents whose names `options` and `missing` show.
        files: the thread's own files that can be searched.
        resumed_at: when the run resumed after a clarification, or began after its files had been read; None
            = it did not wait.
        asker: user whose permissions apply since then; None = the request's user.
        warnings: problems, in words.
    """

    plan: QuestionPlan
    doc_ids: tuple[str, ...] = ()
    every_ids: tuple[str, ...] = ()
    missing: tuple["MissingDocument", ...] = ()
    is_choice: bool = False
    reference: str = ""
    options: tuple[ClarificationOption, ...] = ()
    named: tuple[UsedDocument, ...] = ()
    files: tuple["ReadFile", ...] = ()
    resumed_at: datetime | None = None
    asker: UserContext | None = None
    warnings: tuple[str, ...] = ()

    @property
    def provenance(self) -> Provenance:
        """The documents whose names occur in the plan, as part of the answer's provenance."""
        listed = {option.doc_id for option in self.options if option.doc_id}
        has_names = listed or any(document.nearest for document in self.missing)
        is_complete = listed <= {document.doc_id for document in self.named}
        if has_names and not (self.named and is_complete):
            return UNKNOWN
        return Provenance.of(*self.named, *(file.document for file in self.files))

    @property
    def names_only_missing(self) -> bool:
        """Whether the question is only about missing documents, in which case no other documents are
        searched.
        """
        is_about_documents = self.plan.query_type in ("DOCUMENT_SUMMARY", "COMPARISON", "METADATA_SEARCH")
        is_missing = bool(self.missing) and all(document.is_certain for document in self.missing)
        return is_about_documents and is_missing and not self.doc_ids


class ReadFile(Model):
    """A file of the thread that has been ingested, with the name used in prompts."""

    document: UsedDocument
    filename: str


class TableCard(Model):
    """A table for calculations, as shown in a prompt. `text` is JSON."""

    doc_id: str
    version: int = 0
    text: str


class Evidence(Model):
    """All material on which the answer may be based.

    Attributes:
        hits: blocks, best first, followed by the remaining blocks of `whole` documents; empty for listing and
            metadata questions.
        cited_before: blocks cited by the previous answer, read again because follow-up questions may need
            them.
        whole: ids of documents whose blocks are all among `hits`.
        figures: the best figures on the pages of these blocks.
        records: metadata of all documents involved; for listings in display order.
        every: all documents of the kind that the question asks about, whether read or not.
        filters: filters applied to `records`, in words; empty = none.
        unmatched: filters of the plan that match no document and were not applied, in words.
        missing: documents that the question names, but that were not found.
        tables: tables that match a question requiring calculation.
        unreadable: documents relevant to the question that have no searchable text.
        unique_names: file names that occur only once among the documents that the user may read.
        total: number of matching documents if `records` contains only the first ones; otherwise None.
        warnings: problems, in words.
        unfinished: the search was cut short, so empty evidence proves nothing.
    """

    hits: tuple[Hit, ...] = ()
    cited_before: tuple[Hit, ...] = ()
    whole: tuple[str, ...] = ()
    figures: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    every: tuple[DocumentRecord, ...] = ()
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
        """All blocks shown to the model, without duplicates."""
        return tuple({hit.block_id: hit for hit in (*self.hits, *self.cited_before, *self.figures)}.values())

    @property
    def is_whole(self) -> bool:
        """Whether `hits` contains every block of each document that was found, so that no passage was left
        out.
        """
        return bool(self.hits) and {hit.doc_id for hit in self.hits} <= set(self.whole)

    @property
    def has_tables(self) -> bool:
        """Whether tables are available for calculations: a matching table, or a hit from a spreadsheet."""
        names = (hit.filename for hit in self.hits)
        return bool(self.tables) or any(name.casefold().endswith(TABLE_SUFFIXES) for name in names)

    @property
    def doc_ids_shown(self) -> set[str]:
        """Ids of the documents of which the model sees a passage or a table."""
        return {*(hit.doc_id for hit in self.blocks), *(table.doc_id for table in self.tables)}

    @property
    def doc_ids(self) -> set[str]:
        """Ids of all documents and databases that the evidence comes from."""
        records = (*self.records, *self.unreadable, *self.every)
        return self.doc_ids_shown | {record.doc_id for record in records}

    @property
    def provenance(self) -> Provenance:
        """The documents in the evidence."""
        cards = [UsedDocument(doc_id=table.doc_id, version=table.version) for table in self.tables]
        counts = self.total is not None and self.total > len(self.records)
        return Provenance.joined(
            (
                Provenance.of(*self.blocks, *self.records, *self.unreadable, *self.every, *cards),
                Provenance(obstacles=("counts",) if counts else ()),
            )
        )

    def only_readable(self, documents: ReadableDocuments) -> "Evidence":
        """Return the evidence without documents that the user can no longer read."""
        of_documents = {
            name: tuple(one for one in getattr(self, name) if one.doc_id in documents)
            for name in ("records", "tables", "unreadable", "every")
        }
        of_blocks = {
            name: tuple(hit for hit in getattr(self, name) if documents.admits(hit))
            for name in ("hits", "cited_before", "figures")
        }
        lost = {hit.doc_id for hit in self.blocks if not documents.admits(hit)}
        whole = tuple(doc_id for doc_id in self.whole if doc_id not in lost)
        return self.model_copy(update={**of_documents, **of_blocks, "whole": whole})

    def best_figures(self, most: int) -> tuple[Hit, ...]:
        """Return up to `most` figures that scored nearly as well as the best block, best first."""
        least = _NEAR_BEST * max((hit.score for hit in self.hits), default=0.0)
        pictures = [hit for hit in self.hits if hit.block_type == "image" and hit.score >= least > 0]
        return tuple(sorted(pictures, key=lambda hit: -hit.score)[:most])
