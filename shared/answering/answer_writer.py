"""From the model's stream to the reader's: clean text and proved citations, in the order they are written.

When no model wrote an answer, it is what the evidence says word for word, or that there is none.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from shared.answering.models import Gap
from shared.answering.number_gate import NumberGate, Withheld
from shared.answering.shown_answer import RecordDocuments
from shared.evidence.citations import CitationBook
from shared.evidence.cite_parser import CiteParser, CiteTag, FigureTag, GapTag, Piece, Text
from shared.evidence.figures import FigurePlacer, figure_markdown
from shared.evidence.messages import ENGLISH, Messages
from shared.evidence.models import Citation
from shared.evidence.passage_answer import list_documents, quote_passages
from shared.evidence.reader_text import ReaderText, readable_line
from shared.evidence.repairs import FailedQuotation, RepairedQuotations, repair_input
from shared.evidence.text import last_claim, whole_sentences
from shared.evidence.untrusted_text import markdown_name, markdown_text
from shared.platform.errors import BudgetExceededError, DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load
from shared.retrieval.models import DocumentRecord
from shared.runs.event_log import EventLog
from shared.runs.events import CitationEvent, RunEvent, TokenEvent
from shared.runs.evidence import Evidence
from shared.runs.models import RunAnswer

_REPAIR_TOKENS = 150  # of one quotation in a repair's reply: a long sentence, and the JSON around it
_MOST_REPAIR_TOKENS = 1500


@dataclass(frozen=True)
class QuoteRepairer:
    """Asks the model for verbatim quotations that prove claims. Never raises for a model's failure, nor when
    no tokens are left to ask: the claims are marked then.

    Attributes:
        limits: of a repair that begins now; None = there is no time for one.
        question: what the answer is to; a table cell's claim is hard to read without it.
    """

    chat_model: ChatModel
    limits: Callable[[], CallLimits | None]
    question: str = ""

    async def repair(self, failed: Sequence[FailedQuotation], book: CitationBook) -> Mapping[int, str]:
        """Other words to prove the claims by, still to be checked, by the claims' numbers."""
        limits, asked = self.limits(), repair_input(failed, book.hits, book.records)
        if limits is None or asked is None:
            return {}
        question = f"{element('question', self.question)}\n" if self.question else ""
        prompt = Prompt(name="repair", system=load("answering", "repair"), user=question + asked)
        most = min(_REPAIR_TOKENS * (len(failed) + 1), _MOST_REPAIR_TOKENS)
        limits = limits.model_copy(update={"max_output_tokens": most})
        try:
            repaired = await self.chat_model.parse(prompt, RepairedQuotations, limits)
        except (DependencyError, ModelFixableError, BudgetExceededError):
            return {}
        return {one.number: one.quote for one in repaired.quotations if one.quote}


FLUSH_SECONDS = 0.15  # of streamed text between two appends, each a request to storage


