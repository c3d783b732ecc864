"""Tests for the HTML report: complete, self-contained, and with all content escaped."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser

from evals.evaluation.asking import Answer, ModelCall, Outcome
from evals.evaluation.page import as_html, bars
from evals.evaluation.report import Origin
from tests.unit.evals.test_scoring import ABSTENTION, LOOKUP, UNANSWERABLE, cited, result_of

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=y>\u202e&amp;"
ORIGIN = Origin("model <b>", "abc123")


class _Tags(HTMLParser):
    """A parser that collects every tag with its attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, Mapping[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*outcomes: Outcome) -> str:
    return as_html([result_of(outcomes)], ORIGIN)


def test_each_question_shows_what_was_expected_answered_cited_shown_and_measured() -> None:
    answer = Answer("Two metres [1].", abstained=False, citations=(cited(3, "two metres long"),))
    call = ModelCall("Passage: The tail is two metres long.", 0.5, 120, 8)
    outcome = Outcome(
        LOOKUP,
        pages=(("kites.pdf", 3),),
        answer=answer,
        search_seconds=0.1,
        answer_seconds=1.2,
        calls=(call,),
    )
    text = _Tags(page_of(outcome, Outcome(UNANSWERABLE, answer=ABSTENTION))).text
    for expected in (
        "How long is the tail?",
        "two metres",
        "Two metres [1].",
        "kites.pdf, page 3, verified: “two metres long”",
        "Passage: The tail is two metres long.",
        "120 tokens in, 8 out, 0.50 s",
        "page_hit@1",
        "answer_seconds",
        "The documents do not hold the answer.",
    ):
        assert expected in text, expected


def test_nothing_that_others_wrote_becomes_markup() -> None:
    answer = Answer(HOSTILE, abstained=False, citations=(cited(3, HOSTILE),))
    outcome = Outcome(LOOKUP, answer=answer, errors={"search": HOSTILE}, calls=(ModelCall(HOSTILE, 1, 1, 1),))
    page = page_of(outcome)
    plain = page_of(Outcome(LOOKUP, answer=answer, errors={"search": "x"}, calls=(ModelCall("x", 1, 1, 1),)))
    assert {tag for tag, _ in _Tags(page).tags} == {tag for tag, _ in _Tags(plain).tags}
    assert "script" not in {tag for tag, _ in _Tags(page).tags}
    assert _Tags(page).text.count("<script>alert(1)</script>") == 4
    assert "\u202e" not in page


def test_it_loads_nothing_and_forbids_it() -> None:
    page = page_of(Outcome(LOOKUP, answer=ABSTENTION, search_seconds=0.3))
    tags = _Tags(page).tags
    assert not re.search(r"https?:|//[a-z]|url\(|@import", page)
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "object", "form"})
    assert not {name for _, attributes in tags for name in attributes if name.startswith("on")}
    policy = next(attributes["content"] for tag, attributes in tags if "http-equiv" in attributes)
    assert (policy or "").startswith("default-src 'none'")
    targets = {attributes["href"] for tag, attributes in tags if tag == "a"}
    assert targets == {f"#{attributes['id']}" for tag, attributes in tags if tag == "section"}


def test_bars_are_as_long_as_their_counts_and_have_them_as_text() -> None:
    drawn = _Tags(bars("Ranks", {"1": 4, "2-3": 1, "none": 0}))
    widths = [float(attributes["width"] or 0) for tag, attributes in drawn.tags if tag == "rect"]
    assert widths == [240.0, 60.0, 0.0]
    assert drawn.text == "Ranks142-31none0"
