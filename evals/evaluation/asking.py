"""Collects the app's hits and answers for all questions of a set. The measures are computed elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from evals.evaluation.app import App
from evals.evaluation.ingesting import error_message
from evals.evaluation.question_set import Question, QuestionSet, Target, name_key

# Maximum number of hits that the app returns. Ten distinct pages need far more than ten blocks.
TOP_K = 50
Value = TypeVar("Value")


@dataclass(frozen=True)
class Cited:
    """A citation in an answer. `shown_verified` says whether the app shows it to readers as verified."""

    target: Target
    filename: str
    page_number: int | None
    quote: str
    shown_verified: bool


@dataclass(frozen=True)
class Answer:
    """The answer of the app to a question."""

    text: str
    abstained: bool
    citations: tuple[Cited, ...] = ()


@dataclass(frozen=True)
class ModelCall:
    """A recorded call of the chat model, with all text shown to it."""

    shown: str
    seconds: float
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Outcome:
    """The hits and the answer for one question. A field is None if it wasn't requested, or if the call failed
    with a message in `errors`.

    Attributes:
        pages, scoped_pages: targets of the hits in order, for the whole set and within the scope.
        search_seconds, answer_seconds: duration of successful calls.
        errors: messages by call ("search", "scoped search", "answer").
        calls: model calls for the answer, if recorded.
    """

    question: Question
    pages: tuple[Target, ...] | None = None
    scoped_pages: tuple[Target, ...] | None = None
    answer: Answer | None = None
    search_seconds: float | None = None
    answer_seconds: float | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[ModelCall, ...] = ()


def ask_all(app: App, questions: QuestionSet, at_once: int, *, answers: bool) -> Iterator[Outcome]:
    """Ask all questions, `at_once` of them concurrently, and yield the outcomes in the order of the
    questions.
    """

    def ask(question: Question) -> Outcome:
        return _ask(app, question, questions.name, answers=answers)

    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(ask, questions.questions)


def _ask(app: App, question: Question, project_id: str, *, answers: bool) -> Outcome:
    errors: dict[str, str] = {}
    whole = {"project_id": project_id}
    pages, seconds = _attempt("search", errors, lambda: _search(app, question.text, whole))
    scoped = None
    if question.scope is not None:
        scope = {**whole, "filename": question.scope}
        scoped, _ = _attempt("scoped search", errors, lambda: _search(app, question.text, scope))
    answer: Answer | None = None
    answer_seconds: float | None = None
    calls: tuple[ModelCall, ...] = ()
    if answers:
        with app.watching() as watch:
            answer, answer_seconds = _attempt(
                "answer", errors, lambda: read_answer(app.ask(question.text, project_id, watch.headers))
            )
        calls = tuple(
            ModelCall(call.text, call.seconds, call.tokens_in, call.tokens_out) for call in watch.calls
        )
    return Outcome(question, pages, scoped, answer, seconds, answer_seconds, errors, calls)


def _attempt(
    call: str, errors: dict[str, str], work: Callable[[], Value]
) -> tuple[Value | None, float | None]:
    """Perform a call, and return its result and duration. If it fails, return (None, None) and store a
    message in `errors`.
    """
    began = time.monotonic()
    try:
        value = work()
    except httpx.HTTPError as failed:
        errors[call] = error_message(failed)
    except (KeyError, TypeError, ValueError) as misread:
        errors[call] = f"The answer does not have the format described in docs/api.md: {misread!r}"
    else:
        return value, time.monotonic() - began
    return None, None


def _search(app: App, text: str, filters: Mapping[str, str]) -> tuple[Target, ...]:
    hits = app.search(text, TOP_K, filters)
    return tuple((name_key(hit["filename"]), hit["page_number"]) for hit in hits)


def read_answer(run: Mapping[str, Any]) -> Answer:
    """Return the answer in the JSON form of a finished run.

    Raises:
        ValueError: the run has no answer.
    """
    answer = run["answer"]
    if answer is None:
        raise ValueError(f"The run ended with the status {run['status']} and has no answer.")
    return Answer(
        answer["text"], bool(answer["abstained"]), tuple(_citation_of(one) for one in answer["citations"])
    )


def _citation_of(citation: Mapping[str, Any]) -> Cited:
    filename, page_number = str(citation["filename"]), citation["page_number"]
    target = (name_key(filename), page_number)
    return Cited(target, filename, page_number, str(citation["quote"]), bool(citation["verified"]))
