"""Tests that readers' text, parsed by markdown-it, has only links, images and tags added by the app."""

import random
from collections.abc import Callable

import pytest

from shared.answering.draft import Draft
from shared.answering.planning import todo_items
from shared.answering.unwritten_answer import answer_without_model, nothing_found
from shared.evidence.citations import CitationBook
from shared.evidence.figures import FigurePlacer
from shared.evidence.messages import ENGLISH
from shared.evidence.reader_text import readable, readable_line
from shared.retrieval.models import Hit
from shared.runs.evidence import Evidence, MissingDocument
from shared.runs.plan import PlannedTodo
from tests.unit.evidence.reader_text_corpus import hostile_texts, live_parts
from tests.world import plan

pytestmark = pytest.mark.attack("forged names")

MARK = "(Source: manual.pdf, S. 3)[1]"


def answer(text: str, source: random.Random) -> list[str]:
    """Stream a text as an answer with citation marks between its pieces, and end it with a gap and a note."""
    draft, position = Draft(FigurePlacer(())), 0
    while position < len(text):
        end = position + source.randint(1, 6)
        draft.write(text[position:end])
        if not source.randrange(8):
            draft.add_note(MARK)
        position = end
    draft.settle()
    draft.add_paragraph(readable_line(text))
    draft.add_paragraph(ENGLISH.note.format(ENGLISH.cut))
    return [draft.text]


def continued_answer(text: str, source: random.Random) -> list[str]:
    """Split a text between two turns."""
    middle = source.randint(0, len(text))
    first = Draft(FigurePlacer(()))
    first.write(text[:middle])
    first.settle()
    second = Draft(FigurePlacer(()))
    second.continue_from(first.text)
    second.write(text[middle:])
    second.settle()
    return [second.text]


def reply_and_thought(text: str, _: random.Random) -> list[str]:
    """Show a text as a small-talk reply or a thought, which are both sanitised as a whole."""
    return [readable(text.strip()), readable(text.strip()[:500])]


def todo_list(text: str, _: random.Random) -> list[str]:
    item = PlannedTodo(description=text, acceptance_criteria=text, dependencies=())
    items = todo_items(plan(todo=(item, item)))
    return [output for item in items for output in (item.description, item.acceptance_criteria)]


def abstention(text: str, _: random.Random) -> list[str]:
    missing = MissingDocument(reference=text, nearest=(text,))
    gaps = [
        nothing_found(ENGLISH, Evidence(missing=(missing,))),
        nothing_found(ENGLISH, Evidence(filters=text)),
    ]
    return [ENGLISH.abstention(gap.missing, gap.next_step) for gap in gaps]


def answer_from_passages(text: str, _: random.Random) -> list[str]:
    hit = Hit(block_id="b1", doc_id="d1", filename=f"{text}.pdf", page_number=3, content=f"The pump. {text}")
    book = CitationBook((hit,))
    return [answer_without_model("the pump", Evidence(hits=(hit,)), book, ENGLISH, ENGLISH.broken).text]


def test_a_turn_that_ends_in_the_last_line_of_code_hides_no_link_of_the_next() -> None:
    draft = Draft(FigurePlacer(()))
    draft.continue_from("```\ncode\n````")
    draft.write("``\n```\n[Sign in](https://evil.example/login)")
    draft.settle()
    assert live_parts(draft.text) == []


Show = Callable[[str, random.Random], list[str]]
SHOWN: tuple[Show, ...] = (
    answer,
    continued_answer,
    reply_and_thought,
    todo_list,
    abstention,
    answer_from_passages,
)
_QUICK = pytest.param(250, 5, id="sample")  # takes 1 s each
_FULL = pytest.param(
    60_000, 13, id="full", marks=[pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(1800)]
)


@pytest.mark.parametrize(("count", "seed"), [_QUICK, _FULL])
@pytest.mark.parametrize("show", SHOWN, ids=[show.__name__ for show in SHOWN])
def test_no_hostile_text_reaches_a_reader_alive(show: Show, count: int, seed: int) -> None:
    for text, source in hostile_texts(count, seed):
        for output in show(text, source):
            assert live_parts(output) == [], text
