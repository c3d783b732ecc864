"""The text of a block, split into words and table rows for the search of quotations. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest

from shared.evidence.words import Border, Word, block_words, shown_form

_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
_RULE = re.compile(r"[\s|:]*-[\s|:-]*")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_MAX_LABEL_WORDS = 6
_LABEL_SIGN = re.compile("[:：](?!//)")  # except in addresses of web pages
_HEADING = re.compile(r"^(#{1,6}) ", re.MULTILINE)
_LABEL_ENDS = {Border.LINE, Border.SENTENCE, Border.PARAGRAPH}
_CLOSING = re.compile(r"[.!?…。！？]+(?=[\s\"'”’»)\]]|\Z)")

_PARTNERS = {")": "(", "]": "[", "}": "{"}

Run = tuple[int, int]
"""A range of word indexes in a block. The end is exclusive."""


@dataclass(frozen=True)
class Row:
    """A row of a Markdown table.

    Attributes:
        header: word ranges of the cells in the header row; empty if the table has no header.
        cells: word ranges of the row's own cells.
    """

    header: tuple[Run, ...]
    cells: tuple[Run, ...]

    @property
    def run(self) -> Run:
        return self.cells[0][0], self.cells[-1][1]


@dataclass(eq=False)
class BlockText:
    """The text of a search block and its words, which are split once and reused for all quotations."""

    content: str

    @cached_property
    def text(self) -> str:
        """The text of the block in the form that `shown_form` returns."""
        return shown_form(self.content)

    @cached_property
    def words(self) -> list[Word]:
        return block_words(self.text)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The word indexes at which each comparison key occurs, in ascending order."""
        by_key: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            for key in word.keys:
                by_key.setdefault(key, []).append(place)
        return by_key

    @cached_property
    def rows(self) -> list[Row]:
        """All table rows of the block in text order, including header rows."""
        return list(_rows(self.text, [word.start for word in self.words]))

    @cached_property
    def _row_of(self) -> dict[int, Row]:
        return {place: row for row in self.rows for place in range(*row.run)}

    def row_at(self, place: int) -> Row | None:
        """Return the table row that contains the word at index `place`, or None if that word is not part of a
        table.
        """
        return self._row_of.get(place)

    @cached_property
    def _clause_starts(self) -> list[int]:
        return [place for place, word in enumerate(self.words) if word.border >= Border.CLAUSE]

    @cached_property
    def _negations(self) -> list[int]:
        return [place for place, word in enumerate(self.words) if word.is_negation]

    def clause_start(self, place: int) -> int:
        """Return the index of the first word of the clause that contains the word at `place`."""
        return self._clause_starts[bisect_right(self._clause_starts, place) - 1]

    def clause_end(self, place: int) -> int:
        """Return the first index from `place` on at which a clause begins or the block ends."""
        following = bisect_left(self._clause_starts, place)
        return self._clause_starts[following] if following < len(self._clause_starts) else len(self.words)

    def has_negation(self, run: Run) -> bool:
        """Return whether a range of words contains a negation, such as `not` or `except`."""
        first, last = (bisect_left(self._negations, place) for place in run)
        return first < last

    @cached_property
    def _labels(self) -> list[tuple[int, str]]:
        """The index of the first word of each label such as `Answer:` or `Question 2:`, and its words except
        numbers, in text order.
        """
        labels: list[tuple[int, str]] = []
        start = 0
        for place, (word, following) in enumerate(pairwise(self.words)):
            if word.border >= Border.LINE:
                start = place
            between = self.text[word.end : following.start]
            if not _LABEL_SIGN.search(between) or place - start >= _MAX_LABEL_WORDS:
                continue
            if keys := [part.key for part in self.words[start : place + 1] if not part.is_number]:
                labels.append((start, " ".join(keys)))
        return labels

    def labels(self, run: Run) -> list[str]:
        """Return the labels that begin in a range of words, in order."""
        first, last = (bisect_left(self._labels, (place,)) for place in run)
        return [label for _, label in self._labels[first:last]]

    @cached_property
    def _label_starts(self) -> list[int]:
        labels = {start for start, _ in self._labels}
        starts: list[int] = []
        for place, word in enumerate(self.words):
            is_start = place in labels or word.border in _LABEL_ENDS
            starts.append(place if is_start or starts[-1] not in labels else starts[-1])
        return starts

    def label_start(self, place: int) -> int:
        """Return the index of the first word of the label before the word at `place` in the same line and
        sentence, or `place` if there is none.
        """
        return self._label_starts[place]

    @cached_property
    def _headings(self) -> list[tuple[int, int]]:
        starts = [word.start for word in self.words]
        return [(bisect_left(starts, sign.end()), len(sign[1])) for sign in _HEADING.finditer(self.text)]

    def heading_levels(self, run: Run) -> list[int]:
        """Return the levels of the headings that begin in a range of words, in order. 1 is the highest."""
        first, last = (bisect_left(self._headings, (place,)) for place in run)
        return [level for _, level in self._headings[first:last]]

    def shown(self, run: Run) -> str:
        """Return the text of a range of words, with the brackets and the punctuation that belong to it."""
        return self.text[slice(*self.span(run))]

    def unquoted(self, run: Run) -> str:
        """Return the same text as `shown`, without the `>` before each line of an e-mail that another quotes.

        A `>` stays if the first line has none, because it may mean "more than".
        """
        start = self.words[run[0]].start
        before = self.text[:start].rpartition("\n")[2]
        depth = before[: len(before) - len(before.lstrip("> \t"))].count(">")
        if not depth:
            return self.shown(run)
        first, *others = self.shown(run).split("\n")
        marks = re.compile(rf"[ \t]*(?:>[ \t]?){{{depth}}}")
        if not all(marks.match(line) for line in others):
            return self.shown(run)
        return "\n".join((first, *(marks.sub("", line, count=1) for line in others)))

    def span(self, run: Run) -> tuple[int, int]:
        """Return the start and end offset of a range of words, including the brackets around them that have
        no partner outside, as in `(a) The tenant` or `point d)`, and the closing punctuation.
        """
        start, end = self.words[run[0]].start, self.words[run[1] - 1].end
        while self.text[end : end + 1] in _PARTNERS and not self._closes_before(start, end):
            end += 1
        for closing, opening in _PARTNERS.items():
            inner = self.text[start:end]
            if start and self.text[start - 1] == opening and inner.count(closing) > inner.count(opening):
                start -= 1
        if self.text.startswith(">", end) and self.text.rfind("<", start, end) > self.text.rfind(
            ">", start, end
        ):
            end += 1  # of an e-mail address
        punctuation = _CLOSING.match(self.text, end)
        return start, punctuation.end() if punctuation else end

    def _closes_before(self, start: int, end: int) -> bool:
        """Return whether the closing bracket at `end` closes one that its paragraph opens before `start`."""
        closing = self.text[end]
        opening = _PARTNERS[closing]
        inner = self.text[start:end]
        if inner.count(opening) > inner.count(closing):
            return False
        depth = 0
        for sign in self.text[:start].rpartition("\n\n")[2]:
            depth = depth + 1 if sign == opening else max(depth - (sign == closing), 0)
        return depth > 0

    def line(self, run: Run) -> str:
        """Return the complete line of text that contains `run`, a range of words in a table row."""
        start = self.words[run[0]].start
        return (self.text[:start].rpartition("\n")[2] + self.text[start:].partition("\n")[0]).strip()


def _rows(text: str, starts: Sequence[int]) -> Iterator[Row]:
    lines = list(_ROW.finditer(text))
    header: tuple[Run, ...] = ()
    reached = None
    for line, following in zip_longest(lines, lines[1:]):
        cells = tuple(_cells(text, line.span(), starts))
        if text[reached : line.start()].strip("\r") != "\n":
            header = ()
        reached = line.end()
        if following is not None and _RULE.fullmatch(following[0]) and cells:
            header = cells
            yield Row((), cells)
        elif any(start < end for start, end in cells):
            yield Row(header if len(header) == len(cells) else (), cells)


def _cells(text: str, span: Run, starts: Sequence[int]) -> Iterator[Run]:
    """Yield the word range of each cell in a table line. Empty cells yield empty ranges."""
    borders = [span[0] + border.start() for border in _CELL_BORDER.finditer(text[slice(*span)])]
    if text[borders[-1] + 1 : span[1]].strip():
        borders.append(span[1])
    for left, right in pairwise(borders):
        yield bisect_left(starts, left), bisect_left(starts, right)
