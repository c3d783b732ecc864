"""Proof steps about answers: ask questions with known answers, and restart the app during a question."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from evals.azure_proof.client import AppClient, as_json, is_last
from evals.azure_proof.evidence import Check, Outcome, check
from evals.azure_proof.questions import QUESTIONS, KnownAnswer
from evals.azure_proof.target import World
from evals.evaluation.question_set import QuestionSet, SourceFile
from evals.evaluation.quotations import occurs_on
from evals.evaluation.source_text import SourceTexts
from local.run_all.api_client import StreamEvent
from samples.generate import generate

# Minimum number of correct answers to the 20 questions. A model may misunderstand a question, but quotations
# must never be false.
LEAST_RIGHT = 18
LONG_QUESTION = "Compare the revenue and the energy consumption in the annual reports of 2023 and 2024."
# Number of events after which the app is restarted. By then the plan is ready, but the answer isn't.
_FAR_ENOUGH = 3
_RESUME_S = 600.0
_PAUSE_S = 1.0


def ask_questions(world: World) -> Outcome:
    """Ask all questions, check that the answers contain the known facts, and look up every quotation in the
    samples.
    """
    with tempfile.TemporaryDirectory() as folder, world.client() as client:
        files = generate(Path(folder))
        texts = SourceTexts(QuestionSet("samples", tuple(SourceFile(path.name, path) for path in files), ()))
        answers = [_answer(client, question) for question in QUESTIONS]
        quoted = [
            (citation, _stands(citation, texts)) for answer in answers for citation in answer["citations"]
        ]
    wrong = [
        question.text
        for question, answer in zip(QUESTIONS, answers, strict=True)
        if not _right(question, answer)
    ]
    false = [as_json(citation)[:200] for citation, stands in quoted if not stands]
    unverified = sum(not citation["verified"] for citation, _ in quoted)
    seconds = sorted(answer["seconds"] for answer in answers)
    right = len(QUESTIONS) - len(wrong)
    return Outcome(
        checks=(
            check(
                f"at least {LEAST_RIGHT} of {len(QUESTIONS)} answers are right",
                right,
                passed=right >= LEAST_RIGHT,
            ),
            check("every quotation occurs on the cited page", false or "all do", passed=not false),
            check("the app has verified every quotation", f"all but {unverified}", passed=not unverified),
        ),
        figures={
            "right answers": f"{right} of {len(QUESTIONS)}",
            "quotations checked": len(quoted),
            "median seconds of an answer": round(seconds[len(seconds) // 2], 1),
            "slowest answer in seconds": round(seconds[-1], 1),
            "tokens of all answers": sum(answer["tokens"] for answer in answers),
        },
        notes=tuple(f"Not as expected: {text}" for text in wrong),
    )


def restart_during_question(world: World) -> Outcome:
    """Restart the app while it answers a question, resume the stream, and compare its events with a complete
    replay.
    """
    with world.target.slow_model(), world.client() as client:
        restarted_at = 0.0

        def strike(events: list[StreamEvent]) -> None:
            nonlocal restarted_at
            if not restarted_at and len(events) >= _FAR_ENOUGH:
                restarted_at = time.monotonic()
                world.target.restart()

        events = _follow_question(client, strike)
        run_id = str(events[-1].data.get("run_id") or events[-1].data.get("answer", {}).get("run_id", ""))
        seconds = time.monotonic() - restarted_at
        whole = [(event.number, event.name, as_json(event.data)) for event in client.resume(run_id, 0)]
    seen = [(event.number, event.name, as_json(event.data)) for event in events]
    numbers = [number for number, _, _ in seen]
    answer = events[-1].data.get("answer", {})
    return Outcome(
        checks=(
            check("the run completes", events[-1].name, passed=events[-1].name == "complete"),
            check(
                "the resumed stream contains every event exactly once",
                f"{len(numbers)} events",
                passed=numbers == list(range(1, len(numbers) + 1)),
            ),
            check("a replay of the stream is identical", f"{len(whole)} events", passed=whole == seen),
            check(
                "the answer's quotations are verified",
                f"{len(answer.get('citations', []))} quotations",
                passed=bool(answer.get("citations"))
                and all(citation["verified"] for citation in answer["citations"]),
            ),
        ),
        figures={"seconds from the restart to the complete answer": round(seconds, 1)},
    )


def _answer(client: AppClient, question: KnownAnswer) -> dict[str, Any]:
    began = time.monotonic()
    run = client.ask(question.text)
    answer: dict[str, Any] = run.get("answer") or {
        "text": "",
        "citations": [],
        "abstained": False,
        "tokens": 0,
    }
    return {**answer, "seconds": time.monotonic() - began}


def _right(question: KnownAnswer, answer: dict[str, Any]) -> bool:
    if question.filename is None:
        return bool(answer["abstained"])
    places = {(citation["filename"], citation.get("page_number")) for citation in answer["citations"]}
    return question.says in answer["text"] and (question.filename, question.page) in places


def _stands(citation: dict[str, Any], texts: SourceTexts) -> bool:
    page = texts.page(citation["filename"], citation.get("page_number"))
    return page is not None and occurs_on(citation["quote"], page)


def _follow_question(client: AppClient, happen: Callable[[list[StreamEvent]], None]) -> list[StreamEvent]:
    """Ask the long question and return all events of its run. Call `happen` after each event, and resume the
    stream when it breaks.

    Raises:
        TimeoutError: the run did not end in time.
    """
    events: list[StreamEvent] = []
    run_id = ""
    ends = time.monotonic() + _RESUME_S
    while time.monotonic() < ends:
        stream: Iterator[StreamEvent] = (
            client.resume(run_id, events[-1].number) if events else client.stream(LONG_QUESTION)
        )
        try:
            for event in stream:
                events.append(event)
                run_id = run_id or str(event.data.get("run_id", ""))
                if is_last(event):
                    return events
                happen(events)
        except httpx.HTTPError:
            if not run_id:
                raise
        time.sleep(_PAUSE_S)
    raise TimeoutError(f"The run did not end within {_RESUME_S:.0f} s.")


def checks_of_texts(files: list[Path]) -> list[Check]:
    """Return one check per known answer, which passes if the sample document contains the answer. The
    documents are read without the app.
    """
    texts = SourceTexts(QuestionSet("samples", tuple(SourceFile(path.name, path) for path in files), ()))
    checks = []
    for question in QUESTIONS:
        if question.filename is not None:
            page = texts.page(question.filename, question.page)
            checks.append(
                check(
                    question.text, question.says, passed=page is not None and occurs_on(question.says, page)
                )
            )
    return checks
