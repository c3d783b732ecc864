"""Locates a quotation in the block of the document that it cites. Pure.

A quotation is accepted where a careful reader would find it in the block. Case, typography, list marks and
cell borders may differ; words, numbers, units and signs may not (`shared.evidence.words`). It may consist of
several parts: separated by an ellipsis, joined sentences, items or rows, or a table row with its header. Each
part is a run of consecutive words, parts keep the block's order, and the omitted words don't reverse the
meaning of the quotation. Only an ellipsis may skip whole paragraphs, and none may join a question or a label
such as `Model:` with the answer or value of another.
"""

import html
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from shared.evidence.block_text import BlockText, Row, Run
from shared.evidence.words import EXCEPTIONS, Border, Joint, Word, quoted_words, shown_form

OMISSION = " … "
_MAX_PARTS = 12
_MAX_COMPARISONS = (
    200_000  # words compared or skipped per quotation and block; genuine quotations need a few thousand
)
_MIN_PART_WORDS = 2  # minimum length of a part, unless it is a whole clause or cell, or the only part
_MIN_PROOF_CHARS = 8  # shorter quotations must contain a number with its unit, or be a row under a header
_CONJUNCTIONS = frozenset("and but while whereas und aber während et mais y pero e ma".split())
_CONTRASTS = frozenset(
    "but however though although aber jedoch allerdings mais toutefois pero ma però tuttavia".split()
)
_ONLY = frozenset(
    "only solely nur lediglich ausschließlich seulement uniquement sólo solo solamente soltanto".split()
)
_EXCEPTION_PHRASES = (
    "with the exception",
    "es sei denn",
    "mit ausnahme",
    "à l'exception",
    "con excepción",
    "a excepción",
    "ad eccezione",
)
_LINE_ENDS = {Border.LINE, Border.SENTENCE, Border.PARAGRAPH}


@dataclass(frozen=True)
class Alignment:
    """A quotation located in a block: the words of the block that it repeats, and their position.

    Attributes:
        fragments: the block's own words, in order. Each fragment is contiguous on the page.
        quote: the fragments for display, one per line, with `OMISSION` where words are left out, and without
            the `>` before the lines of a quoted e-mail.
        start: offset of the first fragment in the block's `text`.
    """

    fragments: tuple[str, ...]
    quote: str
    start: int


def align(quote: str, block: BlockText) -> Alignment | None:
    """Locate `quote` in the block. Return None if its words don't occur there in order, are too few to
    identify a passage, or leave out words that change the meaning.
    """
    displayed = shown_form(quote)
    # Models sometimes escape text twice, so the unescaped form is tried as well.
    for text in dict.fromkeys((displayed, html.unescape(displayed))):
        words = quoted_words(text)
        if not _proves_something(words):
            row = _whole_row(words, block)
            return _alignment([row.run], block) if row else None
        readings = [words]
        if any(" " in word.key for word in words):
            readings.append(quoted_words(text, groups_digits=False))
        for reading in readings:
            runs = _Search(reading, block).runs() or _row_runs(reading, block)
            if runs:
                return _alignment(runs, block)
    respaced = _respaced(quoted_words(displayed), block)
    return align(respaced, block) if respaced not in ("", displayed) else None


def _respaced(quoted: Sequence[Word], block: BlockText) -> str:
    """Return the block text that equals the quotation except for white space between letters, or "" if there
    is none.

    Text from PDF files splits words ("data base") and joins them ("page3"). Digits are never joined.
    """
    letters = _letters(quoted)
    if len(letters) < _MIN_PROOF_CHARS:
        return ""
    own = _letters(block.words)
    start = own.find(letters)
    if start < 0:
        return ""
    ends = list(accumulate(_letter_counts(block.words), initial=0))
    if start not in ends or start + len(letters) not in ends:
        return ""
    first, last = ends.index(start), ends.index(start + len(letters)) - 1
    inner = block.words[first + 1 : last + 1]
    own_text = block.text[block.words[first].start : block.words[last].end]
    if "|" in own_text or any(word.border == Border.PARAGRAPH for word in inner):
        # Such text has stricter rules for cell and paragraph borders, which this comparison would bypass.
        return ""
    return own_text


