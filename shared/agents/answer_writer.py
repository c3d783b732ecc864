"""From the model's stream to the reader's: clean text and proved citations, in the order they are written."""

import re
import time
from dataclasses import dataclass, field
from typing import Any

from shared.agents.journal import Journal
from shared.agents.quote_repair import QuoteRepairer
from shared.core.cite_parser import AbstainTag, CiteParser, CiteTag, Piece, Text
from shared.core.evidence import CitationBook, marker
from shared.models.events import EventName

FLUSH_SECONDS = 0.06  # a reader sees no difference below; an append costs 2 ms
UNSUPPORTED = " *(not proved by the documents)*"
_LAST_STATEMENT = re.compile(r"[^.!?\n|]*[.!?]?\s*\Z")


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
        if self.abstention is not None and not self.text.strip():
            self._show(_abstention_text(self.abstention))
        await self._flush()

    async def _take(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Text():
                    self._show(piece.text)
                case AbstainTag():
                    self.abstention = piece
                case CiteTag():
                    await self._cite(piece)

    async def _cite(self, tag: CiteTag) -> None:
        proof = self.book.prove(tag.doc_id, tag.quote)
        if proof is None:
            # The repair asks the model; readers should not wait for it with text unseen.
            await self._flush()
            repaired = await self.repairer.repair(self._last_statement(), tag.quote)
            proof = None if repaired is None else self.book.prove(tag.doc_id, repaired)
        if proof is None:
            self.unsupported_claims += 1
            self._show_note(UNSUPPORTED)
            return
        citation, is_new = proof
        if is_new:
            self._move_pending()
            self._waiting.append(("CITATION", citation.model_dump(mode="json")))
        self._show_note(marker(citation))

    def _show_note(self, note: str) -> None:
        """Show a note that begins with a blank, without doubling the blank."""
        self._show(note.lstrip() if not self.text or self.text[-1].isspace() else note)

    def _show(self, text: str) -> None:
        self.text += text
        self._pending += text

    def _last_statement(self) -> str:
        match = _LAST_STATEMENT.search(self.text.rstrip())
        return match[0].strip() if match else ""

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
    missing = tag.missing.rstrip(". ") or "what the question asks for"
    step = f"\n\nNext step: {tag.next_step}" if tag.next_step else ""
    return f"The documents do not answer this. Missing: {missing}.{step}"
