"""Parser for plain text, and helpers that several parsers share: encodings, paragraphs, page ranges, titles
and authors.

Paragraphs are separated by blank lines. Title and author properties are ignored if a program generated them.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from charset_normalizer import from_bytes

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.platform.errors import BadDocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # UTF-32 must precede UTF-16, whose byte order mark is a prefix of the UTF-32 mark.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Legacy encodings. The first group is for other scripts than Latin, whose texts contain runs of bytes above
# 127.
_OF_OTHER_SCRIPTS = ("cp1251", "koi8_r", "cp866", "cp1253", "cp932", "euc_jp", "gb18030", "big5", "cp949")
_LATIN = ("cp1252", "cp1250", "cp1254")
_LANGUAGES_OF = {
    "cp1250": ("Polish", "Czech", "Slovak", "Hungarian", "Croatian", "Slovene"),
    "cp1254": ("Turkish",),
}
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
# Minimum length of a run of bytes above 127 that suggests another script, and the minimum share of such bytes
# in these runs. Accented Latin letters occur alone or in threes ("ÄÖÜ").
_MIN_RUN_BYTES, _MIN_RUN_SHARE = 4, 0.5
# Minimum number of bytes above 127 from which a script or language can be identified.
_MIN_HIGH_BYTES = 10
# Size of the sample from which the encoding is detected. Detection takes 0.03 s.
_SAMPLE_BYTES = 1 << 16
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_SHARE = 0.01
# Maximum size of a text file. It is large enough to exceed the limit of blocks; parsing and chunking such a
# file takes 180 MB.
MAX_TEXT_BYTES = 20_000_000
_PIECE_CHARS = 1 << 20
_MIN_TITLE_LETTERS = 4
_DEFAULT_NAME = re.compile(
    r"(?:untitled.*|unbenannt.*"
    r"|(?:document|dokument|book|mappe|sheet|tabelle|presentation|präsentation|slide|folie) ?\d*"
    r"|powerpoint[- ]pr[äe]sentation)\Z",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(r".*\.\w{2,4}\Z")
_NO_AUTHOR = re.compile(
    r"(?:python-\w+|openpyxl|xlsxwriter|apache poi|user|admin|administrator|microsoft(?: office)?(?: user)?"
    r"|unknown)\Z",
    re.IGNORECASE,
)
_MAX_CHARS = 300


def parse_text(path: Path, _context: ParseContext | None = None) -> ParsedDocument:
    """Parse the paragraphs of a text file. Line breaks within a paragraph are kept.

    Raises:
        BadDocumentError: the content is binary.
    """
    return ParsedDocument(elements=text_paragraphs(read_text(path)))


def read_text(path: Path, declared: str | None = None) -> str:
    """Return the text of a file, with all line ends converted to line feeds.

    The encoding is taken from the byte order mark; otherwise it is UTF-8 if valid, then the declared
    encoding, then a guess based on the bytes. The default is Windows-1252, the usual legacy encoding of
    Western files.

    Raises:
        BadDocumentError: the content is binary, or larger than 20 MB.
    """
    size_bytes = path.stat().st_size
    if size_bytes > MAX_TEXT_BYTES:
        raise BadDocumentError(
            f"The file contains {size_bytes // 1_000_000:,} MB of text; the limit is "
            f"{MAX_TEXT_BYTES // 1_000_000} MB.",
            "Split the file.",
            failure="too_large",
        )
    pieces: list[str] = []
    with path.open(encoding=find_encoding(path, declared), errors="replace") as file:
        # Not by line: a list of all lines would need ten times the memory of a text with short lines.
        while piece := file.read(_PIECE_CHARS):
            pieces.append(_CONTROL.sub("", piece))
    return "".join(pieces)


def text_lines(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a file, each ending with a line feed, without control characters."""
    with path.open(encoding=encoding, errors="replace") as file:
        for line in file:
            yield _CONTROL.sub("", line)


