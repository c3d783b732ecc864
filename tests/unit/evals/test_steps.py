"""Tests for reading the passages shown to a model from its requests."""

from collections.abc import Sequence
from html import escape

from evals.evaluation.question_set import Question, QuestionSet, SourceFile
from evals.real.asking import RecordedRun
from evals.real.recorder import ChatCall
from evals.steps import chosen, conclude

LONG = "The kite “Vermilion” is seven metres long & made of silk; it was built by the workshop at Lindow. "
PASSAGES = {
    "p1.txt": f"Kites\n\n{LONG}Its tail was replaced in 1931 by one of paper, which is longer than the kite "
    "itself, and is kept in a museum now.",
    "p2.txt": "Lindow\n\nA town.",
    "p3.txt": "Saffron\n\nA balloon.",
}
SOURCES = tuple(SourceFile(name, text=text) for name, text in PASSAGES.items())
QUESTION = Question("q1", "Where was it built?", grades={("p1.txt", None): 1.0, ("p2.txt", None): 1.0})
SET = QuestionSet("steps", SOURCES, (QUESTION,))


def call(*names: str) -> ChatCall:
    texts = {name: escape(PASSAGES[name].split("\n\n")[1], quote=False) for name in names}
    blocks = "".join(f'<document filename="{name}">{text}</document>' for name, text in texts.items())
    return ChatCall({"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": blocks}]})


def run(*calls: ChatCall) -> RecordedRun:
    return RecordedRun("q1", "", "r", "t", "completed", degraded=False, seconds=1.0, calls=tuple(calls))


def report(calls: Sequence[ChatCall]) -> dict[str, object]:
    return conclude(SET, [QUESTION], [run(*calls)])


def test_a_question_is_perfect_when_all_it_needs_was_shown_in_some_call() -> None:
    summary = report([call(), call("p1.txt"), call("p1.txt", "p2.txt")])
    assert (summary["perfect"], summary["passages_mean"], summary["calls_mean"]) == (1, 2, 3)


def test_a_passage_that_is_only_named_was_not_shown() -> None:
    listing = ChatCall({"messages": [{"role": "tool", "content": '{"filename": "p2.txt"}'}]})
    summary = report([call("p1.txt"), listing])
    assert summary["perfect"] == 0
    assert summary["each"] == [{"id": "q1", "passages": 1, "calls": 2, "missing": ["p2.txt"]}]


def test_the_same_seed_chooses_the_same_questions() -> None:
    many = [Question(f"q{number}", "") for number in range(50)]
    assert chosen(many, 25, 1) == chosen(many, 25, 1) != chosen(many, 25, 2)
    assert len(chosen(many, 99, 1)) == 50
