"""Splitting of a document's elements into chunks of bounded size. Pure; the token counter is an argument.

The text of a section is packed into blocks up to the limit, with one sentence of overlap. A table is a
separate block that starts with the line introducing it, such as its unit. A long table is split between rows,
but just before the last one only if there is no other way, and each part repeats the header. The heading path
is embedded with the text and stored in a separate field. No block exceeds the limit, whatever the input.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, islice, takewhile

from shared.documents.models import Chunk, Element, Figure
from shared.evidence.cues import cues_of_part
from shared.evidence.text import split_sentences, split_words
from shared.platform.tokens import CHARS_PER_TOKEN, TokenCounter
from shared.retrieval.models import HEADING_SEPARATOR

# A heading at this level or a higher one always starts a new section.
_CLOSED_LEVEL = 2
# The embedding model adds two tokens, [CLS] and [SEP], to each text.
_SPECIAL_TOKENS = 2
# A block's heading path may use up to a quarter of its tokens.
_PATH_SHARE = 4
# The sentence repeated from the previous block may use up to a quarter of its tokens.
_OVERLAP_SHARE = 4
# Matches the lines that `str.splitlines` would return, one at a time.
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
# The Markdown of a table may have this many times as many tokens as its embedded text.
_SHOWN_SHARE = 3
# Number of sentences or words whose tokens are counted at a time. A text may consist of millions.
_BATCH = 1000
_SENTENCE_ENDS = (".", "!", "?", "\u3002")
_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+\s*")
# A Markdown table starts with a header row and a delimiter row.
_HEADER_LINES = 2
# A picture that occurs at least this often is decoration, such as a logo on every page.
_DECORATION_TIMES = 3
# Maximum length of the text before a figure, and of the text after it, in characters.
_CONTEXT_CHARS = 700
_MAX_WORDS_CHARS = 1500
_MAX_LABEL_CHARS = 500
_MAX_PATH_CHARS = 300
# Maximum length of the text that introduces a table, in characters: one or two sentences. Longer text is an
# ordinary paragraph.
_MAX_LEAD_IN_CHARS = 250


def chunk_elements(elements: Sequence[Element], max_tokens: int, count_tokens: TokenCounter) -> list[Chunk]:
    """Split a document's text and tables into chunks, in reading order. Figures are not included.

    Args:
        max_tokens: limit for a chunk's embedded text, including its heading path and special tokens.
        count_tokens: the embedding model's tokenizer, or an estimate.
    """
    packer = _Packer(max_tokens, count_tokens)
    placed = [
        (place, element)
        for place, element in enumerate(elements)
        if element.kind != "figure" and element.text
    ]
    places = iter([place for place, _ in placed])
    sections = _sections([element for _, element in placed], int(max_tokens * CHARS_PER_TOKEN / 2))
    return [
        chunk
        for path, section in sections
        for chunk in _with_cues(packer.pack(path, section, list(islice(places, len(section)))), section)
    ]


def _with_cues(chunks: Iterable[Chunk], section: Sequence[Element]) -> Iterator[Chunk]:
    """Yield the chunks of a section. In a transcript, each chunk gets the cues (start times) of the words
    that it contains.
    """
    cues = section[0].cues
    words = section[0].text.split() if cues is not None else []
    begin = 0
    for chunk in chunks:
        own = ""
        if cues is not None:
            own, begin = cues_of_part(cues, words, chunk.text.split(), begin)
        yield chunk.model_copy(update={"cues": own}) if own else chunk


def embedded_text(chunk: Chunk) -> str:
    """Return the text to embed for a chunk: its heading path, then its text, with tables as plain lines."""
    text = chunk.text
    if chunk.kind == "table":
        text = "\n".join(line for row in text.splitlines() if (line := plain_row(row)))
    return f"{chunk.heading_path}\n{text}" if chunk.heading_path else text


@dataclass
class _Outline:
    """The headings above the current element, outermost first."""

    _open: list[tuple[int, str]] = field(default_factory=list)

    def enter(self, element: Element) -> tuple[str, ...]:
        """Advance to `element` and return its heading path. The path of a heading includes the heading
        itself.
        """
        if element.kind == "heading":
            level, line = element.level or 1, " ".join(element.text.split())
            self._open = [heading for heading in self._open if heading[0] < level]
            # A title may be repeated on the next page. Skip it, since the path would become "Report >
            # Report".
            if not self._open or self._open[-1][1] != line:
                self._open.append((level, line))
        return tuple(line for _, line in self._open)


def _sections(
    elements: Sequence[Element], enough_chars: int
) -> Iterator[tuple[tuple[str, ...], list[Element]]]:
    """Yield the heading path and elements of each section, in order. Every element belongs to exactly one
    section.

    Args:
        enough_chars: size from which a section ends at any heading, not only at one of a high level.
    """
    outline = _Outline()
    path: tuple[str, ...] = ()
    section: list[Element] = []
    # State of the section that is being collected.
    place, size_chars, has_body = None, 0, False
    for element in elements:
        here, is_heading = outline.enter(element), element.kind == "heading"
        is_elsewhere = place != (element.page_number, element.start_seconds)
        is_high = (element.level or 1) <= _CLOSED_LEVEL
        # Headings without body text, such as on a title page, belong to the section that follows.
        ends = is_heading and has_body and (is_high or size_chars >= enough_chars)
        if section and (is_elsewhere or ends):
            yield path, section
            section, size_chars, has_body = [], 0, False
        if not section:
            path, place = here, (element.page_number, element.start_seconds)
        elif is_heading:
            common = takewhile(lambda pair: pair[0] == pair[1], zip(path, here, strict=False))
            path = tuple(heading for heading, _ in common) if has_body else here
        section.append(element)
        size_chars += len(element.text)
        has_body = has_body or not is_heading
    if section:
        yield path, section


@dataclass(frozen=True)
class _Piece:
    """Smallest unit of text in a block: a sentence, heading, list item or line of code.

    Attributes:
        glue: separator between the previous piece and this one.
        repeatable: whether the next block may repeat it as overlap.
        place: position of its element in the document.
    """

    text: str
    glue: str
    repeatable: bool = False
    tokens: int = 0
    place: int = 0


_Placed = tuple[int, Element]
"""An element and its position among the document's elements."""


