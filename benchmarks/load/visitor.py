"""A simulated user who asks questions, follows their streams, disconnects and resumes, cancels and pauses.

Violations of the API's contract are recorded as faults: unexpected statuses, gaps in event numbers, and
streams without a final event.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.load.crowd import Turn

_ENDS = ("complete", "error")
# Seconds without data after which a stream counts as broken. The app sends a comment every 15 s.
SILENCE_S = 30.0
# Time limit per question in seconds, over all its connections. The time budget of a run is 25 s.
GIVE_UP_S = 90.0


@dataclass
class Asked:
    """A question as its client sees it. Times are values of time.monotonic(), or None if the event never
    occurred.
    """

    behaviour: str
    sent: float
    run_id: str = ""
    thread_id: str = ""
    first_event: float | None = None
    first_token: float | None = None
    ended: float | None = None
    outcome: str = ""
    reconnects: int = 0
    events: int = 0
    faults: list[str] = field(default_factory=list)

    def since_sent(self, name: str) -> float | None:
        """Return the milliseconds from sending the question to the named event, or None."""
        moment = getattr(self, name)
        return None if moment is None else (moment - self.sent) * 1000


class Visitor:
    """A simulated user who asks a question, waits for the answer, pauses, and asks the next question."""

    def __init__(self, client: httpx.AsyncClient, token: str, turns: Iterator[Turn], pause_s: float) -> None:
        """Create a user. Each pause is drawn uniformly between 0.5 and 1.5 times `pause_s`."""
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"}
        self._turns = turns
        self._pause_s = pause_s
        self._chance = random.Random(token)
        self._thread_id: str | None = None
        self.asked: list[Asked] = []

    async def stay(self, until: float, delay_s: float) -> None:
        """Wait `delay_s` seconds, then ask questions until the time `until` (a value of time.monotonic())."""
        await asyncio.sleep(delay_s)
        while time.monotonic() < until:
            await self.ask()
            pause = self._pause_s * self._chance.uniform(0.5, 1.5)
            await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))

    async def ask(self) -> None:
        """Ask one question and follow its stream to the end, recording times and faults."""
        turn = next(self._turns)
        question = Asked(turn.behaviour, time.monotonic())
        self.asked.append(question)
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._follow(turn, question)
        except TimeoutError:
            question.faults.append(f"no end within {GIVE_UP_S:.0f} s")
        self._thread_id = question.thread_id or None

    async def _follow(self, turn: Turn, question: Asked) -> None:
        body: dict[str, Any] = {"question": turn.question}
        if not turn.begins and self._thread_id:
            body["thread_id"] = self._thread_id
        await self._read(turn, question, "POST", "/api/chat", {"json": body})
        while question.ended is None and question.run_id and not _has_been_refused(question):
            question.reconnects += 1
            headers = {"Last-Event-ID": str(question.events)}
            await self._read(
                turn, question, "GET", f"/api/runs/{question.run_id}/events", {"headers": headers}
            )

    async def _read(self, turn: Turn, question: Asked, method: str, path: str, body: dict[str, Any]) -> None:
        headers = {**self._headers, **body.pop("headers", {})}
        try:
            async with self._client.stream(method, path, headers=headers, **body) as response:
                if response.status_code != httpx.codes.OK:
                    text = (await response.aread())[:200].decode(errors="replace")
                    question.faults.append(f"{method}: {response.status_code} {text}")
                    return
                question.run_id = response.headers.get("x-run-id", question.run_id)
                async for number, name, data in _events(response.aiter_bytes()):
                    await self._record_event(turn, question, (number, name, data))
                    if name in _ENDS or self._hangs_up(turn, question):
                        return
        except httpx.HTTPError as failed:
            question.faults.append(f"{method}: {type(failed).__name__} {failed}")

    async def _record_event(
        self, turn: Turn, question: Asked, event: tuple[int, str, dict[str, Any]]
    ) -> None:
        number, name, data = event
        now = time.monotonic()
        question.events += 1
        if number != question.events:
            question.faults.append(f"event {number} came where {question.events} was due")
            question.events = number
        if question.first_event is None:
            question.first_event, question.thread_id = now, data.get("thread_id", "")
        if name == "token" and question.first_token is None:
            question.first_token = now
        if name == "ask_user":
            await self._call(f"/api/runs/{question.run_id}/answer", question, {"choice": 1})
        elif name in _ENDS:
            question.ended = now
            _judge(question, name, data)
        elif turn.behaviour == "cancels" and question.events == turn.after:
            await self._call(f"/api/runs/{question.run_id}/cancel", question, None)

    def _hangs_up(self, turn: Turn, question: Asked) -> bool:
        return turn.behaviour == "reconnects" and question.reconnects == 0 and question.events >= turn.after

    async def _call(self, path: str, question: Asked, body: object) -> None:
        answered = await self._client.post(path, headers=self._headers, json=body)
        # Cancelling a run that has just ended returns 409, which is correct.
        if answered.status_code not in (200, 202, 409):
            question.faults.append(
                f"POST {path.rpartition('/')[2]}: {answered.status_code} {answered.text[:200]}"
            )


def _has_been_refused(question: Asked) -> bool:
    return any(fault.startswith(("POST: ", "GET: ")) for fault in question.faults)


def _judge(question: Asked, name: str, data: dict[str, Any]) -> None:
    if name == "complete":
        answer = data["answer"]
        question.outcome = "abstained" if answer["abstained"] else "answered"
        if answer.get("warnings"):
            question.outcome += " with warnings"
    elif data.get("type") == "RunCancelledError" and question.behaviour == "cancels":
        question.outcome = "cancelled"
    else:
        question.outcome = "failed"
        question.faults.append(f"ended with {data.get('type')}: {data.get('message', data.get('error'))}")


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, str, dict[str, Any]]]:
    """Yield (number, name, data) of each server-sent event. Comments are skipped."""
    buffer = b""
    async for piece in pieces:
        *frames, buffer = (buffer + piece).split(b"\n\n")
        for frame in frames:
            fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if not line.startswith(b":"))
            if b"data" in fields:
                yield int(fields[b"id"]), fields[b"event"].decode(), json.loads(fields[b"data"])
