"""Chunking: packs a document's elements into blocks of bounded size. Pure; a function counts tokens.

A table is a block of its own, long ones split by rows with the header repeated. Text is packed up to the
limit, with one sentence of overlap, within its section. The heading path is embedded with the text and stored
apart. A block is never over the limit, whatever comes in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from shared.documents.models import Chunk, Element
from shared.evidence.text import split_sentences, split_words
from shared.platform.tokens import TokenCounter

_CLOSED_LEVEL = 2
_PATH_SEPARATOR = " > "


@dataclass
class Section:
    """Elements in order. `path` holds the headings that all of them stand under, outermost first."""

    path: tuple[str, ...]
    page_number: int | None
    start_seconds: float | None
    elements: list[Element] = field(default_factory=list)

    @property
    def size_chars(self) -> int:
        return sum(len(element.text) for element in self.elements)

    @property
    def has_body(self) -> bool:
        """Whether there is anything but headings."""
        return any(element.kind != "heading" for element in self.elements)


def split_sections(elements: Sequence[Element], enough_chars: int) -> Iterator[Section]:
    """The sections of a document, in order; no element is left out.

    Args:
        enough_chars: from this size on a section ends at any heading, not only at a high one.
    """
    outline = Outline()
    current: Section | None = None
    for element in elements:
        path = outline.enter(element)
        if current is not None and _ends_before(current, element, enough_chars):
            yield current
            current = None
        if current is None:
            current = Section(path, element.page_number, element.start_seconds)
        elif element.kind == "heading":
            current.path = _shared(current.path, path) if current.has_body else path
        current.elements.append(element)
    if current is not None:
        yield current


def path_text(path: Sequence[str]) -> str:
    """ "3 Safety > 3.2 Valves"."""
    return _PATH_SEPARATOR.join(path)


def heading_line(text: str) -> str:
    """A heading on one line."""
    return " ".join(text.split())


class Outline:
    """The headings that are open at a point of the document."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, element: Element) -> tuple[str, ...]:
        """The path at `element`, itself included if it is a heading."""
        if element.kind == "heading":
            level = element.level or 1
            line = heading_line(element.text)
            self._open = [known for known in self._open if known[0] < level]
            # A title page's title comes again on the next page: "Report > Report" says nothing more.
            if not self._open or self._open[-1][1] != line:
                self._open.append((level, line))
        return tuple(text for _, text in self._open)


def _ends_before(section: Section, element: Element, enough_chars: int) -> bool:
    if (element.page_number, element.start_seconds) != (section.page_number, section.start_seconds):
        return True
    # Headings without text beneath them, such as a title page's, go with what follows them.
    if element.kind != "heading" or not section.has_body:
        return False
    return (element.level or 1) <= _CLOSED_LEVEL or section.size_chars >= enough_chars


