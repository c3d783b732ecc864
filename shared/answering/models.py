"""Values that the steps of a run keep for later steps. Pure."""

from shared.evidence.models import TableResult, WebPage
from shared.platform.language_models.models import Message
from shared.platform.models import Model
from shared.retrieval.models import DocumentRecord, Hit, ReadableDocuments
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunAnswer
from shared.tools.tool_calls import PlannedCall


class Preparation(Model):
    """The plan of a question, and what was found for it.

    Attributes:
        evidence: None while it is not known which documents are meant: `stored.options` are to be shown.
    """

    stored: StoredPlan
    evidence: Evidence | None = None


class Gap(Model):
    """What the model could not find in what it was shown.

    Attributes:
        missing: in words, to search for and to show.
        next_step: what the reader can do if it is not found.
    """

    missing: str
    next_step: str = ""


class Turn(Model):
    """One turn of the model, as it is stored: the first attempt to be stored counts.

    Attributes:
        said: its text, as the model sees it again.
        calls: its tool calls, those refused included; the next turn makes them.
        gaps: those that the next turn searches for.
        answer: as far as it is written, by this turn and those before it.
        advice: of the delegation policy, in the first turn's prompt and so in all.
        asks_consent: its calls wait until the person has allowed the web.
        is_last: the answer is whole: no turn follows.
    """

    said: str
    calls: tuple[PlannedCall, ...] = ()
    gaps: tuple[Gap, ...] = ()
    answer: RunAnswer
    advice: str = ""
    asks_consent: bool = False
    is_last: bool = False


class HeldResult(Model):
    """The result of a call that the loop carried out: its text, and what may be quoted from now on."""

    text: str
    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()


class TurnResults(Model):
    """What the calls of a turn brought, and the searches for its gaps.

    Attributes:
        messages: as the model sees them, behind its turn.
        hits, records: what may be quoted from now on.
        figures: those whose pictures the model asked to see.
        tables: results of queries over tables, which may be cited from now on.
        pages: of the web, which may be quoted from now on; the snapshots that prove it.
        found_urls: of pages that searches of the web found, which may be read from now on.
        not_searched: what gaps miss whose search failed.
    """

    messages: tuple[Message, ...]
    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    figures: tuple[Hit, ...] = ()
    tables: tuple[TableResult, ...] = ()
    pages: tuple[WebPage, ...] = ()
    found_urls: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()

    @property
    def table_doc_ids(self) -> set[str]:
        """The documents whose tables were queried."""
        return {table.doc_id for result in self.tables for table in result.tables}

    @property
    def doc_ids_without_hits(self) -> set[str]:
        """The documents that only tables or records were found of."""
        of_hits = {hit.doc_id for hit in (*self.hits, *self.figures)}
        return self.table_doc_ids | {record.doc_id for record in self.records} - of_hits

    @property
    def doc_ids(self) -> set[str]:
        """Ids of all documents and databases that occur."""
        return self.doc_ids_without_hits | {hit.doc_id for hit in (*self.hits, *self.figures)}

    def is_readable(self, documents: ReadableDocuments) -> bool:
        """Return whether the asker may read all of it now."""
        blocks = (*self.hits, *self.figures)
        return all(map(documents.admits, blocks)) and all(
            doc_id in documents for doc_id in self.doc_ids_without_hits
        )

    @property
    def withdrawn(self) -> "TurnResults":
        """The same without anything that was found, for a person who may not read all of it any more."""
        told = "You no longer have access to what was found here."
        messages = tuple(message.model_copy(update={"text": told}) for message in self.messages)
        return TurnResults(messages=messages, not_searched=self.not_searched)
