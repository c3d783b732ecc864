"""Models that write answers badly: they fail, stall, drip or never stop. Also helpers that inspect the
resulting run.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from shared.answering.shown_answer import shown_text
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.runs.events import RunEvent
from shared.runs.models import RunAnswer, RunView
from tests.fakes.models import Reply, ScriptedChatModel
from tests.fakes.services import fake_settings
from tests.world import plan

BUDGET_S = 5.0  # leaves time for what a busy machine delays
EPSILON_S = 20.0  # what hangs, hangs for an hour; how late this process is woken is the machine's affair
CITED = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
QUESTION = "At what pressure does the pump run?"
Chunks = Callable[[], AsyncGenerator[str, None]]


class Streaming(ScriptedChatModel):
    """A chat model that plans by a script and writes answers with the given functions. `taken` is the text
    after which its reader requested more.
    """

    def __init__(self, *answers: Chunks, planned: Reply | None = None) -> None:
        super().__init__(answer=lambda prompt: planned or plan())
        self._answers = list(answers)
        self.taken = ""

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        self.prompts.append(prompt)
        write = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        async for piece in write():
            yield piece
            self.taken += piece


async def whole() -> AsyncGenerator[str, None]:
    yield CITED


async def broken() -> AsyncGenerator[str, None]:
    yield f"{CITED} It was built in"
    raise DependencyError("The connection broke.")


async def at_once() -> AsyncGenerator[str, None]:
    for _ in ("it fails before it says anything",):
        raise DependencyError("The model endpoint is out of reach.")
    yield ""


async def stalled() -> AsyncGenerator[str, None]:
    yield f'{CITED} It was built in <cite doc_id="man'
    await asyncio.sleep(3600)


async def silent() -> AsyncGenerator[str, None]:
    await asyncio.sleep(3600)
    yield ""


async def dripping() -> AsyncGenerator[str, None]:
    yield CITED
    for character in " And it goes on. " * 10_000:
        await asyncio.sleep(0.002)
        yield character


async def endless() -> AsyncGenerator[str, None]:
    while True:  # never yields to the event loop
        yield "It goes on and on. "


def hurried(**settings: Any) -> dict[str, Any]:
    reserves = {"subagents_reserve_latency_ms": 100, "min_remaining_latency_to_delegate_ms": 1000}
    return {
        "settings": fake_settings(
            max_total_latency_ms=int(BUDGET_S * 1000), subagents_enabled=False, **reserves, **settings
        )
    }


def answer_of(view: RunView, events: list[RunEvent]) -> RunAnswer:
    """Return the answer, after checking that readers of the stream have received exactly the committed
    text.
    """
    assert view.status == "completed"
    assert view.answer is not None
    assert shown_text(events) == view.answer.text
    assert events[-1].data["answer"]["text"] == view.answer.text
    return view.answer


def warnings_in(events: list[RunEvent]) -> tuple[str, ...]:
    return tuple(event.data["text"] for event in events if event.data.get("state") == "warning")