def _shared(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return tuple(first[:length])


_SPECIAL_TOKENS = 2  # [CLS] and [SEP] of the embedding model
_PATH_SHARE = 4  # a heading path may take a quarter of a block
_OVERLAP_SHARE = 4  # and so may the sentence repeated from the block before
_CHARS_PER_TOKEN = 3.6
_HEADER_LINES = 2  # of a Markdown table: the header row and the rule below it


@dataclass(frozen=True)
class _Piece:
    """A sentence, heading, list item or line; `glue` joins it to the piece before.

    `repeatable`: it may stand at the begin of the next block again.
    """

    text: str
    glue: str
    repeatable: bool
    tokens: int = 0


def chunk_elements(elements: Sequence[Element], max_tokens: int, count_tokens: TokenCounter) -> list[Chunk]:
    """The chunks of a document's text, in reading order. Figures are no part of it: see `core.figures`.

    Args:
        max_tokens: most tokens of what is embedded: heading path and text together, special tokens included.
        count_tokens: the embedding model's tokenizer, or an estimate.
    """
    packer = _Packer(max_tokens, count_tokens)
    enough_chars = int(max_tokens * _CHARS_PER_TOKEN / 2)
    spoken = [element for element in elements if element.kind != "figure" and element.text]
    return [chunk for section in split_sections(spoken, enough_chars) for chunk in packer.pack(section)]


def embedded_text(chunk: Chunk) -> str:
    """What is embedded for a chunk: its heading path, then its text."""
    return f"{chunk.heading_path}\n{chunk.text}" if chunk.heading_path else chunk.text


class _Packer:
    """Packs one section at a time."""

    def __init__(self, max_tokens: int, count_tokens: TokenCounter) -> None:
        self._max_tokens = max_tokens
        self._count = count_tokens

    def pack(self, section: Section) -> Iterator[Chunk]:
        path, path_tokens = self._fitting_path(section.path)
        budget = self._max_tokens - path_tokens - _SPECIAL_TOKENS
        for is_table, group in groupby(section.elements, key=lambda element: element.kind == "table"):
            elements = list(group)
            if path == path_text(section.path) and _is_said_by_path(elements, section):
                continue
            for text in self._tables(elements, budget) if is_table else self._texts(elements, budget):
                yield Chunk(
                    text=text,
                    heading_path=path,
                    page_number=section.page_number,
                    start_seconds=section.start_seconds,
                    kind="table" if is_table else "text",
                )

    def _fitting_path(self, path: Sequence[str]) -> tuple[str, int]:
        """The path as text, and its tokens; outer headings are left out until it fits its share."""
        limit = self._max_tokens // _PATH_SHARE
        for start in range(len(path)):
            text = path_text(path[start:])
            (tokens,) = self._count([text])
            if tokens <= limit:
                return text, tokens
        if not path:
            return "", 0
        # One heading over the limit is cut; it stands whole in the text of its section.
        text, tokens = self._words_within(path[-1], limit)[0]
        return text, tokens

    def _texts(self, elements: Sequence[Element], budget: int) -> Iterator[str]:
        packed: list[_Piece] = []
        size = 0
        for piece in self._pieces(elements, budget):
            if packed and size + piece.tokens > budget:
                yield _joined(packed)
                packed = _overlap(packed[-1], piece, budget)
                size = sum(kept.tokens for kept in packed)
            packed.append(piece)
            size += piece.tokens
        if packed:
            yield _joined(packed)

    def _pieces(self, elements: Sequence[Element], budget: int) -> Iterator[_Piece]:
        drafts = [draft for element in elements for draft in _drafts(element)]
        sizes = self._count([draft.text for draft in drafts])
        for draft, tokens in zip(drafts, sizes, strict=True):
            if tokens <= budget:
                yield _Piece(draft.text, draft.glue, draft.repeatable, tokens)
                continue
            glue = draft.glue
            for text, part_tokens in self._words_within(draft.text, budget):
                yield _Piece(text, glue, repeatable=False, tokens=part_tokens)
                glue = " "

    def _words_within(self, text: str, limit: int) -> list[tuple[str, int]]:
        """The text in runs of whole words, each within the limit, with their tokens."""
        words = split_words(text)
        return [(" ".join(run), size) for run, size in self._runs(words, limit)]

    def _tables(self, elements: Sequence[Element], budget: int) -> Iterator[str]:
        for element in elements:
            lines = element.text.splitlines()
            sizes = self._count(lines)
            if sum(sizes) <= budget:
                yield element.text
            else:
                yield from self._table_parts(lines, sum(sizes[:_HEADER_LINES]), budget)

    def _table_parts(self, lines: Sequence[str], header_tokens: int, budget: int) -> Iterator[str]:
        """Rows in groups, each under the header; a header that takes half a block is not repeated."""
        repeats = header_tokens <= budget // 2
        header = list(lines[:_HEADER_LINES]) if repeats else []
        room = budget - header_tokens if repeats else budget
        rows = [text for row in lines[len(header) :] for text in self._row_texts(row, room)]
        for run, _ in self._runs(rows, room):
            yield "\n".join([*header, *run])

    def _row_texts(self, row: str, room: int) -> list[str]:
        if self._count([row])[0] <= room:
            return [row]
        return [text for text, _ in self._words_within(row, room)]

    def _runs(self, texts: Sequence[str], limit: int) -> Iterator[tuple[list[str], int]]:
        """Texts in order, in runs whose tokens add up to `limit` at most."""
        run: list[str] = []
        size = 0
        for text, tokens in zip(texts, self._count(texts), strict=True):
            if run and size + tokens > limit:
                yield run, size
                run, size = [], 0
            run.append(text)
            size += tokens
        if run:
            yield run, size


def _drafts(element: Element) -> Iterator[_Piece]:
    """The pieces of one element, not yet measured."""
    if element.kind == "code":
        for number, line in enumerate(element.text.splitlines()):
            yield _Piece(line, "\n" if number else "\n\n", repeatable=False)
    elif element.kind == "paragraph":
        glue = "\n\n"
        for line in element.text.splitlines():
            for sentence in split_sentences(line):
                yield _Piece(sentence, glue, repeatable=True)
                glue = " "
            glue = "\n"
    else:
        yield _Piece(element.text, "\n" if element.kind == "list_item" else "\n\n", repeatable=False)


def _overlap(last: _Piece, following: _Piece, budget: int) -> list[_Piece]:
    """The sentence that the next block repeats, if it is one, is short, and leaves room for what follows."""
    is_short = last.tokens * _OVERLAP_SHARE <= budget and last.tokens + following.tokens <= budget
    return [last] if last.repeatable and is_short else []


def _joined(pieces: Sequence[_Piece]) -> str:
    first, *rest = pieces
    return first.text + "".join(piece.glue + piece.text for piece in rest)


def _is_said_by_path(elements: Sequence[Element], section: Section) -> bool:
    """Headings above a table: its path carries them, if it is whole; a block of them alone says nothing."""
    return len(elements) < len(section.elements) and all(
        element.kind == "heading" and heading_line(element.text) in section.path for element in elements
    )