def _letters(words: Sequence[Word]) -> str:
    return "".join(_with_gap(words, place) for place in range(len(words)))


def _letter_counts(words: Sequence[Word]) -> list[int]:
    return [len(_with_gap(words, place)) for place in range(len(words))]


def _with_gap(words: Sequence[Word], place: int) -> str:
    """Return the key of the word at `place`, followed by a space if two numbers would otherwise merge into
    one.
    """
    word, following = words[place].key, words[place + 1].key if place + 1 < len(words) else ""
    return f"{word} " if word[-1:].isdigit() and following[:1].isdigit() else word


def normalise(text: str) -> str:
    """Return the comparison keys of the words in a text, separated by spaces. Typography and punctuation are
    ignored.
    """
    return " ".join(word.key for word in quoted_words(shown_form(text)))


def holds_words(text: str, phrase: str) -> bool:
    """Return whether `text` contains the words of `phrase` in sequence. Only whole words match: `5 bar`
    doesn't occur in `15 bar`.
    """
    block = BlockText(text)
    words = quoted_words(shown_form(phrase))
    places = range(len(block.words))
    return bool(words) and any(_are_same(words, block.words[place : place + len(words)]) for place in places)


def _are_same(ones: Sequence[Word], others: Sequence[Word]) -> bool:
    return len(ones) == len(others) and all(map(_is_same, ones, others))


def _is_same(one: Word, other: Word) -> bool:
    return not set(one.keys).isdisjoint(other.keys)


def _proves_something(words: Sequence[Word]) -> bool:
    """Return whether a quotation is long enough to identify a passage. A shorter one must contain a number
    together with a unit or word.
    """
    text = " ".join(word.key for word in words)
    if len(text) >= _MIN_PROOF_CHARS:
        return any(character.isalnum() for character in text)
    has_number = any(word.is_number for word in words)
    return has_number and any(word.is_unit or word.key.isalpha() or word.is_prefix for word in words)


