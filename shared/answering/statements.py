"""Split the text of a model's turn into the statements of its answer. Pure.

`split_turn` takes the whole text so far. The answer of a longer text begins with the answer of a shorter one,
so only the difference needs to be written.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared.evidence.number_proof import has_number
from shared.evidence.tags import CiteTag, FigureTag, GapTag, Piece, Text
from shared.evidence.text import sentence_ends

_TAG = re.compile(r"</?answer>", re.IGNORECASE)
_BEGINS = re.compile(r"</?answer>|<(?:cite|figure|gap)(?=[\s/>])", re.IGNORECASE)
_GAP = re.compile(r"<gap(?=[\s/>])", re.IGNORECASE)
_OPEN_TAG = re.compile(r"</?(?:a(?:n(?:s(?:w(?:er?)?)?)?)?)?\Z", re.IGNORECASE)

# Markdown fences around the whole answer. Readers would show its tables and headings as code.
_WRAPPER = re.compile(r"(?:```|~~~) *(?:markdown|md)[^\S\n]*\n", re.IGNORECASE)
_MAY_BE_WRAPPER = re.compile(r"`{0,3}|~{0,3}|(?:```|~~~) *[a-z]{0,8}[^\S\n]*", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(?:```|~~~)(.*)")
_MAY_BE_FENCE = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|(?:```|~~~).*)")


@dataclass(frozen=True)
class Statement:
    """A piece of the answer's text on one line and the citations that follow it.

    Attributes:
        begins_line: no other statement precedes it on its line.
    """

    text: str
    cites: tuple[CiteTag, ...] = ()
    begins_line: bool = False


Part = Statement | FigureTag | GapTag


def split_turn(turn_text: str, *, is_answer: bool, at_end: bool = False) -> tuple[str, str | None]:
    """Return the thought and the answer of a turn. The answer is None until it begins.

    An answer begins at `<answer>`. A turn that cites without the tag is an answer from its first word.

    Args:
        is_answer: the whole text is the answer, because the turn calls no tool.
        at_end: nothing follows `turn_text`.
    """
    begin = None if is_answer else _BEGINS.search(turn_text)
    if begin is None and not is_answer:
        return turn_text, None
    has_thought = begin is not None and bool(_TAG.fullmatch(begin[0]))
    thought, answer = (
        (turn_text[: begin.start()], turn_text[begin.end() :]) if begin and has_thought else ("", turn_text)
    )
    if not at_end and (open_tag := _OPEN_TAG.search(answer)):
        answer = answer[: open_tag.start()]
    return thought, _unwrapped(_TAG.sub("", answer).lstrip(), at_end=at_end)


def from_first_gap(turn_text: str) -> str:
    """Return the part of a turn that readers haven't seen because a gap ended it, or ""."""
    gap = _GAP.search(turn_text)
    return _TAG.sub("", turn_text[gap.start() :]) if gap else ""


def _unwrapped(text: str, *, at_end: bool) -> str:
    """Remove a fence of Markdown around the whole answer. Fences inside it stay."""
    wrapper = _WRAPPER.match(text)
    if wrapper is None:
        return "" if not at_end and _MAY_BE_WRAPPER.fullmatch(text) else text
    position, is_code = wrapper.end(), False
    while position < len(text):
        end = text.find("\n", position) + 1 or len(text)
        line = text[position:end].rstrip("\n")
        is_open_line = end == len(text) and not text.endswith("\n") and not at_end
        if is_open_line and _MAY_BE_FENCE.fullmatch(line):
            return text[wrapper.end() : position]
        if fence := _FENCE.fullmatch(line):
            if not is_code and not fence[1].strip():
                return text[wrapper.end() : position] + text[end:]
            is_code = not is_code
        position = end
    return text[wrapper.end() :]


def split_statements(
    pieces: Sequence[Piece], *, holds_numbers: bool = False
) -> tuple[list[Part], list[Piece]]:
    """Group pieces into statements. Return the complete statements, and the pieces of the open line.

    Args:
        holds_numbers: keep back the open line from its first sentence with a number. Otherwise nothing is
            kept back.
    """
    parts: list[Part] = []
    line: list[Piece] = []
    for piece in pieces:
        match piece:
            case Text():
                *ended, rest = piece.text.split("\n")
                for text in ended:
                    parts += _statements([*line, Text(f"{text}\n")])
                    line = []
                line += [Text(rest)] if rest else []
            case CiteTag():
                line.append(piece)
            case _:  # a gap or a figure ends a statement
                parts += [*_statements(line), piece]
                line = []
    if not holds_numbers:
        return [*parts, *_statements(line)], []
    begin, rest_of_line = _without_numbers(line)
    return [*parts, *begin], rest_of_line


def _without_numbers(line: Sequence[Piece]) -> tuple[list[Part], list[Piece]]:
    """Split an open line before the first sentence that has a number or isn't complete."""
    joined = _statements(line)
    text = joined[0].text if joined else ""
    ends = [0, *(end for end in sentence_ends(text) if text[end:].strip())]
    free = max((end for end in ends if not has_number(text[:end])), default=0)
    if not free:
        return [], [*line]
    cites = joined[0].cites
    rest: list[Piece] = [Text(text[free:]), *cites]
    for later in joined[1:]:
        rest += [Text(later.text), *later.cites]
    return [Statement(text[:free])], rest


def _statements(line: Sequence[Piece]) -> list[Statement]:
    """Group the pieces of a line into statements: a text and the citations after it."""
    statements: list[Statement] = []
    for piece in line:
        last = statements[-1] if statements else Statement("", begins_line=True)
        if isinstance(piece, CiteTag):
            statements[-1:] = [replace(last, cites=(*last.cites, piece))]
        elif isinstance(piece, Text) and not last.cites:
            statements[-1:] = [replace(last, text=last.text + piece.text)]
        elif isinstance(piece, Text):
            statements.append(Statement(piece.text))
    return statements
