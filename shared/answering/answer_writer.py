"""Turns model output into the sanitised text of an answer with proved citations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from shared.answering.answer_stream import AnswerStream
from shared.answering.models import Gap
from shared.answering.number_check import NumberCheck, Withheld
from shared.answering.quote_repair import QuoteRepairer
from shared.answering.statements import Statement, parse_answer, shown_gap
from shared.evidence.citations import CitationBook
from shared.evidence.messages import ENGLISH, Messages
from shared.evidence.models import Citation, TableResult
from shared.evidence.repairs import FailedQuotation, keeps_numbers
from shared.evidence.source_numbers import unsourced_statements
from shared.evidence.tags import CiteTag, FigureTag, GapTag
from shared.evidence.text import has_mark, last_claim, whole_sentences
from shared.runs.models import RunAnswer


def prove(
    cite: CiteTag, book: CitationBook, results: Sequence[TableResult], language: str
) -> tuple[Citation, bool] | None:
    """Return the citation for a tag and whether it is new, or None if its document or query result is
    unknown. A citation without words has a quotation that its document doesn't contain.

    Args:
        results: the results of table queries that may be cited.
        language: ISO 639-1 code of the answer.
    """
    if cite.result:
        result = next((result for result in results if result.result_id == cite.result), None)
        return book.compute(result, language) if result else None
    return book.prove(cite.doc_id, cite.quote) or book.hold(cite.doc_id, cite.quote)


@dataclass
class AnswerWriter:
    """Incremental writer of one turn's answer, which checks quotations and numbers while the model writes.

    `draft.text` equals the concatenated TOKEN events of all turns. A quotation that no document contains is
    shown with its number at once. At the end of a turn, its failed quotations are repaired together, and
    their citation events follow.

    Attributes:
        words: the texts of its notes.
        needs_proof: statements without any citation are marked.
        gaps: information that, as the answer says, the documents don't contain.
        is_partial: whether a part of the question is answered despite gaps.
        next_questions: unchecked questions that the model suggests; they are never part of the text.
    """

    stream: AnswerStream
    book: CitationBook
    repairer: QuoteRepairer
    words: Messages = ENGLISH
    needs_proof: bool = True
    numbers: NumberCheck = field(default_factory=NumberCheck)
    gaps: list[Gap] = field(default_factory=list)
    is_partial: bool = False
    next_questions: tuple[str, ...] = ()
    _position: int = 0
    _failed: list[FailedQuotation] = field(default_factory=list)
    _judged_chars: int = 0

    def __post_init__(self) -> None:
        self.draft = self.stream.draft

    def continue_answer(self, answer: RunAnswer) -> None:
        """Continue the answer that an earlier turn began, with its text and citation numbers."""
        self.stream.continue_from(answer)
        self.book.citations.extend(answer.citations)
        self._judged_chars = len(answer.text)

    async def write(self, text: str, *, at_end: bool = False, to_gap: bool = False) -> None:
        """Append the part of `text` that earlier calls did not write.

        Args:
            text: the turn's answer from its beginning.
            at_end: nothing follows it.
            to_gap: stop at the first gap, because it is searched for before it is shown.
        """
        answer = parse_answer(text, at_end=at_end)
        holds_numbers = bool(self.numbers.results) and not at_end
        end = answer.before_numbers if holds_numbers else len(answer.text)
        end = max(min(end, answer.first_gap if to_gap else end), self._position)
        for part in answer.parts(self._position, end):
            if isinstance(part, GapTag):
                await self._write_gap(shown_gap(part))
            elif isinstance(part, FigureTag):
                self.draft.figures.want(part.block_id)
            else:
                for checked in await self.numbers.check(part):
                    await self._write_statement(checked)
        self._position, self.next_questions = end, answer.questions
        if self.stream.is_due:
            await self.stream.flush()

    async def finish(self, *notes: str, goes_on: bool = False) -> None:
        """Complete the answer: repair failed quotations, append the notes, and stage the remaining events.

        Args:
            notes: paragraphs appended after the model's answer.
            goes_on: whether the next turn continues the answer.
        """
        self.draft.settle()
        await self._repair()
        if goes_on:
            self.draft.show_figures()
        else:
            self._close(*notes)
        await self.stream.stage()

    def break_off(self, *notes: str) -> None:
        """Cut the answer after its last complete sentence, because the model was interrupted, and append the
        notes. No events are sent.

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
        """Append a paragraph that reports information missing from the documents, and drop pending figures.

        Before the first gap, mark the preceding text if nothing in it is proved.

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
        self.draft.add_paragraph(text or gap.missing or self.words.no_answer.format(self.words.asked))
        if gap.next_step and not text:
            self.draft.add_paragraph(gap.next_step)
        self.gaps.append(gap)
        self.draft.starts_paragraph, self._judged_chars = True, len(self.draft.text)

    @property
    def has_citations(self) -> bool:
        """Whether any citation has a quotation, from a document's text or from the caption of a figure."""
        return any(citation.quote for citation in self.book.citations)

    @property
    def unsupported_claims(self) -> int:
        """Number of statements marked as unproved, plus the number of citations whose quotation was not
        found.
        """
        marks = (self.words.unsupported.strip(), self.words.withheld)
        unproved = sum(not citation.quote for citation in self.book.citations)
        return sum(map(self.draft.text.count, marks)) + unproved

    @property
    def is_answer(self) -> bool:
        """Whether the text answers the question at least in part."""
        return not self.gaps or self.is_partial

    async def _write_gap(self, gap: Gap) -> None:
        if all(earlier.missing != gap.missing for earlier in self.gaps):
            # Repair first: `show_gap` needs to know whether the text before the gap is proved.
            await self._repair()
            self.show_gap(gap)

    async def _write_statement(self, statement: Statement | Withheld) -> None:
        if isinstance(statement, Withheld):
            self.draft.add_note(self.words.withheld)
            return
        self.draft.write(statement.text)
        computed = await self.numbers.computed() if any(cite.result for cite in statement.cites) else ()
        for cite in statement.cites:
            proved = prove(cite, self.book, computed, self.numbers.language)
            if proved is not None:
                self._cite(cite, *proved)
            elif self.needs_proof:
                self.draft.add_note(self.words.unsupported.lstrip())

    def _cite(self, cite: CiteTag, citation: Citation, is_new: bool) -> None:
        self.draft.settle()
        if is_new and citation.quote:
            self.stream.announce(citation)
        elif is_new:
            claim = last_claim(self.draft.text)
            self._failed.append(FailedQuotation(citation.n, claim, citation.doc_id, cite.quote))
        self.draft.add_note(self.book.marker(citation).lstrip())

    async def _repair(self) -> None:
        """Have the model repair the failed quotations, and announce their citations whether or not they are
        now proved.
        """
        if not self._failed:
            return
        await self.stream.flush()  # The repair calls a model, so send the text first.
        quotes = await self.repairer.repair(self._failed, self.book)
        for failure in self._failed:
            proves = partial(keeps_numbers, failure, language=self.numbers.language)
            self.stream.announce(
                self.book.repair(failure.number, quotes.get(failure.number, ""), proves=proves)
            )
        self._failed = []

    def _mark_if_unproved(self, text: str) -> None:
        """Mark the text as unproved, unless the answer has a proved citation or the text already has a
        mark.
        """
        mark, withheld = self.words.unsupported.strip(), self.words.withheld
        is_marked = has_mark(text) or mark in text or withheld in text
        if text.strip() and not self.has_citations and not is_marked:
            self.draft.add_note(mark)

    def _close(self, *notes: str) -> None:
        if self.needs_proof and (self.book.hits or self.book.pages):
            self._mark_if_unproved(self.draft.text[self._judged_chars :])
        self.draft.show_figures()
        unproved = ", ".join(f"[{citation.n}]" for citation in self.book.citations if not citation.quote)
        unsourced = self._unsourced_numbers() if self.needs_proof else ""
        remarks = (
            self.words.unproved.format(unproved) if unproved else "",
            self.words.unsourced.format(unsourced) if unsourced else "",
        )
        for note in (*remarks, *notes) if self.draft.text.strip() else ():
            if note:
                self.draft.add_paragraph(note)

    def _unsourced_numbers(self) -> str:
        """Return the numbers that their cited documents don't contain, as in `15,800 [2]; 31, 2026 [3]`."""
        checked = self.numbers
        statements = unsourced_statements(
            self.draft.text, self.book, checked.question, checked.language, checked.today
        )
        return "; ".join(
            f"{', '.join(numbers)} {''.join(f'[{n}]' for n in citations)}"
            for numbers, citations in statements
        )
