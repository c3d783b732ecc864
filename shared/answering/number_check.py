"""Checks the numbers in an answer against the results of table queries.

A sentence is withheld if one of its numbers is missing from the results that it cites. In a sentence without
citations, a number must occur in a result or a passage. Every sentence may repeat numbers of the question and
of earlier answers, count in words the items listed in them or in itself, and name today's date.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from shared.answering.statements import Statement
from shared.evidence.listed_items import listed_counts
from shared.evidence.models import TableResult
from shared.evidence.number_proof import unproved_numbers, without_date, without_rank
from shared.evidence.text import sentence_ends

# A list marker at the start, or the punctuation after the citation of the previous statement.
_BELONGS_BEFORE = re.compile(r"\s*(?:[-*>#]+|\d{1,3}[.)])[^\S\n]+|[.,;:!?)*_|]*[^\S\n]*")

IsComputed = Callable[[TableResult], Awaitable[bool]]
"""Whether a query still returns the same result for a user who may still read its tables."""


@dataclass(frozen=True)
class Withheld:
    """Placeholder for sentences that are omitted because their numbers could not be confirmed."""


@dataclass
class NumberCheck:
    """Checks statements of an answer for numbers that the run's table queries don't confirm.

    Attributes:
        results: results of all table queries of the run. If there are none, nothing is checked.
        is_computed: repeats the query of a result. All queries are repeated once, at the first check.
        question: text whose numbers every statement may repeat.
        earlier_answers: answers to earlier questions of the thread, whose numbers every statement may repeat.
        passages: texts whose numbers an uncited statement may repeat.
        language: ISO 639-1 code of the answer.
        today: a date that any sentence may contain.
    """

    results: Sequence[TableResult] = ()
    is_computed: IsComputed | None = None
    question: str = ""
    earlier_answers: Sequence[str] = ()
    passages: Sequence[str] = ()
    language: str = "en"
    today: date | None = None
    _computed: list[TableResult] | None = field(default=None, repr=False)

    async def computed(self) -> Sequence[TableResult]:
        """Return the query results that were confirmed by running their queries again."""
        if self._computed is None:
            self._computed = [
                result for result in self.results if self.is_computed and await self.is_computed(result)
            ]
        return self._computed

    async def check(self, statement: Statement) -> list[Statement | Withheld]:
        """Return the parts of a statement to show. Consecutive sentences with unconfirmed numbers are
        replaced by one placeholder.
        """
        ids = {cite.result for cite in statement.cites if cite.result}
        if not self.results or (statement.cites and not ids):
            return [statement]  # Quotations prove statements without query results.
        computed = await self.computed()
        cited = [result for result in computed if result.result_id in ids]
        passages = [cite.quote for cite in statement.cites] if ids else self.passages
        others = [self.question, *self.earlier_answers, *passages]
        parts: list[Statement | Withheld] = []
        for number, sentence in enumerate(_sentences(statement.text)):
            may_be_rank = statement.begins_line and not number
            text = without_rank(sentence, self._most_rows) if may_be_rank else sentence
            text = without_date(text, self.today) if self.today else text
            is_unknown = bool(ids) and not cited
            counts = listed_counts(sentence) | self._earlier_counts
            results = cited if ids else computed
            if not (is_unknown or unproved_numbers(text, results, others, self.language, counts)):
                parts.append(Statement(sentence))
            elif not parts or parts[-1] != Withheld():
                parts.append(Withheld())
        if statement.text.endswith("\n") and parts[-1:] == [Withheld()]:
            parts.append(Statement("\n"))
        cited_ids = {result.result_id for result in cited}
        cites = tuple(cite for cite in statement.cites if not cite.result or cite.result in cited_ids)
        return [*parts, Statement("", cites)] if cites else parts

    @cached_property
    def _earlier_counts(self) -> set[int]:
        return set().union(*map(listed_counts, self.earlier_answers))

    @property
    def _most_rows(self) -> int:
        return max((result.row_count for result in self.results), default=0)


def _sentences(text: str) -> list[str]:
    """Split a text into sentences, each with the white space that follows it.

    Punctuation or a list marker at the start of the text is a separate item.
    """
    start = _BELONGS_BEFORE.match(text)
    ends = sorted({start.end() if start else 0, *sentence_ends(text), len(text)} - {0})
    return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
