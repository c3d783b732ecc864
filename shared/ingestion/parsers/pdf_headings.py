"""Which lines of a PDF are headings, and of what level. In order of trust: tags, the outline, the look.

By look a line is a heading if it is larger than the body text (by 15 % at least), or bold, short and alone.
A document whose headings are tagged throughout needs no guess by look.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from shared.documents.models import Element
from shared.ingestion.parsers.pdf_content import TaggedHeading
from shared.ingestion.parsers.pdf_lines import BULLETS, Line, starts_item

_LARGER = 1.15
_MAX_CHARS = 150
_MIN_TITLE_WORDS, _MAX_TITLE_WORDS = 2, 16  # of a table's title
_MAX_TITLE_LINES = 3
_MAX_SMALL_WORD, _NAMED_SHARE = 3, 0.85  # "of", "and"; the share of words that begin like a name
_MAX_BOLD_CHARS = 90
_BODY_SHARE = 0.3  # a size with more of the text than this is body text, whatever its size
_SMALL_DOCUMENT_CHARS, _FEW_LINES = 2000, 3  # a page with little but its title
_BOLD_LEVEL = 3
_MAX_LEVEL = 6
_TAGGED_SHARE = 0.4  # of the pages hold a tagged heading: then all headings are tagged
_MIN_TAGGED = 3
_LINE_OF_NUMBER = re.compile(r"\n\d")
_FOLDED = re.compile(r"[\W_]+")


Outline = Mapping[int, Mapping[str, int]]
"""Page number -> folded title -> level of the document's outline (bookmarks)."""

Tags = Mapping[int, Sequence[TaggedHeading]]
"""Page number -> the headings that the structure tree names; pages without any are left out."""


def folded(text: str) -> str:
    """Letters and digits in lower case: the form in which a bookmark and a line are compared."""
    return _FOLDED.sub("", text).lower()


class HeadingRule:
    """Knows the tags, the outline and the sizes of one document."""

    def __init__(self, lines: Sequence[Line], outline: Outline, tags: Tags) -> None:
        self._outline = outline
        self._tags = tags
        page_count = len({line.page_number for line in lines})
        tagged = sum(map(len, tags.values()))
        self._trusts_tags = tagged >= _MIN_TAGGED and len(tags) >= _TAGGED_SHARE * page_count
        chars = Counter[float]()
        for line in lines:
            chars[line.size] += len(line.text)
        self._body_size = chars.most_common(1)[0][0] if chars else 0.0
        self._levels = self._size_levels(lines, chars)

    def level(self, line: Line, before: Line | None, after: Line | None) -> int | None:
        """The heading's level, 1-6; None for a line that is none.

        Args:
            before, after: the lines before and after it on the page.
        """
        known = self.declared_level(line)
        if known is not None or self._trusts_tags:
            return known
        if not _reads_like_heading(line.text) or _is_begun_sentence(line, after):
            return None
        if line.size in self._levels:
            return self._levels[line.size]
        is_bold_heading = line.bold and line.size >= 0.95 * self._body_size and _stands_alone(line, before)
        if is_bold_heading and len(line.text) <= _MAX_BOLD_CHARS and not _continues(line, after):
            return min(max(_BOLD_LEVEL, len(set(self._levels.values())) + 1), _MAX_LEVEL)
        return None

    def declared_level(self, line: Line) -> int | None:
        """Return the heading's level by the file's tags or its outline."""
        return self._tagged_level(line) or self._outlined_level(line)

    def _tagged_level(self, line: Line) -> int | None:
        """By where its first letter stands; the boxes of tags are tight, those of lines are loose."""
        if len(line.text) > _MAX_CHARS:
            return None
        x, y = line.left + 0.25 * line.size, line.top - 0.6 * line.size
        headings = self._tags.get(line.page_number, ())
        return next((heading.level for heading in headings if heading.box.holds(x, y)), None)

    def _outlined_level(self, line: Line) -> int | None:
        titles = self._outline.get(line.page_number)
        return titles.get(folded(line.text)) if titles else None

    def _size_levels(self, lines: Sequence[Line], chars: Counter[float]) -> dict[float, int]:
        total = sum(chars.values())
        is_small = total < _SMALL_DOCUMENT_CHARS
        counts = Counter(line.size for line in lines)
        larger = sorted(
            {
                line.size
                for line in lines
                if line.size >= _LARGER * self._body_size
                and _reads_like_heading(line.text)
                and (
                    chars[line.size] <= _BODY_SHARE * total or (is_small and counts[line.size] <= _FEW_LINES)
                )
            },
            reverse=True,
        )
        levels: dict[float, int] = {}
        level = 0
        for position, size in enumerate(larger):
            # Sizes within 4 % of each other are one size, drawn differently.
            if position == 0 or larger[position - 1] - size > 0.04 * size:
                level += 1
            levels[size] = min(level, _MAX_LEVEL - 2)
        return levels


