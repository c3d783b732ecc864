"""From the model's stream to the reader's: clean text and proved citations, in the order they are written."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shared.evidence.citations import CitationBook, describe, find_conflicts, is_named, marker
from shared.evidence.cite_parser import AbstainTag, CiteParser, CiteTag, FigureTag, Piece, Text
from shared.evidence.figures import FigurePlacer, figure_markdown
from shared.evidence.messages import ENGLISH, Messages
from shared.evidence.models import Citation, Conflict, QuoteRepair
from shared.evidence.passage_answer import shown_quote
from shared.evidence.reader_text import ReaderText, readable
from shared.evidence.text import last_claim, whole_sentences
from shared.platform.errors import BudgetExceededError, DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load
from shared.runs.event_log import EventLog
from shared.runs.events import CitationEvent, RunEvent, TokenEvent
from shared.subagents.models import FoundProof

_MAX_REPAIRS = 3  # per answer: a model that misquotes more often will not be mended by asking


@dataclass
class QuoteRepairer:
    """Asks the model for a verbatim quotation that proves a claim. Never raises for a model's failure, nor
    when no tokens are left to ask: the claim is marked then.

    Attributes:
        documents_xml: the `<documents>` that the answer was written from.
        limits: of a repair that begins now; None = there is no time for one.
        question: what the answer is to; a table cell's claim is hard to read without it.
    """

    chat_model: ChatModel
    documents_xml: str
    limits: Callable[[], CallLimits | None]
    question: str = ""
    repairs: int = 0

    @property
    def may_try(self) -> bool:
        """Whether a repair is left."""
        return self.repairs < _MAX_REPAIRS

    async def repair(self, claim: str, wrong_quote: str) -> str | None:
        """Other words to prove `claim`, still to be checked; None when there are none or no try is left."""
        limits = self.limits() if self.may_try else None
        if limits is None:
            return None
        self.repairs += 1
        question = [element("question", self.question)] if self.question else []
        asked = (*question, element("claim", claim), element("wrong_quote", wrong_quote), self.documents_xml)
        prompt = Prompt(name="repair", system=load("answering", "repair"), user="\n".join(asked))
        try:
            return (await self.chat_model.parse(prompt, QuoteRepair, limits)).quote
        except (DependencyError, ModelFixableError, BudgetExceededError):
            return None


FLUSH_SECONDS = 0.06  # a reader sees no difference below; an append costs 2 ms
UNSUPPORTED = ENGLISH.unsupported


@dataclass
class AnswerWriter:
    """Writes one answer into the run log. `text` afterwards equals the concatenated TOKEN events.

    Attributes:
        dates: of the documents, by doc_id, to be told where documents differ.
        proofs: quotations out of the documents that the question is about; one of a document that an answer
            leaves out is added at its end.
        abstention: what the model says that the documents do not hold.
        is_partial: there is an answer to a part of the question, before the abstention.
    """

    event_log: EventLog
    book: CitationBook
    repairer: QuoteRepairer
    words: Messages = ENGLISH
    dates: Mapping[str, datetime] = field(default_factory=dict)
    proofs: Sequence[FoundProof] = ()
    text: str = ""
    abstention: AbstainTag | None = None
    is_partial: bool = False
    unsupported_claims: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    figures: FigurePlacer = field(init=False)
    _parser: CiteParser = field(default_factory=CiteParser)
    _reader: ReaderText = field(default_factory=ReaderText)
    _without_notes: str = ""
    _judged: tuple[int, int] = (0, 0)  # characters, and marks in them, that were looked at already
    _pending: str = ""
    _waiting: list[RunEvent] = field(default_factory=list)
    _flushed_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.figures = FigurePlacer(self.book.hits)

    async def feed(self, delta: str) -> None:
        """Take a piece of the model's output."""
        await self._take(self._parser.feed(delta))
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            await self._flush()

    async def finish(self, notes: Sequence[str] = ()) -> None:
        """The model has ended: send what is left, and what is to be said of the whole."""
        await self._take(self._parser.finish())
        self._show_model_text(self._reader.finish())
        self._close(notes)
        await self._flush()

    def break_off(self, notes: Sequence[str]) -> None:
        """The model was ended: keep whole sentences, and say so. Sends nothing.

        Readers have more of the text than this keeps: they are to be shown `text` anew.
        """
        self._show_model_text(self._reader.finish())  # a tag that is still open is dropped
        self.text = whole_sentences(self.text)
        self.book.citations[:] = [
            cited for cited in self.book.citations if marker(cited).strip() in self.text
        ]
        self.unsupported_claims = self.text.count(self.words.unsupported.strip())
        self.figures.keep(self.text)
        self._reader = ReaderText()
        self._judged = (len(self.text), self.unsupported_claims) if self.abstention else (0, 0)
        if self.text:
            self._close(notes)

    def _close(self, notes: Sequence[str]) -> None:
        if self._claims_without_any_proof():
            self._show_unsupported()
        self._quote_documents_left_out()
        if self.is_answer:
            self.figures.want_best(self.book.citations)
        self._show_figures()
        self._show_conflicts()
        for note in notes:
            self._note(note)

    def abstain(self, tag: AbstainTag) -> None:
        """Say what the documents do not hold, where the model says so; what it says twice counts once.

        What it claimed before that without any proof is marked.
        """
        if self.abstention is not None:
            return
        self.abstention, self.is_partial = tag, self.has_citations
        self._show_model_text(self._reader.finish())
        mark = self.words.unsupported.lstrip()
        if self.text.strip() and not self.has_citations and not self.text.rstrip().endswith(mark):
            self._show_unsupported()
        if self.is_partial:
            self._show_figures()
        self.figures.drop()
        self._note(_abstention_text(tag, self.words, is_partial=self.is_partial))
        self._judged = (len(self.text), self.unsupported_claims)

    @property
    def has_citations(self) -> bool:
        """Whether anything that is shown was proved, or points to a picture."""
        return bool(self.book.citations)

    @property
    def is_answer(self) -> bool:
        """Whether the question is answered, at least in part."""
        return self.abstention is None or self.is_partial

    def _claims_without_any_proof(self) -> bool:
        """The model wrote from passages and cited none: no reader may take that for proved."""
        chars, marks = self._judged
        uncited = not self.has_citations and self.unsupported_claims == marks
        return bool(self.book.hits and self.text[chars:].strip()) and uncited

    async def _take(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Text():
                    self._write(piece.text)
                case AbstainTag():
                    self.abstain(piece)
                case FigureTag():
                    self.figures.want(piece.block_id)
                case CiteTag():
                    await self._cite(piece)

    def _write(self, text: str) -> None:
        """Show text of the model, with the pictures that wait for the end of a line."""
        if self.abstention is not None and len(self.text) == self._judged[0]:
            text = text.lstrip()
            self._show_own(self._gap() if text else "")
        while self.figures.is_waiting and "\n" in text:
            line, _, text = text.partition("\n")
            self._feed_reader(line)
            if self.figures.line_is_free and not self._reader.open_fence:
                self._show_model_text(self._reader.finish())
                self._show_figures()
                self._show_own("\n")
            self._feed_reader("\n")
        self._feed_reader(text)

    def _feed_reader(self, text: str) -> None:
        self.figures.passed(text)
        self._show_model_text(self._reader.feed(text))

    async def _cite(self, tag: CiteTag) -> None:
        self._show_model_text(self._reader.finish())
        proof = self.book.prove(tag.doc_id, tag.quote) or await self._repaired(tag)
        if proof is None:
            self._show_unsupported()
            return
        citation, is_new = proof
        if is_new:
            self._announce(citation)
        self._show(self._reader.note(marker(citation).lstrip()))

    async def _repaired(self, tag: CiteTag) -> tuple[Citation, bool] | None:
        if not self.repairer.may_try:
            return None
        # The repair asks the model; readers should not wait for it with text unseen.
        await self._flush()
        quote = await self.repairer.repair(last_claim(self._without_notes), tag.quote)
        return None if quote is None else self.book.prove(tag.doc_id, quote)

    def _show_unsupported(self) -> None:
        self.unsupported_claims += 1
        self._show(self._reader.note(self.words.unsupported.lstrip()))

    def _quote_documents_left_out(self) -> None:
        """A document that was asked about, and that an answer from others says nothing of, speaks itself."""
        if not (self.is_answer and self.has_citations):
            return
        for proof in self.proofs:
            cited = {citation.doc_id for citation in self.book.citations}
            proved = None if proof.doc_id in cited else self.book.prove(proof.doc_id, proof.quote)
            if proved is None or proved[0].doc_id != proof.doc_id:
                continue
            self._note(f"{self.words.also} “{shown_quote(proof.quote)}”")
            self._announce(proved[0])
            self._show_own(marker(proved[0]))

    def _show_figures(self) -> None:
        for figure in self.figures.take():
            self._note(figure_markdown(figure))

    def _show_conflicts(self) -> None:
        """Set beside each other what the model cited and did not compare."""
        self.conflicts = find_conflicts(self.book.citations)
        unnamed = [conflict for conflict in self.conflicts if not is_named(conflict, self.text)]
        for conflict in unnamed:
            self._note(f"**{self.words.differ}** {describe(conflict, self.book.citations, self.dates)}")

    def _note(self, text: str) -> None:
        """Say something of our own, in a paragraph that no table or code before it takes in."""
        self._show_own(self._gap() + text)

    def _gap(self) -> str:
        """What is missing before a new paragraph can begin."""
        shown = self.text.rstrip(" ")
        if not shown:
            return ""
        line_ends = len(shown) - len(shown.rstrip("\n"))
        if self._reader.open_fence:
            return ("" if line_ends else "\n") + self._reader.open_fence + "\n\n"
        return "\n\n"[min(line_ends, 2) :]

    def _show_own(self, text: str) -> None:
        self._show(self._reader.own(text))

    def _show_model_text(self, text: str) -> None:
        self._without_notes += text
        self._show(text)

    def _show(self, text: str) -> None:
        self.text += text
        self._pending += text

    def _announce(self, citation: Citation) -> None:
        """A citation comes before the text that shows it."""
        self._move_pending()
        self._waiting.append(CitationEvent.of(citation))

    def _move_pending(self) -> None:
        if self._pending:
            self._waiting.append(TokenEvent(text=self._pending))
            self._pending = ""

    async def _flush(self) -> None:
        self._move_pending()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            await self.event_log.write(*waiting)
        # Counted from the end of the append: where appends are slow, what the model writes meanwhile goes
        # into one, and is not held up by one for each word.
        self._flushed_at = time.monotonic()


def _abstention_text(tag: AbstainTag, words: Messages, *, is_partial: bool) -> str:
    missing = one_line(tag.missing).rstrip(". ") or words.asked
    next_step = one_line(tag.next_step)
    step = f"\n\n{words.next_step.format(next_step)}" if next_step else ""
    return (words.no_rest if is_partial else words.no_answer).format(missing) + step


def one_line(text: str) -> str:
    """What a model wrote into an attribute, safe to show."""
    return readable(" ".join(text.split()))