class _Search:
    """Backtracking search for a quotation in a block. The quotation may consist of several parts, with words
    omitted between them.
    """

    def __init__(self, quoted: Sequence[Word], block: BlockText) -> None:
        self._quoted = quoted
        self._block = block
        self._words = block.words
        self._failed: set[Run] = set()
        self._comparisons = iter(range(_MAX_COMPARISONS))

    def runs(self) -> list[Run] | None:
        """Return one word range for each part of the quotation, in order, or None if the block doesn't
        contain the quotation. A place where nothing is left out takes precedence.
        """
        whole = self._whole_run()
        if whole and self._fits_together(whole):
            return whole
        runs = self._runs_from(0, None, 1)
        return runs if runs and self._fits_together(runs) else None

    def _fits_together(self, runs: Sequence[Run]) -> bool:
        """Return whether the parts say together what the block says: none belongs to another label than the
        parts before it, and halves of different table rows aren't combined.
        """
        # The search has compared each part only with the one before it.
        if any(self._mixes_labels(runs[:part], runs[part][0]) for part in range(2, len(runs))):
            return False
        rows = {row for run in runs for place in (run[0], run[1] - 1) if (row := self._block.row_at(place))}
        ends = [place for row in rows for place in (row.run[0], row.run[1] - 1)]
        return len(rows) <= 1 or all(any(start <= place < end for start, end in runs) for place in ends)

    def _whole_run(self) -> list[Run] | None:
        """Return the first word range that repeats the quotation without omissions, as a one-item list, or
        None if there is none.
        """
        for start in self._places(0):
            if next(self._comparisons, None) is None:
                return None
            run = start, start + len(self._quoted)
            if (
                next(self._ends(0, start), None) == len(self._quoted)
                and self._may_begin(start, None, Joint.NONE)
                and not self._cuts_quantity(run[1])
                and self._may_end(run)
            ):
                return [run]
        return None

    def _runs_from(self, first: int, before: Run | None, part: int) -> list[Run] | None:
        """Locate the quotation from its word `first` onwards, in the words of the block after `before`.
        Return one word range per part, or None if there is no match.
        """
        lower = before[1] if before else 0
        if part > _MAX_PARTS or (first, lower) in self._failed:
            return None
        places = self._places(first)
        for start in places[bisect_left(places, lower) :]:
            gap = range(lower, start)
            if next(islice(self._comparisons, len(gap), None), None) is None:
                return None
            if not self._may_begin(start, before, self._quoted[first].joint):
                continue
            for last in self._ends(first, start):
                run = start, start + last - first
                if not self._may_stand(run, is_alone=last - first == len(self._quoted)):
                    continue
                rest = [] if last == len(self._quoted) else self._runs_from(last, run, part + 1)
                if rest is None or (not rest and not self._may_end(run)):
                    continue
                return [run, *rest]
        self._failed.add((first, lower))
        return None

    def _places(self, first: int) -> list[int]:
        """Return the word indexes in the block at which quotation word `first` occurs."""
        return sorted(
            {place for key in self._quoted[first].keys for place in self._block.places.get(key, ())}
        )

    def _ends(self, first: int, start: int) -> Iterator[int]:
        """Yield the possible ends of a part, longest part first, as exclusive word indexes in the quotation.
        The part starts at quotation word `first` and block word `start`.
        """
        last = first
        while last < len(self._quoted) and self._can_extend(first, last, start + last - first):
            last += 1
        for end in range(last, first, -1):
            if end == len(self._quoted) or self._quoted[end].joint:
                yield end

    def _can_extend(self, first: int, last: int, place: int) -> bool:
        """Return whether a part can be extended by quotation word `last`, which must match block word
        `place`.
        """
        next(self._comparisons, None)
        if place >= len(self._words) or not _is_same(self._words[place], self._quoted[last]):
            return False
        # Adjacent paragraphs of a block may be far apart on the page, so the quotation must mark the border
        # with a separator.
        crosses = last > first and self._words[place].border == Border.PARAGRAPH
        runs_on = self._block.text[self._words[place].start].islower()
        return not crosses or bool(self._quoted[last].joint) or runs_on

    def _may_begin(self, start: int, before: Run | None, joint: Joint) -> bool:
        if self._cuts_quantity(start):
            return False
        if before is None:
            return not self._block.has_negation((self._block.clause_start(start), start))
        return before[1] == start or (
            self._may_omit((before[1], start), joint) and not self._mixes_labels([before], start)
        )

    def _may_end(self, run: Run) -> bool:
        """Return False if a negation follows `run` in the same clause, or an exception follows `run` or that
        clause in the same sentence, because the quotation must not cut it off.
        """
        end = self._block.clause_end(run[1])
        if self._block.has_negation((run[1], end)):
            return False
        return not any(self._is_exception(place) for place in {run[1], end} if place < len(self._words))

    def _is_exception(self, place: int) -> bool:
        """Return whether the words at `place` restrict those before them.

        Examples: `The pump runs, except at night`, `The pump runs, but not at night`. A contrast
        restricts nothing if it continues with another subject: `The pump runs, but the valve does not close`.
        """
        first = self._words[place]
        if first.border >= Border.SENTENCE or first.border == Border.LINE:
            return False
        if first.key not in _CONTRASTS:
            words = " ".join(word.key for word in self._words[place : place + 3])
            return first.key in EXCEPTIONS or words.startswith(_EXCEPTION_PHRASES)
        end = place + 2 if self._border(place + 2) >= Border.CLAUSE else place + 3
        return any(word.is_negation or word.key in _ONLY for word in self._words[place + 1 : end])

    def _may_stand(self, run: Run, *, is_alone: bool) -> bool:
        start, end = run
        if self._cuts_quantity(end):
            return False
        is_long = is_alone or end - start >= _MIN_PART_WORDS
        return is_long or (self._border(start) >= Border.CLAUSE and self._border(end) >= Border.CLAUSE)

    def _may_omit(self, gap: Run, joint: Joint) -> bool:
        """Return whether a quotation can omit the words of `gap` without changing its meaning."""
        before, after = self._border(gap[0]), self._border(gap[1])
        if {"?", "？"} & set(self._between(gap[0])) or (joint == Joint.SIGN and self._ends_paragraph(gap)):
            return False
        if self._block.row_at(gap[0] - 1) is not self._block.row_at(gap[1]):
            return before >= Border.SENTENCE and after >= Border.SENTENCE
        if joint == Joint.SIGN and {before, after} - _LINE_ENDS:
            return False
        borders = {self._border(place) for place in range(gap[0], gap[1] + 1)}
        if _LINE_ENDS.isdisjoint(borders):
            return not self._takes_number_from_number(gap) and self._keeps_negations(gap)
        begins_clause = after >= Border.CLAUSE or self._follows_conjunction(gap)
        is_between_clauses = before >= Border.CLAUSE and begins_clause and not self._is_label(gap[0])
        return is_between_clauses and self._keeps_negations(gap)

    def _keeps_negations(self, gap: Run) -> bool:
        """Return False if `gap` contains a negation that applies to the text before or after it."""
        ends = [place for place in range(gap[0], gap[1] + 1) if self._border(place) >= Border.SENTENCE]
        tail = self._words[gap[0] : ends[0] if ends else gap[1]]
        head = self._words[ends[-1] if ends else gap[0] : gap[1]]
        is_whole_before = self._border(gap[0]) >= Border.STRONG
        is_whole_after = self._border(gap[1]) >= Border.STRONG or self._follows_conjunction(gap)
        return (is_whole_before or not any(word.is_negation for word in tail)) and (
            is_whole_after or not any(word.is_negation for word in head)
        )

    def _follows_conjunction(self, gap: Run) -> bool:
        """Return whether the text after `gap` is a clause introduced by a conjunction, as in `…, and lots are
        missing`.
        """
        last = gap[1] - 1
        return self._words[last].key in _CONJUNCTIONS and self._border(last) >= Border.CLAUSE

    def _is_label(self, end: int) -> bool:
        """Return whether the part before word `end` is a label for the words that follow, such as `Step
        2:`.
        """
        return ":" in self._between(end)

    def _between(self, place: int) -> str:
        """Return the text between the word at `place` and the word before it."""
        return self._block.text[self._words[place - 1].end : self._words[place].start]

    def _ends_paragraph(self, gap: Run) -> bool:
        """Return whether a paragraph ends in `gap` or directly after it. The label of a list item isn't a
        paragraph.
        """
        return any(self._border(place) == Border.PARAGRAPH for place in range(gap[0] + 1, gap[1] + 1))

    def _mixes_labels(self, parts: Sequence[Run], start: int) -> bool:
        """Return whether a part that starts at `start` belongs to another label or heading than the parts
        before it.

        Example: `Model: A-200 … Pressure: 16 bar`, if `Model: B-300` or another `Pressure:` is left out
        between them. A part that begins with the first label again is a new entry, as readers can see. A
        label also counts for a part that begins after it in the same line, such as `A-200`.
        """
        headings = [level for run in parts for level in self._block.heading_levels(run)]
        skipped = self._block.heading_levels((parts[-1][1], start))
        is_heading = bool(self._block.heading_levels((start, start + 1)))
        if headings and skipped and min(skipped) <= headings[-1] and not is_heading:
            return True
        labels: list[str] = []
        for first, end in parts:
            for label in self._block.labels((self._block.label_start(first), end)):
                labels = [label] if label in labels[:1] else [*labels, label]
        own_start = self._block.label_start(start)
        own = self._block.labels((own_start, start + 2))  # the number of a list item may precede it
        if own and own == labels[:1]:
            return False
        return not {*labels, *own}.isdisjoint(self._block.labels((parts[-1][1], own_start)))

    def _takes_number_from_number(self, gap: Run) -> bool:
        """Return whether omitting `gap` would attach a number to words that belong to another number.

        Example: `from 40 million … in 2023`, taken from `from 40 million in 2022 to 48 million in 2023`.
        """
        last = self._words[gap[0] - 1]
        return (last.is_number or last.is_unit) and any(word.is_number for word in self._words[slice(*gap)])

    def _cuts_quantity(self, place: int) -> bool:
        """Return whether a cut before word `place` would separate a number from its sign, unit or scale."""
        if self._border(place) > Border.NONE:
            return False
        before, after = self._words[place - 1], self._words[place]
        if before.is_prefix:
            return after.is_number or after.is_prefix
        follows_number = place > 1 and self._words[place - 2].is_number
        return after.is_unit and (before.is_number or (before.is_unit and follows_number))

    def _border(self, place: int) -> Border:
        return self._words[place].border if place < len(self._words) else Border.PARAGRAPH