def _reads_like_heading(text: str) -> bool:
    # Asked of every line: what is cheap to see comes first.
    return (
        len(text) <= _MAX_CHARS
        and text[-1] not in ".,;"
        and (text[0].isupper() or text[0].isdigit() or not text[0].isascii() or len(text) <= 40)
        and text[0] not in BULLETS
        and text[0] not in "*-–"
        and _is_mostly_letters(text)
    )


def _is_mostly_letters(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    return letters >= 2 and letters * 2 >= len(text.replace(" ", ""))


def _is_begun_sentence(line: Line, after: Line | None) -> bool:
    """Whether the next line continues with a small letter and another look: then this is no heading."""
    if after is None or not after.text[0].islower() or after.top >= line.top:
        return False
    looks_alike = after.size == line.size and after.bold == line.bold
    return not looks_alike and line.bottom - after.top <= line.size


def _stands_alone(line: Line, before: Line | None) -> bool:
    """Whether there is room above it, or another bold line, or the page's edge."""
    if before is None or before.top < line.top:  # the first line of a page or of a column
        return True
    return before.bottom - line.top > 0.5 * line.size


def _continues(line: Line, after: Line | None) -> bool:
    """Whether the next line continues in bold without room between: then it is a bold paragraph."""
    return (
        after is not None
        and after.bold
        and not starts_item(after.text)
        and after.size == line.size
        and after.top <= line.top
        and line.bottom - after.top <= 0.5 * line.size
    )


def with_table_titles(elements: Iterable[Element]) -> Iterator[Element]:
    """Return the elements, titles right above tables as headings, which end that of the table before.

    Otherwise a cash-flow statement would stand under the heading of the balance sheet before it.
    """
    level, title_level = 0, None  # of the last heading; of the last one that named a table
    for element, after in pairwise([*elements, None]):
        if element is None:
            continue
        is_above = after is not None and after.kind == "table" and after.page_number == element.page_number
        title, rest = _title_and_rest(element.text) if element.kind == "paragraph" and is_above else ("", "")
        if title:
            title_level = title_level or min(level + 1, _MAX_LEVEL)
            yield element.model_copy(update={"kind": "heading", "text": title, "level": title_level})
            if rest:
                yield element.model_copy(update={"text": rest})
            continue
        if element.kind == "heading":
            level = element.level or 1
            title_level = level if is_above else None
        yield element


def _title_and_rest(text: str) -> tuple[str, str]:
    """Return the title at the begin of a paragraph, and the lines below it, such as a unit."""
    if _LINE_OF_NUMBER.search(text):  # an address
        return "", text
    lines = text.split("\n")
    for count in range(min(len(lines), _MAX_TITLE_LINES), 0, -1):
        title = " ".join(" ".join(lines[:count]).split())
        if _is_title(title):
            return title, "\n".join(lines[count:])
    return "", text


def _is_title(text: str) -> bool:
    """Whether the text is a name: a few words, nearly all in capitals or beginning with one."""
    words = [word for word in text.split() if word[0].isalpha()]
    named = sum(word[0].isupper() or len(word) <= _MAX_SMALL_WORD for word in words)
    return (
        _MIN_TITLE_WORDS <= len(words) <= _MAX_TITLE_WORDS
        and text[0].isupper()
        and text[-1] not in ".,;:"
        and named >= _NAMED_SHARE * len(words)
        and _is_mostly_letters(text)
    )
