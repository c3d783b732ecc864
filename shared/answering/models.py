"""Models of values that one step of a run stores for later steps."""

from shared.evidence.models import TableResult, WebPage
from shared.platform.language_models.models import Message
from shared.platform.models import Model
from shared.retrieval.models import DocumentRecord, Hit, ReadableDocuments
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunAnswer
from shared.runs.provenance import Provenance
from shared.tools.tool_calls import PlannedCall


class Preparation(Model):
    """The plan of a question and the evidence from its first search, stored by the preparing step.

    Attributes:
        evidence: None while the documents are ambiguous; `stored.options` are then shown to the user.
    """

    stored: StoredPlan
    evidence: Evidence | None = None


class Gap(Model):
    """Information that the model needed but did not find in its evidence.

    Attributes:
        missing: description of the missing information, used as a search query and shown to the reader.
        next_step: suggestion for the reader if it isn't found.
    """

    missing: str
    next_step: str = ""


class Turn(Model):
    """A turn of the main agent as stored in the journal. If several attempts store one, the first counts.

    Attributes:
        said: text of the model, repeated in later prompts.
        calls: its tool calls, including refused ones; the next turn executes them.
        gaps: gaps that the next turn searches for.
        answer: the answer so far, written by this turn and earlier ones.
        advice: advice of the delegation policy, in the first turn's prompt and therefore in all prompts.
        asks_consent: whether its calls wait for the user's consent to web searches.
        is_last: whether the answer is complete, so that no turn follows.
    """

    said: str
    calls: tuple[PlannedCall, ...] = ()
    gaps: tuple[Gap, ...] = ()
    answer: RunAnswer
    advice: str = ""
    asks_consent: bool = False
    is_last: bool = False


class ScriptCallResult(Model):
    """The result of a tool call that the script performed itself, such as a delegation or a question to the
    user.
    """

    text: str
    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()


class TurnResults(Model):
    """Results of a turn's tool calls, and of the searches for the gaps in its answer.

    Attributes:
        messages: messages for the model, placed after its turn.
        hits, records: evidence that may be cited from now on.
        figures: figures whose images the model requested.
        tables: results of table queries, which may be cited from now on.
        pages: snapshots of web pages, which may be cited from now on and prove the quotations.
        found_urls: URLs found by web searches, which may be read from now on.
        not_searched: descriptions of the gaps whose search failed.
        provenance: all documents that the tools and searches used; None in journals of earlier versions.
    """

    messages: tuple[Message, ...]
    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    figures: tuple[Hit, ...] = ()
    tables: tuple[TableResult, ...] = ()
    pages: tuple[WebPage, ...] = ()
    found_urls: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()
    provenance: Provenance | None = None

    @property
    def table_doc_ids(self) -> set[str]:
        """Ids of the documents whose tables were queried."""
        return {table.doc_id for result in self.tables for table in result.tables}

    @property
    def doc_ids_without_hits(self) -> set[str]:
        """Ids of the documents that contributed tables or records, but neither passages nor figures."""
        of_hits = {hit.doc_id for hit in (*self.hits, *self.figures)}
        return self.table_doc_ids | {record.doc_id for record in self.records} - of_hits

    @property
    def doc_ids(self) -> set[str]:
        """Ids of all documents and databases in the results."""
        return self.doc_ids_without_hits | {hit.doc_id for hit in (*self.hits, *self.figures)}

    def is_readable(self, documents: ReadableDocuments) -> bool:
        """Return whether the user may currently read every document in the results."""
        blocks = (*self.hits, *self.figures)
        return all(map(documents.admits, blocks)) and all(
            doc_id in documents for doc_id in self.doc_ids_without_hits
        )

    @property
    def withdrawn(self) -> "TurnResults":
        """A copy without evidence, for a user who may no longer read all of it. Its messages only
        state the loss of access.
        """
        text = "You no longer have access to what was found here."
        messages = tuple(message.model_copy(update={"text": text}) for message in self.messages)
        return TurnResults(messages=messages, not_searched=self.not_searched)