def _whole_row(quoted: Sequence[Word], block: BlockText) -> Row | None:
    """Return the row whose cells the quotation repeats from the first to the last, if it has a header and at
    least two cells with words. Return None if no row matches.
    """
    for row in block.rows:
        is_wide = sum(start < end for start, end in row.cells) > 1
        if row.header and is_wide and _are_same(quoted, block.words[slice(*row.run)]):
            return row
    return None


def _row_runs(quoted: Sequence[Word], block: BlockText) -> list[Run] | None:
    """Return the word range of the table row whose cells the quotation repeats, with or without the header
    cells, as a one-item list. Return None if no row matches.
    """
    return next(
        ([row.run] for row in block.rows if row.header and _repeats_row(quoted, row, block.words)), None
    )


def _repeats_row(quoted: Sequence[Word], row: Row, words: Sequence[Word]) -> bool:
    """Return whether the quotation consists only of whole cells of the row, each optionally preceded by its
    header cell.
    """

    def after(place: int, run: Run) -> int | None:
        """Return the quotation index after the words of `run` if the quotation contains them at `place`, else
        None.
        """
        own = words[slice(*run)]
        end = place + len(own)
        return end if _are_same(quoted[place:end], own) else None

    place = after(0, (row.header[0][0], row.header[-1][1])) or 0
    skipped = False
    for column, cell in enumerate(row.cells):
        if skipped and 0 < place < len(quoted) and not quoted[place].joint:
            return False
        after_head = after(place, row.header[column])
        ends = [after(start, cell) for start in (after_head, place) if start is not None]
        end = next((end for end in ends if end is not None), None)
        skipped = end is None
        place = place if end is None else end
    return place == len(quoted)


