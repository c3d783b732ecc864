"""Parses the output of a model into the statements of an answer. Pure.

Every function takes the text from its beginning. The result for a longer text begins with the result for a
shorter one, so only the difference needs to be written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shared.answering.models import Gap
from shared.evidence.number_proof import has_number
from shared.evidence.reader_text import readable_line
from shared.evidence.tags import CiteTag, FigureTag, FollowUpTag, GapTag, Text, read_tags
from shared.evidence.text import sentence_ends

_TAG = re.compile(r"</?answer>", re.IGNORECASE)
_BEGINS = re.compile(r"</?answer>|<(?:cite|figure|gap)(?=[\s/>])", re.IGNORECASE)
_GAP = re.compile(r"<gap(?=[\s/>])", re.IGNORECASE)
_OPEN_TAG = re.compile(r"</?(?:a(?:n(?:s(?:w(?:er?)?)?)?)?)?\Z", re.IGNORECASE)

# Matches the start of a code fence around the whole answer. It is removed, because clients would show the
# answer as code.
_WRAPPER = re.compile(r"(?:```|~~~) *(?:markdown|md)[^\S\n]*\n", re.IGNORECASE)
_MAY_BE_WRAPPER = re.compile(r"`{0,3}|~{0,3}|(?:```|~~~) *[a-z]{0,8}[^\S\n]*", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(?:```|~~~)(.*)\n?")
_MAY_BE_FENCE = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|(?:```|~~~).*)")

# Placeholders that each stand for one tag. If the model writes these characters, they are dropped.
_CITE, _OTHER_TAG = "\0", "\1"
_SPACES = " \t\u00a0"
_SIGN = re.compile(r"[\x00\x01]")
_PART = re.compile(r"[^\n\x00\x01]*(?:\n|\x00+)|[^\n\x00\x01]+|\x01")


@dataclass(frozen=True)
class Statement:
    """A piece of the answer on one line, with the citations that follow it.

    Attributes:
        begins_line: no other statement precedes it on its line.
    """

    text: str
    cites: tuple[CiteTag, ...] = ()
    begins_line: bool = False


@dataclass(frozen=True)
class TaggedText:
    """The text of an answer in which one placeholder character stands for each tag.

    Attributes:
        questions: next questions, which have no place in the text.
        first_gap: position of the first gap that can be searched for; the end without one.
    """

    text: str
    tags: tuple[CiteTag | FigureTag | GapTag, ...]
    questions: tuple[str, ...]
    first_gap: int

    def parts(self, begin: int, end: int) -> Iterator[Statement | FigureTag | GapTag]:
        """Yield the statements, figure tags and gap tags between two positions of `text`."""
        number = len(_SIGN.findall(self.text, 0, begin))
        for part in _PART.finditer(self.text, begin, end):
            text = _SIGN.sub("", part[0])
            tags = self.tags[number : number + len(part[0]) - len(text)]
            number += len(tags)
            cites = tuple(tag for tag in tags if isinstance(tag, CiteTag))
            yield from (tag for tag in tags if not isinstance(tag, CiteTag))
            if text or cites:
                yield Statement(text, cites, self.text[: part.start()][-1:] in ("", "\n", _OTHER_TAG))

    @property
    def before_numbers(self) -> int:
        """Position in the last line before its first sentence that contains a number or is incomplete."""
        begin = max(self.text.rfind("\n"), self.text.rfind(_OTHER_TAG)) + 1
        text = self.text[begin:].partition(_CITE)[0]
        ends = (end for end in sentence_ends(text) if text[end:].strip() and not has_number(text[:end]))
        return begin + max(ends, default=0)


def split_turn(turn_text: str, *, is_answer: bool, at_end: bool = False) -> tuple[str, str | None]:
    """Split the text of a turn into the model's thought and its answer. The answer is None until it begins.

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


def read_gaps(answer: str) -> tuple[Gap, ...]:
    """Return the distinct gaps that an answer reports. Gaps without a description are dropped, because they
    can't be searched for.
    """
    gaps = (shown_gap(tag) for tag in parse_answer(answer, at_end=True).tags if isinstance(tag, GapTag))
    distinct: dict[str, Gap] = {}
    for gap in gaps:
        distinct.setdefault(gap.missing, gap)
    return tuple(gap for gap in distinct.values() if gap.missing)


def shown_gap(tag: GapTag) -> Gap:
    """Convert a gap tag to a gap whose texts are safe to show to readers."""
    return Gap(missing=readable_line(tag.missing), next_step=readable_line(tag.next_step))


def from_first_gap(turn_text: str) -> str:
    """Return the text of a turn from its first gap on, which readers haven't seen yet, or "" if it has no
    gap.
    """
    gap = _GAP.search(turn_text)
    return _TAG.sub("", turn_text[gap.start() :]) if gap else ""


def parse_answer(text: str, *, at_end: bool) -> TaggedText:
    """Parse the text of an answer, up to a tag that is incomplete.

    Line breaks before a next question belong to it. Spaces between citations are dropped, so that all of them
    follow the same statement.
    """
    visible, questions, first_gap = "", [], len(text)
    tags: list[CiteTag | FigureTag | GapTag] = []
    for piece in read_tags(text, at_end=at_end)[0]:
        if isinstance(piece, Text):
            visible += _SIGN.sub("", piece.text)
        elif isinstance(piece, FollowUpTag):
            visible = visible.rstrip("\n")
            questions.append(piece.question)
        else:
            if isinstance(piece, GapTag) and piece.missing:
                first_gap = min(first_gap, len(visible))
            if isinstance(piece, CiteTag):
                visible = _without_spaces_after_cite(visible)
            visible += _CITE if isinstance(piece, CiteTag) else _OTHER_TAG
            tags.append(piece)
    if questions or not at_end:  # line breaks before a follow-up question belong to it
        visible = visible.rstrip("\n")
    if not at_end:  # another citation may follow
        visible = _without_spaces_after_cite(visible)
    return TaggedText(visible, tuple(tags), tuple(questions), min(first_gap, len(visible)))


def _without_spaces_after_cite(text: str) -> str:
    """Remove spaces at the end of a text if a citation precedes them."""
    stripped = text.rstrip(_SPACES)
    return stripped if stripped.endswith(_CITE) else text


def _unwrapped(text: str, *, at_end: bool) -> str:
    """Remove a Markdown code fence around the whole answer. Fences inside it are kept."""
    wrapper = _WRAPPER.match(text)
    if wrapper is None:
        return "" if not at_end and _MAY_BE_WRAPPER.fullmatch(text) else text
    visible, is_code = "", False
    lines = re.findall(r"[^\n]*\n|[^\n]+", text[wrapper.end() :])
    for number, line in enumerate(lines):
        if not at_end and not line.endswith("\n") and _MAY_BE_FENCE.fullmatch(line):
            break
        if fence := _FENCE.fullmatch(line):
            if not is_code and not fence[1].strip():
                return visible + "".join(lines[number + 1 :])
            is_code = not is_code
        visible += line
    return visible
