"""Writer of answers: clean text and proved citations, in the order of the model's output."""

from dataclasses import dataclass, field

from shared.answering.answer_stream import AnswerStream
from shared.answering.models import Gap
from shared.answering.next_questions import take_questions
from shared.answering.number_check import NumberCheck, Withheld
from shared.answering.proofs import Proof, prove
from shared.answering.quote_repair import QuoteRepairer
from shared.answering.statements import Part, Statement, split_statements
from shared.evidence.citations import CitationBook
from shared.evidence.messages import ENGLISH, Messages
from shared.evidence.reader_text import readable_line
from shared.evidence.repairs import FailedQuotation
from shared.evidence.tags import FigureTag, GapTag, Piece, Text, read_tags
from shared.evidence.text import has_mark, last_claim, whole_sentences
from shared.runs.models import RunAnswer


@dataclass(frozen=True)
class AnswerRules:
    """Rules for proving an answer, and the texts of its notes.

    Attributes:
        needs_proof: statements without any citation are marked.
        may_look: a gap is searched for before it is shown; the text after the first gap is dropped.
    """

    words: Messages = ENGLISH
    needs_proof: bool = True
    may_look: bool = False
    numbers: NumberCheck = field(default_factory=NumberCheck)


@dataclass
class AnswerWriter:
    """Writer of one turn's answer.

    `draft.text` equals the concatenated TOKEN events of all turns. A quotation that no document contains is
    shown with its number at once. At the end of a turn, its failed quotations are repaired together, and
    their citation events follow.

    Attributes:
        gaps: information that the model couldn't find.
        is_partial: whether a part of the question is answered despite gaps.
        next_questions: unchecked questions that the model suggests; they are never part of the text.
    """

    stream: AnswerStream
    book: CitationBook
    repairer: QuoteRepairer
    rules: AnswerRules = field(default_factory=AnswerRules)
    gaps: list[Gap] = field(default_factory=list)
    is_partial: bool = False
    next_questions: list[str] = field(default_factory=list)
    _rest: str = ""
    _line: list[Piece] = field(default_factory=list)
    _failed: list[FailedQuotation] = field(default_factory=list)
    _judged_chars: int = 0

    def __post_init__(self) -> None:
        self.draft = self.stream.draft

    def go_on(self, answer: RunAnswer) -> None:
        """Continue the answer of an earlier turn."""
        self.stream.continue_from(answer)
        self.book.citations.extend(answer.citations)
        self._judged_chars = len(answer.text)

    async def feed(self, delta: str, *, at_end: bool = False) -> None:
        """Write the next piece of the model's output."""
        all_pieces, rest = read_tags(self._rest + delta, at_end=at_end)
        pieces, questions, breaks = take_questions(all_pieces)
        self.next_questions += questions
        if at_end and not self.next_questions:
            pieces.append(Text(breaks))
        self._rest = "" if at_end else breaks + rest
        holds_numbers = bool(self.rules.numbers.results) and not at_end
        parts, self._line = split_statements([*self._line, *pieces], holds_numbers=holds_numbers)
        for part in parts:
            await self._write(part)
        await self.stream.flush()

    async def finish(self, *notes: str, goes_on: bool = False) -> None:
        """Write the rest of the answer and stage its events for the end of the step.

        Args:
            notes: paragraphs appended after the model's answer.
            goes_on: whether the next turn continues the answer.
        """
        await self.feed("", at_end=True)
        self.draft.settle()
        await self._repair()
        if goes_on:
            self.draft.show_figures()
        else:
            self._close(*notes)
        await self.stream.stage()

    def break_off(self, *notes: str) -> None:
        """Truncate the answer to whole sentences after the model was stopped. Sends no events.

        The streamed text is longer than the remaining text, so `draft.text` must be sent again.
        """
        self.draft.settle()
        text, citations = whole_sentences(self.draft.text), self.book.citations
        self.draft.continue_from(text)
        self.draft.figures.keep(text)
        citations[:] = [citation for citation in citations if f")[{citation.n}]" in text]
        self._failed, self._judged_chars = [], len(text) if self.gaps else 0
        if text:
            self._close(*notes)

    def show_gap(self, gap: Gap, text: str = "") -> None:
        """Write what the documents don't contain.

        Before the first gap, mark the text so far if nothing in it is proved.

        Args:
            text: wording for a gap that the model didn't report.
        """
        self.draft.settle()
        if not self.gaps:
            self.is_partial = self.has_citations
            self._mark_if_unproved(self.draft.text)
        if self.is_partial:
            self.draft.show_figures()
        self.draft.figures.drop()
        words = self.rules.words
        self.draft.add_paragraph(text or gap.missing or words.no_answer.format(words.asked))
        if gap.next_step and not text:
            self.draft.add_paragraph(gap.next_step)
        self.gaps.append(gap)
        self.draft.starts_paragraph, self._judged_chars = True, len(self.draft.text)

    @property
    def has_citations(self) -> bool:
        """Whether any citation is proved or refers to a figure."""
        return any(citation.quote for citation in self.book.citations)

    @property
    def unsupported_claims(self) -> int:
        """Number of marked statements plus citations that no document proves."""
        marks = (self.rules.words.unsupported.strip(), self.rules.words.withheld)
        unproved = sum(not citation.quote for citation in self.book.citations)
        return sum(map(self.draft.text.count, marks)) + unproved

    @property
    def is_answer(self) -> bool:
        """Whether the question is answered, at least in part."""
        return not self.gaps or self.is_partial

    async def _write(self, part: Part) -> None:
        if isinstance(part, GapTag):
            missing, next_step = readable_line(part.missing), readable_line(part.next_step)
            await self._write_gap(Gap(missing=missing, next_step=next_step))
        elif self.gaps and self.rules.may_look:
            return  # the next turn continues from the gap
        elif isinstance(part, FigureTag):
            self.draft.figures.want(part.block_id)
        else:
            for checked in await self.rules.numbers.check(part):
                await self._write_statement(checked)

    async def _write_gap(self, gap: Gap) -> None:
        if any(earlier.missing == gap.missing for earlier in self.gaps):
            return
        if self.rules.may_look and gap.missing:
            self.gaps.append(gap)
        else:
            await self._repair()  # show_gap needs to know whether the text before the gap is proved
            self.show_gap(gap)

    async def _write_statement(self, statement: Statement | Withheld) -> None:
        if isinstance(statement, Withheld):
            self.draft.add_note(self.rules.words.withheld)
            return
        self.draft.write(statement.text)
        numbers = self.rules.numbers
        results = await numbers.computed() if any(cite.result for cite in statement.cites) else ()
        for proof in prove(statement, self.book, results, numbers.language):
            self._show_proof(proof)

    def _show_proof(self, proof: Proof | None) -> None:
        if proof is None:
            if self.rules.needs_proof:
                self.draft.add_note(self.rules.words.unsupported.lstrip())
            return
        self.draft.settle()
        citation = proof.citation
        if proof.is_new and proof.quote:
            claim = last_claim(self.draft.text)
            self._failed.append(FailedQuotation(citation.n, claim, citation.doc_id, proof.quote))
        elif proof.is_new:
            self.stream.announce(citation)
        self.draft.add_note(self.book.marker(citation).lstrip())

    async def _repair(self) -> None:
        """Replace failed quotations by others from the same documents; announce all, proved or not."""
        if not self._failed:
            return
        await self.stream.flush(now=True)  # the repair calls a model; don't delay the text
        quotes = await self.repairer.repair(self._failed, self.book)
        for failure in self._failed:
            self.stream.announce(self.book.repair(failure.number, quotes.get(failure.number, "")))
        self._failed = []

    def _mark_if_unproved(self, text: str) -> None:
        """Mark a text without any proof, so that readers don't assume it is proved."""
        mark, withheld = self.rules.words.unsupported.strip(), self.rules.words.withheld
        is_marked = has_mark(text) or mark in text or withheld in text
        if text.strip() and not self.has_citations and not is_marked:
            self.draft.add_note(mark)

    def _close(self, *notes: str) -> None:
        if self.rules.needs_proof and (self.book.hits or self.book.pages):
            self._mark_if_unproved(self.draft.text[self._judged_chars :])
        self.draft.show_figures()
        unproved = ", ".join(f"[{citation.n}]" for citation in self.book.citations if not citation.quote)
        remark = self.rules.words.unproved.format(unproved) if unproved else ""
        for note in (remark, *notes) if self.draft.text.strip() else ():
            if note:
                self.draft.add_paragraph(note)