@dataclass(frozen=True)
class _Packer:
    """Packer that fills chunks with the elements of a section, up to `max_tokens` tokens each."""

    max_tokens: int
    count: TokenCounter

    def pack(self, path: Sequence[str], section: Sequence[Element], places: Sequence[int]) -> Iterator[Chunk]:
        heading_path, path_tokens = self._fitting_path(path)
        budget = self.max_tokens - path_tokens - _SPECIAL_TOKENS
        is_whole = heading_path == HEADING_SEPARATOR.join(path)
        placed = zip(places, section, strict=True)
        lead_in = ""
        groups = [list(group) for _, group in groupby(placed, key=lambda one: one[1].kind == "table")]
        for number, elements in enumerate(groups, start=1):
            is_table = elements[0][1].kind == "table"
            if is_table:
                texts = self._tables(elements, budget, lead_in)
            else:
                lead_in = self._lead_in(elements[-1][1], budget) if number < len(groups) else ""
                said_elsewhere = {*(path if is_whole else ())}
                if not lead_in.endswith(_SENTENCE_ENDS):
                    said_elsewhere.add(lead_in)
                if len(elements) < len(section) and {_line(one) for _, one in elements} <= said_elsewhere:
                    # Skip a block that contains only headings and the lead-in of a table. The blocks of the
                    # table repeat both.
                    continue
                texts = self._texts(elements, budget)
            for place, text in texts:
                yield Chunk(
                    text=text,
                    place=place,
                    heading_path=heading_path,
                    page_number=section[0].page_number,
                    start_seconds=section[0].start_seconds,
                    kind="table" if is_table else "text",
                )

    def _fitting_path(self, path: Sequence[str]) -> tuple[str, int]:
        """Return the heading path as text, and its number of tokens. If it is too long, outer headings are
        dropped.
        """
        limit = self.max_tokens // _PATH_SHARE
        for start in range(len(path)):
            text = HEADING_SEPARATOR.join(path[start:])
            (tokens,) = self.count([text])
            if tokens <= limit:
                return text, tokens
        # Truncate only the path. The whole heading is still part of the section's text.
        return next(self._words_within(path[-1], limit)) if path else ("", 0)

    def _texts(self, elements: Sequence[_Placed], budget: int) -> Iterator[tuple[int, str]]:
        packed: list[str] = []
        size = place = 0
        before = _Piece("", "")
        for piece in self._pieces(elements, budget):
            if packed and size + piece.tokens > budget:
                yield place, "".join(packed)
                is_short = before.tokens * _OVERLAP_SHARE <= budget and before.tokens + piece.tokens <= budget
                repeats = before.repeatable and is_short
                packed, size = ([before.text], before.tokens) if repeats else ([], 0)
                place = piece.place
            elif not packed:
                place = piece.place
            packed.append(piece.glue + piece.text if packed else piece.text)
            size += piece.tokens
            before = piece
        if packed:
            yield place, "".join(packed)

    def _pieces(self, elements: Sequence[_Placed], budget: int) -> Iterator[_Piece]:
        """Yield the pieces of the elements, with their numbers of tokens. A piece over the budget is split
        between words.
        """
        pieces = (replace(piece, place=place) for place, element in elements for piece in _pieces(element))
        while batch := list(islice(pieces, _BATCH)):
            for piece, tokens in zip(batch, self.count([piece.text for piece in batch]), strict=True):
                if tokens <= budget:
                    yield replace(piece, tokens=tokens)
                    continue
                for number, (text, part_tokens) in enumerate(self._words_within(piece.text, budget)):
                    yield _Piece(text, " " if number else piece.glue, tokens=part_tokens, place=piece.place)

    def _lead_in(self, element: Element, budget: int) -> str:
        """Return the text that introduces a table, such as its title or unit. Return "" if the element isn't
        a short text.
        """
        if element.kind not in ("paragraph", "list_item"):
            # Headings are already part of the heading path.
            return ""
        text = _line(element)
        if len(text) > _MAX_LEAD_IN_CHARS and text.endswith(":"):
            text = split_sentences(text)[-1]
        (tokens,) = self.count([text])
        return text if len(text) <= _MAX_LEAD_IN_CHARS and tokens <= budget // _PATH_SHARE else ""

    def _tables(self, tables: Sequence[_Placed], budget: int, lead_in: str) -> Iterator[tuple[int, str]]:
        """Yield the position and text of each block for consecutive tables. The blocks of the first table
        start with `lead_in`.
        """
        if lead_in:
            (tokens,) = self.count([lead_in])
            for place, text in self._rows(tables[:1], budget - tokens):
                yield place, f"{lead_in}\n\n{text}"
            tables = tables[1:]
        yield from self._rows(tables, budget)

    def _rows(self, tables: Sequence[_Placed], budget: int) -> Iterator[tuple[int, str]]:
        """Split tables into blocks of rows. Each block repeats the header, unless the header needs more than
        half the budget.
        """
        for place, table in tables:
            lines = table.text.splitlines()
            sizes = self._row_sizes(lines)
            if sum(sizes) <= budget:
                yield place, table.text
                continue
            header_tokens = sum(sizes[:_HEADER_LINES])
            repeats = header_tokens <= budget // 2
            header = lines[:_HEADER_LINES] if repeats else []
            room = budget - header_tokens if repeats else budget
            rows: list[str] = []
            for row, tokens in list(zip(lines, sizes, strict=True))[len(header) :]:
                rows += [row] if tokens <= room else [text for text, _ in self._words_within(row, room)]
            for run in _row_runs(rows, self._row_sizes(rows), room):
                yield place, "\n".join([*header, *run])

    def _row_sizes(self, rows: Sequence[str]) -> list[int]:
        """Return the number of tokens that each table row adds to its block.

        A row counts with the tokens of its embedded text, because half of a numeric table's Markdown is
        markup. A row of mostly empty cells counts with a third of its Markdown tokens, so that the text
        shown to the model is bounded, too.
        """
        embedded, markdown_sizes = self.count([plain_row(row) for row in rows]), self.count(rows)
        return [
            max(plain, full // _SHOWN_SHARE) for plain, full in zip(embedded, markdown_sizes, strict=True)
        ]

    def _words_within(self, text: str, limit: int) -> Iterator[tuple[str, int]]:
        """Split text between words into parts of at most `limit` tokens. Yield each part with its token
        count.
        """
        for run, size in _runs(self._words(text), limit):
            yield " ".join(run), size

    def _words(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield the words of a text with their numbers of tokens."""
        words = split_words(text)
        while batch := list(islice(words, _BATCH)):
            yield from zip(batch, self.count(batch), strict=True)


def _runs(texts: Iterable[tuple[str, int]], limit: int) -> Iterator[tuple[list[str], int]]:
    """Group consecutive texts, given with their numbers of tokens, into runs of at most `limit` tokens. Yield
    each run with its token count.
    """
    run: list[str] = []
    size = 0
    for text, tokens in texts:
        if run and size + tokens > limit:
            yield run, size
            run, size = [], 0
        run.append(text)
        size += tokens
    if run:
        yield run, size


def _row_runs(rows: Sequence[str], sizes: Sequence[int], limit: int) -> list[list[str]]:
    """Group the rows of a table into runs of at most `limit` tokens. The last two runs are about equally
    long, and a single last row is joined by another one if both fit: alone, it would be found and shown
    without the rows that explain it.
    """
    runs = [run for run, _ in _runs(zip(rows, sizes, strict=True), limit)]
    if len(runs) < 2:
        return runs
    pair = [*runs[-2], *runs[-1]]
    ends = list(accumulate(sizes[-len(pair) :]))

    def longer(cut: int) -> int:
        return max(ends[cut - 1], ends[-1] - ends[cut - 1])

    fitting = [cut for cut in range(1, len(pair) - 1) if longer(cut) <= limit]
    cut = min(fitting or range(1, len(pair)), key=longer)
    return [*runs[:-2], pair[:cut], pair[cut:]]


def plain_row(line: str) -> str:
    """Return a line of a Markdown table without markup; "" for the delimiter row."""
    if not line.startswith("|"):
        return line
    if _RULE.fullmatch(line):
        return ""
    cells = (cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(line))
    return " ".join(cell for cell in cells if cell)


def _line(element: Element) -> str:
    return " ".join(element.text.split())


def _pieces(element: Element) -> Iterator[_Piece]:
    if element.kind == "code":
        for number, line in enumerate(element.text.splitlines()):
            yield _Piece(line, "\n" if number else "\n\n")
    elif element.kind == "paragraph":
        glue = "\n\n"
        for match in _LINE.finditer(element.text):
            for sentence in split_sentences(match[0]):
                yield _Piece(sentence, glue, repeatable=True)
                glue = " "
            glue = "\n"
    else:
        yield _Piece(element.text, "\n" if element.kind == "list_item" else "\n\n")


def figures_of(elements: Sequence[Element]) -> list[Figure]:
    """Return the distinct figures of a document in reading order, without decoration such as logos."""
    times = Counter(element.picture.key for element in elements if element.picture is not None)
    outline = _Outline()
    figures: list[Figure] = []
    seen: set[str] = set()
    for position, element in enumerate(elements):
        path = outline.enter(element)
        picture = element.picture
        if picture is None or picture.key in seen or times[picture.key] >= _DECORATION_TIMES:
            continue
        seen.add(picture.key)
        figures.append(
            Figure(
                key=picture.key,
                place=position,
                label=element.text[:_MAX_LABEL_CHARS],
                context=_surrounding_text(elements, position),
                words=picture.words[:_MAX_WORDS_CHARS],
                heading_path=HEADING_SEPARATOR.join(path)[:_MAX_PATH_CHARS],
                page_number=element.page_number,
                width_px=picture.width_px,
                height_px=picture.height_px,
            )
        )
    return figures


def figure_text(figure: Figure, caption: str) -> str:
    """Return the text to index for a figure: its label and caption, or only the caption if it contains the
    label.
    """
    return caption if not figure.label or figure.label in caption else f"{figure.label}\n{caption}"


def caption_by_rule(figure: Figure) -> str:
    """Return a caption without calling a model: the figure's label, its words, or the surrounding text."""
    text = figure.label or " ".join(figure.words.split()) or " ".join(figure.context.split())
    short = text[:_CONTEXT_CHARS].strip()
    place = f" on page {figure.page_number}" if figure.page_number else ""
    return short or f"A figure{place}."


def _surrounding_text(elements: Sequence[Element], position: int) -> str:
    """Return the text before and after an element on its page. Each part is shortened to `_CONTEXT_CHARS`
    characters.
    """
    before = _texts_near(elements[position - 1 :: -1] if position else [], elements[position])
    after = _texts_near(elements[position + 1 :], elements[position])
    return "\n".join([*reversed(before), *after])


def _texts_near(elements: Sequence[Element], figure: Element) -> list[str]:
    """Return the texts next to a figure on its page, nearest first, until the character limit is reached."""
    words = figure.picture.words if figure.picture else ""
    texts: list[str] = []
    room = _CONTEXT_CHARS
    for element in elements:
        if element.page_number != figure.page_number or room <= 0:
            break
        if element.kind != "figure" and element.text and element.text not in (figure.text, words):
            texts.append(element.text[:room])
            room -= len(element.text)
    return texts