@dataclass
class AnswerWriter:
    """Writes the answer of one turn into the run log.

    What it shows of `text` equals the TOKEN events of its step, behind what earlier turns wrote. The number
    of a quotation that stands nowhere is shown at once; all of a turn are repaired together at its end, and
    their citation events follow then.

    Attributes:
        record: called with the ids of documents before they are shown.
        needs_proof: statements without any citation are marked.
        may_look: gaps are searched for before they are shown: what stands behind one in this turn is dropped.
        not_searched: gaps whose search failed: whether the documents hold them is not known.
        gate: holds back what cites tables until it is checked.
        text: the whole answer so far.
        gaps: what the model could not find.
        is_partial: a part of the question is answered.
    """

    event_log: EventLog
    book: CitationBook
    repairer: QuoteRepairer
    record: RecordDocuments
    words: Messages = ENGLISH
    needs_proof: bool = True
    may_look: bool = False
    not_searched: Collection[str] = ()
    gate: NumberGate = field(default_factory=NumberGate)
    text: str = ""
    gaps: list[Gap] = field(default_factory=list)
    is_partial: bool = False
    unsupported_claims: int = 0
    figures: FigurePlacer = field(init=False)
    _parser: CiteParser = field(default_factory=CiteParser)
    _reader: ReaderText = field(default_factory=ReaderText)
    _without_notes: str = ""
    _judged: tuple[int, int] = (0, 0)  # characters, and marks in them, that were looked at already
    _continues: bool = False
    _failed: list[FailedQuotation] = field(default_factory=list)
    _pending: str = ""
    _waiting: list[RunEvent] = field(default_factory=list)
    _flushed_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.figures = FigurePlacer(self.book.hits)

    def go_on(self, answer: RunAnswer) -> None:
        """Continue an answer that earlier turns began."""
        self.text = self._without_notes = answer.text
        self.book.citations.extend(answer.citations)
        self.unsupported_claims = answer.unsupported_claims
        self.figures.placed.extend(answer.figures)
        self._judged = (len(self.text), self.unsupported_claims)
        self._continues = bool(self.text)
        self._reader = ReaderText.after(self.text)

    async def feed(self, delta: str) -> None:
        """Take a piece of the model's output."""
        await self._take(await self.gate.pass_on(self._parser.feed(delta)))
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            await self._flush()

    async def finish(self, *notes: str, goes_on: bool = False) -> None:
        """The model has ended: have the rest sent with the next events of the step.

        Args:
            notes: paragraphs of our own for the end of the answer.
            goes_on: the next turn continues the answer.
        """
        await self._take(await self.gate.pass_on(self._parser.finish()))
        await self._take(await self.gate.finish())
        self._show_model_text(self._reader.finish())
        await self._repair()
        if goes_on:
            self._show_figures()
        else:
            self._close(*notes)
        self.event_log.stage(*await self._take_waiting())

    def break_off(self, *notes: str) -> None:
        """The model was ended: keep whole sentences, and say so in `notes`. Sends nothing.

        Readers have more of the text than this keeps: they are to be shown `text` again.
        """
        self._show_model_text(self._reader.finish())  # a tag that is still open is dropped
        self.text = whole_sentences(self.text)
        self.book.citations[:] = [cited for cited in self.book.citations if f")[{cited.n}]" in self.text]
        self._failed = []
        unproved = sum(not cited.quote for cited in self.book.citations)
        marks = (self.words.unsupported.strip(), self.words.withheld)
        self.unsupported_claims = sum(map(self.text.count, marks)) + unproved
        self.figures.keep(self.text)
        self._reader = ReaderText.after(self.text)
        self._judged = (len(self.text), self.unsupported_claims) if self.gaps else (0, 0)
        if self.text:
            self._close(*notes)

    def show_gap(self, gap: Gap) -> None:
        """Say what the documents do not hold, and mark what was claimed before without any proof."""
        is_first = not self.gaps
        self.gaps.append(gap)
        self._show_model_text(self._reader.finish())
        if is_first:
            self.is_partial = self.has_citations
            is_marked = self.text.rstrip().endswith(self.words.unsupported.lstrip())
            if self.text.strip() and not self.has_citations and not is_marked:
                self._show_unsupported()
        if self.is_partial:
            self._show_figures()
        self.figures.drop()
        if gap.missing in self.not_searched:
            said = self.words.gap_not_searched.format(gap.missing.rstrip(". "))
        else:
            said = self.words.with_missing(self._lacking(), gap.missing or self.words.asked)
            said += f"\n\n{self.words.next_step.format(gap.next_step)}" if gap.next_step else ""
        self._note(said)
        self._judged = (len(self.text), self.unsupported_claims)

    def _lacking(self) -> str:
        """How the newest gap begins; it doesn't repeat what an earlier one said of the documents."""
        earlier = [gap.missing for gap in self.gaps[:-1]]
        if any(missing not in self.not_searched for missing in earlier):
            return self.words.no_more
        return self.words.no_rest if self.is_partial or earlier else self.words.no_answer

    @property
    def has_citations(self) -> bool:
        """Whether anything that is shown was proved, or points to a picture."""
        return any(citation.quote for citation in self.book.citations)

    @property
    def warnings(self) -> tuple[str, ...]:
        """That gaps could not be searched for, in words."""
        missing = [gap.missing for gap in self.gaps if gap.missing in self.not_searched]
        return tuple(self.words.gap_not_searched.format(text.rstrip(". ")) for text in missing)

    @property
    def is_answer(self) -> bool:
        """Whether the question is answered, at least in part."""
        return not self.gaps or self.is_partial

    def _close(self, *notes: str) -> None:
        if self._claims_without_any_proof():
            self._show_unsupported()
        self._show_figures()
        unproved = ", ".join(f"[{citation.n}]" for citation in self.book.citations if not citation.quote)
        if unproved:
            self._note(self.words.unproved.format(unproved))
        for note in notes if self.text.strip() else ():
            if note:
                self._note(note)

    def _claims_without_any_proof(self) -> bool:
        """The model wrote from passages and cited none: no reader may take that for proved."""
        chars, marks = self._judged
        uncited = not self.has_citations and self.unsupported_claims == marks
        was_shown = bool(self.book.hits or self.book.pages)
        return self.needs_proof and was_shown and bool(self.text[chars:].strip()) and uncited

    async def _take(self, pieces: Sequence[Piece | Withheld]) -> None:
        for piece in pieces:
            if self.gaps and self.may_look and not isinstance(piece, GapTag):
                continue  # the next turn continues from here
            match piece:
                case Text():
                    self._write(piece.text)
                case GapTag():
                    await self._take_gap(
                        Gap(missing=readable_line(piece.missing), next_step=readable_line(piece.next_step))
                    )
                case FigureTag():
                    self.figures.want(piece.block_id)
                case CiteTag():
                    await self._cite(piece)
                case Withheld():
                    self._show_model_text(self._reader.finish())
                    self._mark(self.words.withheld)

    async def _take_gap(self, gap: Gap) -> None:
        if any(known.missing == gap.missing for known in self.gaps):
            return
        if self.may_look and gap.missing:
            self.gaps.append(gap)
        else:
            await self._repair()  # what the gap says of the text before depends on what is proved of it
            self.show_gap(gap)

    def _write(self, text: str) -> None:
        """Show text of the model, with the pictures that wait for the end of a line."""
        is_new_paragraph = self._continues or (self.gaps and len(self.text) == self._judged[0])
        if is_new_paragraph:
            text = text.lstrip()
            self._show_own(self._paragraph_break() if text else "")
            self._continues = self._continues and not text
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
        if tag.result:
            await self._cite_result(tag.result)
            return
        proof = self.book.prove(tag.doc_id, tag.quote)
        if proof is not None and proof[1]:
            self._announce(proof[0])
        shown = proof or self.book.hold(tag.doc_id, tag.quote)
        if shown is None:
            if self.needs_proof:
                self._show_unsupported()
            return
        citation, is_new = shown
        if is_new and proof is None:
            claim = last_claim(self._without_notes)
            self._failed.append(FailedQuotation(citation.n, claim, tag.doc_id, tag.quote))
        self._show(self._reader.note(self.book.marker(citation).lstrip()))

    async def _cite_result(self, result_id: str) -> None:
        result = await self.gate.computed(result_id)
        if result is None:
            if self.needs_proof:
                self._show_unsupported()
            return
        citation, is_new = self.book.compute(result, self.gate.language)
        if is_new:
            self._announce(citation)
        self._show(self._reader.note(self.book.marker(citation).lstrip()))

    async def _repair(self) -> None:
        """Prove what failed by other words of its document, and announce it, proved or not."""
        if not self._failed:
            return
        await self._flush()  # the repair asks the model; readers should not wait for it with text unseen
        quotes = await self.repairer.repair(self._failed, self.book)
        for failure in self._failed:
            citation = self.book.repair(failure.number, quotes.get(failure.number, ""))
            self._announce(citation)
            self.unsupported_claims += not citation.quote
        self._failed = []

    def _show_unsupported(self) -> None:
        self._mark(self.words.unsupported.lstrip())

    def _mark(self, text: str) -> None:
        self.unsupported_claims += 1
        self._show(self._reader.note(text))

    def _show_figures(self) -> None:
        for figure in self.figures.take():
            self._note(figure_markdown(figure))

    def _note(self, text: str) -> None:
        """Say something of our own, in a paragraph that no table or code before it takes in."""
        self._show_own(self._paragraph_break() + text)

    def _paragraph_break(self) -> str:
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
        """A proved citation comes before the text that shows it."""
        self._move_pending()
        self._waiting.append(CitationEvent.of(citation))

    def _move_pending(self) -> None:
        if self._pending:
            self._waiting.append(TokenEvent(text=self._pending))
            self._pending = ""

    async def _flush(self) -> None:
        if waiting := await self._take_waiting():
            await self.event_log.write(*waiting)
        # Counted from the end of the append: where appends are slow, what the model writes meanwhile goes
        # into one, and is not held up by one for each word.
        self._flushed_at = time.monotonic()

    async def _take_waiting(self) -> list[RunEvent]:
        """Take the events that readers don't have yet, after recording the documents that they show."""
        self._move_pending()
        waiting, self._waiting = self._waiting, []
        if waiting:
            cited = [event.doc_id for event in waiting if isinstance(event, CitationEvent)]
            await self.record([*cited, *(figure.doc_id for figure in self.figures.placed)])
        return waiting


