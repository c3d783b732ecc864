"""Detection of headings and their levels. The sources, in order of trust, are tags, the outline and the
appearance of the text.

By appearance, a heading is at least 15 % larger than body text, or bold, short and isolated. Appearance is
ignored in documents that tag all headings.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from shared.documents.models import Element
from shared.ingestion.parsers.pdf_content import TaggedHeading
from shared.ingestion.parsers.pdf_lines import BULLETS, Line, starts_item

_LARGER = 1.15
# A line that is larger than the next one by this factor is a title that ends there.
_TITLE_LARGER = 1.3
_MAX_CHARS = 150
# Minimum and maximum number of words in the title of a table.
_MIN_TITLE_WORDS, _MAX_TITLE_WORDS = 2, 16
_MAX_TITLE_LINES = 3
# In a title, at least this share of the words must be capitalised. Short words of up to this length, such as
# "of", don't count.
_MAX_SMALL_WORD, _NAMED_SHARE = 3, 0.85
_MAX_BOLD_CHARS = 90
# A font size that makes up a larger share of the document's text is body text, however large it is.
_BODY_SHARE = 0.3
# In a document shorter than this, a large font that occurs in at most this many lines marks headings.
_SMALL_DOCUMENT_CHARS, _FEW_LINES = 2000, 3
_BOLD_LEVEL = 3
_MAX_LEVEL = 6
# If at least this share of the pages contains tagged headings, all headings are assumed to be tagged.
_TAGGED_SHARE = 0.4
_MIN_TAGGED = 3
_UNIT_END = re.compile(r"[^()]+\):?")
_LINE_OF_NUMBER = re.compile(r"\n\d")
_FOLDED = re.compile(r"[\W_]+")


Outline = Mapping[int, Mapping[str, int]]
"""Levels of bookmarks by page number and folded title."""

Tags = Mapping[int, Sequence[TaggedHeading]]
"""Tagged headings by page number. Pages without tagged headings are missing."""


def folded(text: str) -> str:
    """Return only the letters and digits of a text, in lower case. Used to compare bookmarks with lines."""
    return _FOLDED.sub("", text).lower()


class HeadingRule:
    """Heading detection based on the tags, outline and font sizes of one document."""

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
        """Return the level of a heading, 1-6, or None if the line isn't a heading.

        Args:
            before, after: the adjacent lines on the page; None = none.
        """
        declared = self.declared_level(line)
        if declared is not None or self._trusts_tags:
            return declared
        if not _reads_like_heading(line.text) or _is_begun_sentence(line, after):
            return None
        if line.size in self._levels:
            return self._levels[line.size]
        is_bold_heading = line.bold and line.size >= 0.95 * self._body_size and _stands_alone(line, before)
        if is_bold_heading and len(line.text) <= _MAX_BOLD_CHARS and not _continues(line, after):
            return min(max(_BOLD_LEVEL, len(set(self._levels.values())) + 1), _MAX_LEVEL)
        return None

    def declared_level(self, line: Line) -> int | None:
        """Return the level that the tags or the outline of the file declare for a line. Return None if the
        line isn't a declared heading.
        """
        return self._tagged_level(line) or self._outlined_level(line)

    def _tagged_level(self, line: Line) -> int | None:
        """Return the level of the tagged heading at the line's first letter, or None. Only one point is
        tested, because the boxes of tags are tighter than the boxes of lines.
        """
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
            # Sizes that differ by up to 4 % share a level, because rendered sizes vary slightly.
            if position == 0 or larger[position - 1] - size > 0.04 * size:
                level += 1
            levels[size] = min(level, _MAX_LEVEL - 2)
        return levels


def _reads_like_heading(text: str) -> bool:
    # Check cheap conditions first, because this function is called for every line.
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
    """Return whether `line` is the start of a sentence that the next line continues in another style. Such a
    line isn't a heading.

    The sentence is wrapped, so the first word of the next line doesn't fit at the end of `line`. A title
    above an item, or much larger than the text below it, isn't continued.
    """
    if after is None or not after.text[0].islower() or after.top >= line.top or starts_item(after.text):
        return False
    looks_alike = after.size == line.size and after.bold == line.bold
    if looks_alike or line.size >= _TITLE_LARGER * after.size or line.bottom - after.top > line.size:
        return False
    first_word = after.words[0].right - after.words[0].left if after.words else 0.0
    return line.right + first_word >= after.right - line.size


def _stands_alone(line: Line, before: Line | None) -> bool:
    """Return whether the line is the first of a page or column, or has space above it."""
    # The line is the first of a page or column.
    if before is None or before.top < line.top:
        return True
    return before.bottom - line.top > 0.5 * line.size


def _continues(line: Line, after: Line | None) -> bool:
    """Return whether the next line is also bold and follows without a gap. Both lines then belong to a bold
    paragraph, which isn't a heading.
    """
    return (
        after is not None
        and after.bold
        and not starts_item(after.text)
        and after.size == line.size
        and after.top <= line.top
        and line.bottom - after.top <= 0.5 * line.size
    )


def with_table_titles(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield the elements with titles directly above tables turned into headings.

    The heading ends the section of the previous table. Without it, a cash-flow statement would belong to the
    section "Balance sheet".
    """
    # Levels of the last heading, and of the last heading directly above a table.
    level, title_level = 0, None
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
    """Split a paragraph above a table into its title and the rest, which is the lines below the title or a
    unit in brackets. The title is "" if there is none.
    """
    # A line that starts with a number suggests an address.
    if _LINE_OF_NUMBER.search(text):
        return "", text
    lines = text.split("\n")
    for count in range(min(len(lines), _MAX_TITLE_LINES), 0, -1):
        title = " ".join(" ".join(lines[:count]).split())
        if _is_title(title):
            return title, "\n".join(lines[count:])
    before, bracket, unit = text.rpartition("(")
    has_unit = before[-1:].isspace() and _UNIT_END.fullmatch(unit)
    if has_unit and _is_title(title := " ".join(before.split())):
        return title, bracket + unit
    return "", text


def _is_title(text: str) -> bool:
    """Return whether a text looks like a title: few words, nearly all of them capitalised."""
    words = [word for word in text.split() if word[0].isalpha()]
    capitalised = sum(word[0].isupper() or len(word) <= _MAX_SMALL_WORD for word in words)
    return (
        _MIN_TITLE_WORDS <= len(words) <= _MAX_TITLE_WORDS
        and text[0].isupper()
        and text[-1] not in ".,;:"
        and capitalised >= _NAMED_SHARE * len(words)
        and _is_mostly_letters(text)
    )
