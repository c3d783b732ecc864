"""Parser for transcripts (WebVTT and SubRip): merges cues into paragraphs with start times.

WebVTT follows the W3C specification. SubRip has no standard; the parser accepts what players accept.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.documents.models import Element, ParsedDocument
from shared.evidence.cues import cues_text
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.text import read_text
from shared.platform.errors import BadDocumentError

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?\Z")
_ARROW = "-->"
_NOT_CUES = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION|X-TIMESTAMP-MAP)\b")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?\s++([^<>]+)>")
_TAG = re.compile(r"<[^>]{0,200}>|\{\\[^}]{0,200}\}")
_TURN = re.compile(r"(?:[-–] ?|[A-ZÀ-Þ][\w.'’-]*(?: [A-ZÀ-Þ][\w.'’-]*){0,3}: |[A-Z ]{2,30}: |>>)")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*\Z")

# A paragraph that has reached this length ends after the current sentence. Citations link to the start of a
# paragraph, so it should be about as long as an index block (unmeasured).
_ENOUGH_CHARS = 500
# A paragraph that has reached this length ends after the current cue, even within a sentence.
_MOST_CHARS = 800
# Minimum silence that ends a paragraph.
_PAUSE_S = 10.0
_AT_ONCE_S = 0.05
_MAX_NAMED_LINES = 5


@dataclass(frozen=True)
class _Cue:
    """Text that is displayed from `start_s` to `end_s`, as lines."""

    start_s: float
    end_s: float
    lines: tuple[str, ...]


def parse_transcript(path: Path, _context: ParseContext | None = None) -> ParsedDocument:
    """Parse a transcript into paragraphs with `start_seconds`. Malformed cues are skipped and listed in a
    warning.

    Raises:
        BadDocumentError: the file is binary, or contains no readable cue.
    """
    malformed: list[int] = []
    cues = list(_without_repeats(_cues(read_text(path).split("\n"), malformed)))
    if not cues and malformed:
        raise BadDocumentError(
            f"The transcript has no readable cue. The first malformed cue is on line {malformed[0]}.",
            "Export the transcript again as WebVTT or SubRip, with times such as "
            "00:01:02.000 --> 00:01:04.000.",
            failure="no_cues",
        )
    warnings: tuple[str, ...] = ()
    if malformed:
        lines = ", ".join(map(str, malformed[:_MAX_NAMED_LINES]))
        more = " and more" if len(malformed) > _MAX_NAMED_LINES else ""
        warnings = (f"{len(malformed)} malformed cues were left out (lines {lines}{more}).",)
    return ParsedDocument(elements=tuple(_paragraphs(cues)), warnings=warnings)


def _cues(lines: list[str], malformed: list[int]) -> Iterator[_Cue]:
    """Yield the cues, which are separated by blank lines. The line numbers of malformed cues are appended to
    `malformed`.
    """
    block: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append(line.strip())
            continue
        if block and not _NOT_CUES.match(block[0]):
            cue = _cue(block)
            if cue is not None:
                yield cue
            else:
                malformed.append(number - len(block))
        block = []


def _cue(block: list[str]) -> _Cue | None:
    """Parse a cue whose first or second line contains the times. Return None if they are malformed."""
    place = next((index for index, line in enumerate(block[:2]) if _ARROW in line), 0)
    timing = _TIMING.match(block[place])
    if timing is None:
        return None
    start_s, end_s = _seconds(timing.groups()[:4]), _seconds(timing.groups()[4:])
    if end_s < start_s:
        return None
    return _Cue(start_s, end_s, tuple(text for line in block[place + 1 :] if (text := _text(line))))


def _seconds(parts: Iterable[str | None]) -> float:
    hours, minutes, seconds, fraction = parts
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return whole + int((fraction or "0").ljust(3, "0")) / 1000


def _text(line: str) -> str:
    """Return a line as plain text. A voice tag becomes "Name: "."""
    text = _VOICE.sub(lambda voice: f"{voice[1].strip()}: ", line)
    return " ".join(html.unescape(_TAG.sub("", text)).split())


def _without_repeats(cues: Iterable[_Cue]) -> Iterator[_Cue]:
    """Yield the cues of rolling captions without their overlap: each cue repeats the last lines of the
    previous one.
    """
    before = _Cue(0.0, 0.0, ())
    for cue in cues:
        lines = cue.lines
        while lines and lines[0] in before.lines and cue.start_s - before.end_s < _AT_ONCE_S:
            lines = lines[1:]
        before = cue
        if lines:
            yield _Cue(cue.start_s, cue.end_s, lines)


def _paragraphs(cues: Iterable[_Cue]) -> Iterator[Element]:
    text, end_s = "", 0.0
    word_counts: list[tuple[int, float]] = []
    for cue in cues:
        if text and _is_full(text, cue.start_s - end_s):
            yield _paragraph(text, word_counts)
            text, word_counts = "", []
        word_counts.append((len(text.split()), cue.start_s))
        for line in cue.lines:
            text = _append_line(text, line)
        end_s = cue.end_s
    if text:
        yield _paragraph(text, word_counts)


def _paragraph(text: str, word_counts: Sequence[tuple[int, float]]) -> Element:
    return Element(kind="paragraph", text=text, start_seconds=word_counts[0][1], cues=cues_text(word_counts))


def _is_full(text: str, pause_s: float) -> bool:
    is_long = len(text) >= _ENOUGH_CHARS and _SENTENCE_END.search(text) is not None
    return is_long or len(text) >= _MOST_CHARS or pause_s >= _PAUSE_S


def _append_line(text: str, line: str) -> str:
    """Append a line to a paragraph. A line by another speaker starts on a new line; lines by the same speaker
    are joined.
    """
    if not text:
        return line
    speaker, _, words = line.partition(": ")
    if words and text.rsplit("\n", 1)[-1].startswith(f"{speaker}: "):
        return f"{text} {words}"
    return f"{text}\n{line}" if _TURN.match(line) else f"{text} {line}"