def nothing_found(words: Messages, evidence: Evidence) -> Gap:
    """The gap when the search brought nothing: what was named or narrowed to, if that is why."""
    missing, next_step = words.nothing_found, words.nothing_found_step
    if evidence.missing:
        missing = "; ".join(
            words.no_such_document.format(markdown_name(one.reference)) for one in evidence.missing
        )
        nearest = [markdown_name(name) for one in evidence.missing for name in one.nearest]
        next_step = words.nearest_names.format(", ".join(dict.fromkeys(nearest))) if nearest else next_step
    elif evidence.unreadable:
        missing = "; ".join(_unreadable(words, record) for record in evidence.unreadable)
        next_step = words.unreadable_step
    elif evidence.filters:
        missing = words.none_with.format(markdown_text(evidence.filters))
    return Gap(missing=missing, next_step=next_step)


def _unreadable(words: Messages, record: DocumentRecord) -> str:
    pages = words.pages.format(record.page_count) if record.page_count else ""
    return words.unreadable.format(markdown_name(record.filename), pages)


def answer_without_model(
    question: str, evidence: Evidence, book: CitationBook, words: Messages, note: str
) -> RunAnswer:
    """Quotations, or a list of documents; an abstention when there is neither. Cites into `book`.

    Args:
        note: why no model wrote it.
    """
    text = quote_passages(question, book, words) or list_documents(evidence.records, words)
    gap = None if text else nothing_found(words, evidence)
    if gap is not None:
        text = f"{words.no_answer.format(gap.missing)}\n\n{words.next_step.format(gap.next_step)}"
    return RunAnswer(
        run_id=book.run_id,
        text=f"{text}\n\n{words.note.format(note)}",
        citations=tuple(book.citations),
        abstained=gap is not None,
        missing=gap.missing if gap else "",
        next_step=gap.next_step if gap else "",
    )