def _alignment(runs: Sequence[Run], block: BlockText) -> Alignment:
    fragments: list[str] = []
    quote = ""
    reached = None
    shown_rows: list[Row] = []
    for run in (piece for part in runs for piece in _pieces(part, block)):
        row = block.row_at(run[0])
        if row in shown_rows:
            continue
        if row is None:
            lines = [block.shown(run)]
            text = block.unquoted(run)
        else:
            is_headed = not row.header or any(previous.cells == row.header for previous in shown_rows)
            rows = [row] if is_headed else [Row((), row.header), row]
            shown_rows += rows
            lines = [block.line(row_shown.run) for row_shown in rows]
            text = "\n".join(lines)
        if fragments:
            quote += "\n" if run[0] == reached or row is not None else OMISSION
        quote += text
        fragments += lines
        reached = run[1]
    return Alignment(tuple(fragments), quote, block.span(runs[0])[0])


def _pieces(run: Run, block: BlockText) -> Iterator[Run]:
    """Split a word range at the ends of paragraphs and table rows."""
    start = run[0]
    for place in range(run[0] + 1, run[1]):
        is_border = block.words[place].border == Border.PARAGRAPH
        if is_border or block.row_at(place) is not block.row_at(place - 1):
            yield start, place
            start = place
    yield start, run[1]
