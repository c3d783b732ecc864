"""Holds the text of an answer back until its numbers are checked against the tables it cites.

Nothing is held back before a run has queried tables. From then on a line is shown when it is whole: text that
was streamed never changes. A sentence whose numbers are not those of the result that it cites is withheld;
so is one that cites nothing and has numbers that no result, passage or question gives, nor today's date.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from shared.evidence.cite_parser import CiteTag, Piece, Text
from shared.evidence.models import TableResult
from shared.evidence.number_proof import unproved_numbers, without_date, without_rank
from shared.evidence.text import sentence_ends

# What ends the statement before a citation, or begins an item of a list.
_BELONGS_BEFORE = re.compile(r"\s*(?:[-*>#]+|\d{1,3}[.)])[^\S\n]+|[.,;:!?)*_|]*[^\S\n]*")

IsComputed = Callable[[TableResult], Awaitable[bool]]
"""Whether a result is the same when its query is run again, for a person who may still read its tables."""


@dataclass(frozen=True)
class Withheld:
    """Stands for sentences that are not shown."""


@dataclass
class NumberGate:
    """Lets pieces of an answer through, line by line.

    Attributes:
        results: of all queries of the run.
        others: texts that numbers may be from where nothing is cited: passages, and the question first.
        language: of the answer, ISO 639-1.
        today: a date that any sentence may name.
    """

    results: Sequence[TableResult] = ()
    is_computed: IsComputed | None = None
    others: Sequence[str] = ()
    language: str = "en"
    today: date | None = None
    _line: list[Piece] = field(default_factory=list)
    _computed: list[TableResult] | None = None

    async def pass_on(self, pieces: Sequence[Piece]) -> list[Piece | Withheld]:
        """What may be shown now."""
        if not self.results:
            return [*pieces]
        passed: list[Piece | Withheld] = []
        for piece in pieces:
            match piece:
                case Text():
                    *lines, rest = piece.text.split("\n")
                    for line in lines:
                        self._line.append(Text(f"{line}\n"))
                        passed += await self.finish()
                    self._line += [Text(rest)] if rest else []
                case CiteTag():
                    self._line.append(piece)
                case _:  # a gap or a figure is no part of a sentence
                    passed += [*await self.finish(), piece]
        return passed

    async def finish(self) -> list[Piece | Withheld]:
        """The line that is held, checked."""
        line, self._line = self._line, []
        shown: list[Piece | Withheld] = []
        for text, cites in _statements(line):
            shown += await self._checked(text, cites, is_start=not shown)
        return shown

    async def computed(self, result_id: str) -> TableResult | None:
        """The result of that id, if it is computed."""
        return next((one for one in await self._all_computed() if one.result_id == result_id), None)

    async def _all_computed(self) -> list[TableResult]:
        if self._computed is None:
            self._computed = [one for one in self.results if self.is_computed and await self.is_computed(one)]
        return self._computed

    async def _checked(
        self, text: str, cites: Sequence[CiteTag], *, is_start: bool
    ) -> list[Piece | Withheld]:
        named = [one for cite in cites if cite.result and (one := await self.computed(cite.result))]
        if cites and not any(cite.result for cite in cites):
            return [Text(text), *cites]  # proved by its quotations
        results = named if cites else await self._all_computed()
        others = [*self.others[:1], *(cite.quote for cite in cites)] if cites else self.others
        most = max((result.row_count for result in self.results), default=0)
        shown: list[Piece | Withheld] = []
        for number, sentence in enumerate(_sentences(text)):
            said = without_rank(sentence, most) if is_start and not number else sentence
            said = without_date(said, self.today) if self.today else said
            is_wrong = (bool(cites) and not named) or unproved_numbers(said, results, others, self.language)
            if not is_wrong:
                shown.append(Text(sentence))
            elif not shown or shown[-1] != Withheld():
                shown.append(Withheld())
        if text.endswith("\n") and shown[-1:] == [Withheld()]:
            shown.append(Text("\n"))
        known = {result.result_id for result in named}
        return [*shown, *(cite for cite in cites if not cite.result or cite.result in known)]


def _statements(line: Sequence[Piece]) -> list[tuple[str, list[CiteTag]]]:
    """The texts of a line, each with the citations behind it."""
    statements: list[tuple[str, list[CiteTag]]] = []
    for piece in line:
        if isinstance(piece, CiteTag):
            if not statements:
                statements.append(("", []))
            statements[-1][1].append(piece)
        elif isinstance(piece, Text) and (not statements or statements[-1][1]):
            statements.append((piece.text, []))
        elif isinstance(piece, Text):
            statements[-1] = (statements[-1][0] + piece.text, [])
    return statements


def _sentences(text: str) -> list[str]:
    """The sentences of a text with the white space behind them; what only ends another one alone."""
    start = _BELONGS_BEFORE.match(text)
    ends = sorted({start.end() if start else 0, *sentence_ends(text), len(text)} - {0})
    return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
