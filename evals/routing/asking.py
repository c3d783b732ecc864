"""Asks the questions of an app, reads from the events what it took them for, and ends each run at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from evals.evaluation.app import App
from evals.evaluation.ingesting import said_of
from evals.routing.labels import NamingQuestion, RoutingQuestion

ROUTING_PROJECT = "routing"
NAMING_PROJECT = "clarification"
# The run has gone on: nothing is asked any more.
_WENT_ON = frozenset({"tool_started", "token", "complete", "error"})
Asked = TypeVar("Asked", RoutingQuestion, NamingQuestion)
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Routed:
    """What a question was taken for; empty, with an `error`, when the run told nothing."""

    question: RoutingQuestion
    query_type: str = ""
    intent: str = ""
    error: str = ""

    @property
    def is_right(self) -> bool:
        return (self.query_type, self.intent) == (self.question.query_type, self.question.intent)


@dataclass(frozen=True)
class Clarified:
    """Whether the app asked back, and which files it offered; None, with an `error`, when the run failed."""

    question: NamingQuestion
    asked: bool | None = None
    options: frozenset[str] = frozenset()
    error: str = ""

    @property
    def is_right(self) -> bool:
        """Asked when and only when it is ambiguous. Which files were offered is a measure of its own."""
        return self.asked is self.question.ambiguous

    @property
    def offers_the_right_ones(self) -> bool:
        return self.options == self.question.options


def route_all(app: App, questions: Sequence[RoutingQuestion], at_once: int) -> Iterator[Routed]:
    """What came of each, in order."""
    return _each(questions, at_once, lambda question: _route(app, question))


def clarify_all(app: App, questions: Sequence[NamingQuestion], at_once: int) -> Iterator[Clarified]:
    """What came of each, in order."""
    return _each(questions, at_once, lambda question: _clarify(app, question))


def _each(questions: Sequence[Asked], at_once: int, ask: Callable[[Asked], Seen]) -> Iterator[Seen]:
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(ask, questions)


def _route(app: App, question: RoutingQuestion) -> Routed:
    try:
        plan = _until(app, question.text, ROUTING_PROJECT, None, _is_plan)
    except (httpx.HTTPError, LookupError) as failed:
        return Routed(question, error=_said(failed))
    _, told = plan
    return Routed(question, str(told["query_type"]), str(told["intent"]))


def _clarify(app: App, question: NamingQuestion) -> Clarified:
    try:
        thread_id = app.ask(question.after, NAMING_PROJECT)["thread_id"] if question.after else None
        name, told = _until(app, question.text, NAMING_PROJECT, thread_id, _is_decided)
    except (httpx.HTTPError, LookupError) as failed:
        return Clarified(question, error=_said(failed))
    if name == "error":
        return Clarified(question, error=str(told.get("type")))
    offered = frozenset(str(option["filename"]).rpartition("/")[2] for option in told.get("options", ()))
    return Clarified(question, name == "ask_user", offered)


def _until(
    app: App,
    text: str,
    project_id: str,
    thread_id: str | None,
    wanted: Callable[[str, dict[str, Any]], bool],
) -> tuple[str, dict[str, Any]]:
    """The first event that is wanted; the run is ended then.

    Raises:
        LookupError: there was none.
    """
    run_id = app.begin(text, project_id, thread_id)["run_id"]
    try:
        for name, told in app.events(run_id):
            if wanted(name, told):
                return name, told
    finally:
        app.cancel(run_id)
    raise LookupError("the run ended without telling")


def _is_plan(name: str, told: dict[str, Any]) -> bool:
    return name == "action" and "query_type" in told


def _is_decided(name: str, told: dict[str, Any]) -> bool:
    found_one = name == "action" and "documents" in told
    return name == "ask_user" or found_one or name in _WENT_ON


def _said(failed: Exception) -> str:
    return said_of(failed) if isinstance(failed, httpx.HTTPError) else str(failed)