def find_encoding(path: Path, declared: str | None = None) -> str:
    """Return the encoding that `read_text` would use for a file. Only a sample of the file is read.

    Raises:
        BadDocumentError: the content is binary.
    """
    with path.open("rb") as file:
        start = file.read(4)
    marked = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    for encoding in (marked,) if marked else ("utf-8", declared):
        try:
            if encoding is not None:
                _require_text(path, encoding, "strict")
                return encoding
        except (UnicodeError, LookupError):
            continue
    guessed = _guessed_encoding(path)
    _require_text(path, guessed, "replace")
    return guessed


def _guessed_encoding(path: Path) -> str:
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    # Don't cut off a multi-byte character at the end of the sample.
    if len(sample) == _SAMPLE_BYTES:
        sample = sample.rpartition(b"\n")[0] or sample
    runs = _HIGH_BYTES.findall(sample)
    high_bytes = sum(map(len, runs))
    in_runs = sum(len(run) for run in runs if len(run) >= _MIN_RUN_BYTES)
    is_latin = in_runs < _MIN_RUN_SHARE * high_bytes
    if high_bytes < _MIN_HIGH_BYTES:
        return "cp1252"
    guess = from_bytes(sample, cp_isolation=list(_LATIN if is_latin else _OF_OTHER_SCRIPTS)).best()
    if guess is None:
        return "cp1252"
    if is_latin:
        return next(
            (name for name, languages in _LANGUAGES_OF.items() if guess.language in languages), "cp1252"
        )
    return guess.encoding


def _require_text(path: Path, encoding: str, errors: str) -> None:
    chars = controls = 0
    with path.open(encoding=encoding, errors=errors, newline="") as file:
        while piece := file.read(_PIECE_CHARS):
            chars += len(piece)
            controls += len(_CONTROL.findall(piece))
    if controls > _MAX_CONTROL_SHARE * chars:
        raise BadDocumentError(
            "The file is not a text file, although its suffix says so.",
            "Give the file the suffix of its format.",
            failure="wrong_suffix",
        )


def text_paragraphs(text: str, page_number: int | None = None) -> tuple[Element, ...]:
    """Split a text at blank lines into paragraph elements."""
    paragraphs = (part.strip("\n").rstrip() for part in _BLANK_LINES.split(text))
    return tuple(
        Element(kind="paragraph", text=paragraph, page_number=page_number)
        for paragraph in paragraphs
        if paragraph.strip()
    )


def folded_lines(text: str) -> str:
    """Collapse white space within lines, and drop empty lines."""
    return "\n".join(line for raw in text.split("\n") if (line := " ".join(raw.split())))


def page_ranges(numbers: Iterable[int]) -> list[str]:
    """Return consecutive page numbers as ranges, such as "1-3" and "5" for the pages 1, 2, 3 and 5."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return [f"{pages[0]}-{pages[-1]}" if len(pages) > 1 else str(pages[0]) for pages in ranges]


def meaningful_title(text: str | None) -> str | None:
    """Return the title as one line, or None if it is empty, a file name, or a default such as "Document1"."""
    title = _on_one_line(text).removeprefix("Microsoft Word - ")
    letters = sum(character.isalpha() for character in title)
    is_name = is_default_name(title) or _FILE_NAME.match(title) is not None
    return title if letters >= _MIN_TITLE_LETTERS and not is_name else None


def is_default_name(text: str) -> bool:
    """Return whether a text is a name that programs give to new documents or sheets, such as "Document1"."""
    return _DEFAULT_NAME.match(text.strip()) is not None


def meaningful_author(text: str | None) -> str | None:
    """Return the author as one line, or None if it is empty or the name of a program."""
    author = _on_one_line(text)
    return author if author and not _NO_AUTHOR.match(author) else None


def _on_one_line(text: str | None) -> str:
    return " ".join((text or "").split())[:_MAX_CHARS]
