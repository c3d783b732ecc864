"""From the model's stream to the reader's: clean text and proved citations, in the order they are written."""

import time
from dataclasses import dataclass, field
from typing import Any

from shared.agents.journal import Journal
from shared.agents.quote_repair import QuoteRepairer
from shared.core.cite_parser import AbstainTag, CiteParser, CiteTag, Piece, Text
from shared.core.claims import last_claim
from shared.core.evidence import CitationBook, marker
from shared.core.reader_text import ReaderText, readable
from shared.models.citations import Citation
from shared.models.events import EventName

FLUSH_SECONDS = 0.06  # a reader sees no difference below; an append costs 2 ms
UNSUPPORTED = " *(not proved by the documents)*"


@dataclass
class AnswerWriter:
    """Writes one answer into the run log. `text` afterwards equals the concatenated TOKEN events."""

    journal: Journal
    book: CitationBook
    repairer: QuoteRepairer
    text: str = ""
    abstention: AbstainTag | None = None
    unsupported_claims: int = 0
    _parser: CiteParser = field(default_factory=CiteParser)
    _reader: ReaderText = field(default_factory=ReaderText)
    _without_notes: str = ""
    _pending: str = ""
    _waiting: list[tuple[EventName, dict[str, Any]]] = field(default_factory=list)
    _flushed_at: float = field(default_factory=time.monotonic)

    async def feed(self, delta: str) -> None:
        """Take a piece of the model's output."""
        await self._take(self._parser.feed(delta))
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            await self._flush()

    async def finish(self) -> None:
        """The model has ended: send what is left."""
        await self._take(self._parser.finish())
        self._show_model_text(self._reader.finish())
        if self.abstention is not None and not self.has_citations:
            self._show_abstention(self.abstention)
        elif self._claims_without_any_proof():
            self._show_unsupported()
        await self._flush()

    @property
    def has_citations(self) -> bool:
        """Whether anything that is shown was proved."""
        return bool(self.book.citations)

    def _claims_without_any_proof(self) -> bool:
        """The model wrote from passages and cited none: no reader may take that for proved."""
        uncited = not self.has_citations and not self.unsupported_claims
        return bool(self.book.hits and self.text.strip()) and uncited

    async def _take(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Text():
                    self._show_model_text(self._reader.feed(piece.text))
                case AbstainTag():
                    self.abstention = piece
                case CiteTag():
                    await self._cite(piece)

    async def _cite(self, tag: CiteTag) -> None:
        self._show_model_text(self._reader.finish())
        proof = self.book.prove(tag.doc_id, tag.quote) or await self._repaired(tag)
        if proof is None:
            self._show_unsupported()
            return
        citation, is_new = proof
        if is_new:
            self._move_pending()
            self._waiting.append(("CITATION", citation.model_dump(mode="json")))
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
        self._show(self._reader.note(UNSUPPORTED.lstrip()))

    def _show_abstention(self, tag: AbstainTag) -> None:
        """Say that the documents hold no answer; what the model claims without any proof is marked."""
        if self.text.strip():
            if not self.text.rstrip().endswith(UNSUPPORTED.lstrip()):
                self._show_unsupported()
            self._show("\n\n")
        self._show(_abstention_text(tag))

    def _show_model_text(self, text: str) -> None:
        self._without_notes += text
        self._show(text)

    def _show(self, text: str) -> None:
        self.text += text
        self._pending += text

    def _move_pending(self) -> None:
        if self._pending:
            self._waiting.append(("TOKEN", {"text": self._pending}))
            self._pending = ""

    async def _flush(self) -> None:
        self._move_pending()
        self._flushed_at = time.monotonic()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            await self.journal.write_all(waiting)


def _abstention_text(tag: AbstainTag) -> str:
    missing = _one_line(tag.missing).rstrip(". ") or "what the question asks for"
    next_step = _one_line(tag.next_step)
    step = f"\n\nNext step: {next_step}" if next_step else ""
    return f"The documents do not answer this. Missing: {missing}.{step}"


def _one_line(text: str) -> str:
    return readable(" ".join(text.split()))
