"""A simulated person: asks, follows the stream, disconnects and resumes, cancels, pauses.

Deviations from what is promised are recorded as faults: statuses, gaps in event numbers, ends without an
answer.
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
SILENCE_S = 30.0  # the app sends a comment every 15 s
GIVE_UP_S = 90.0  # per question, over all connections; a run's own budget is 25 s


@dataclass
class Asked:
    """A question as its asker saw it. Times are from time.monotonic(); None means that it never happened."""

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
        """Return milliseconds from the question to an event."""
        moment = getattr(self, name)
        return None if moment is None else (moment - self.sent) * 1000


class Visitor:
    """A closed loop of questions with a pause after each."""

    def __init__(self, client: httpx.AsyncClient, token: str, turns: Iterator[Turn], pause_s: float) -> None:
        """Create a visitor. `pause_s` is the mean; pauses vary evenly from half to one and a half times as
        long.
        """
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"}
        self._turns = turns
        self._pause_s = pause_s
        self._chance = random.Random(token)
        self._thread_id: str | None = None
        self.asked: list[Asked] = []

    async def stay(self, until: float, delay_s: float) -> None:
        """Ask until `until` (time.monotonic()), starting after a delay."""
        await asyncio.sleep(delay_s)
        while time.monotonic() < until:
            await self.ask()
            pause = self._pause_s * self._chance.uniform(0.5, 1.5)
            await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))

    async def ask(self) -> None:
        """Ask one question and follow it to its end."""
        turn = next(self._turns)
        asked = Asked(turn.behaviour, time.monotonic())
        self.asked.append(asked)
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._follow(turn, asked)
        except TimeoutError:
            asked.faults.append(f"no end within {GIVE_UP_S:.0f} s")
        self._thread_id = asked.thread_id or None

    async def _follow(self, turn: Turn, asked: Asked) -> None:
        body: dict[str, Any] = {"question": turn.question}
        if not turn.begins and self._thread_id:
            body["thread_id"] = self._thread_id
        await self._read(turn, asked, "POST", "/api/chat", {"json": body})
        while asked.ended is None and asked.run_id and not _has_been_refused(asked):
            asked.reconnects += 1
            headers = {"Last-Event-ID": str(asked.events)}
            await self._read(turn, asked, "GET", f"/api/runs/{asked.run_id}/events", {"headers": headers})

    async def _read(self, turn: Turn, asked: Asked, method: str, path: str, sent: dict[str, Any]) -> None:
        headers = {**self._headers, **sent.pop("headers", {})}
        try:
            async with self._client.stream(method, path, headers=headers, **sent) as response:
                if response.status_code != httpx.codes.OK:
                    told = (await response.aread())[:200].decode(errors="replace")
                    asked.faults.append(f"{method}: {response.status_code} {told}")
                    return
                asked.run_id = response.headers.get("x-run-id", asked.run_id)
                async for number, name, data in _events(response.aiter_bytes()):
                    await self._take(turn, asked, (number, name, data))
                    if name in _ENDS or self._hangs_up(turn, asked):
                        return
        except httpx.HTTPError as failed:
            asked.faults.append(f"{method}: {type(failed).__name__} {failed}")

    async def _take(self, turn: Turn, asked: Asked, event: tuple[int, str, dict[str, Any]]) -> None:
        number, name, data = event
        now = time.monotonic()
        asked.events += 1
        if number != asked.events:
            asked.faults.append(f"event {number} came where {asked.events} was due")
            asked.events = number
        if asked.first_event is None:
            asked.first_event, asked.thread_id = now, data.get("thread_id", "")
        if name == "token" and asked.first_token is None:
            asked.first_token = now
        if name == "ask_user":
            await self._call(f"/api/runs/{asked.run_id}/answer", asked, {"choice": 1})
        elif name in _ENDS:
            asked.ended = now
            _judge(asked, name, data)
        elif turn.behaviour == "cancels" and asked.events == turn.after:
            await self._call(f"/api/runs/{asked.run_id}/cancel", asked, None)

    def _hangs_up(self, turn: Turn, asked: Asked) -> bool:
        return turn.behaviour == "reconnects" and asked.reconnects == 0 and asked.events >= turn.after

    async def _call(self, path: str, asked: Asked, body: object) -> None:
        answered = await self._client.post(path, headers=self._headers, json=body)
        # Cancelling a run that has just ended gives 409, which isn't a fault.
        if answered.status_code not in (200, 202, 409):
            asked.faults.append(
                f"POST {path.rpartition('/')[2]}: {answered.status_code} {answered.text[:200]}"
            )


def _has_been_refused(asked: Asked) -> bool:
    return any(fault.startswith(("POST: ", "GET: ")) for fault in asked.faults)


def _judge(asked: Asked, name: str, data: dict[str, Any]) -> None:
    if name == "complete":
        answer = data["answer"]
        asked.outcome = "abstained" if answer["abstained"] else "answered"
        if answer.get("warnings"):
            asked.outcome += " with warnings"
    elif data.get("type") == "RunCancelledError" and asked.behaviour == "cancels":
        asked.outcome = "cancelled"
    else:
        asked.outcome = "failed"
        asked.faults.append(f"ended with {data.get('type')}: {data.get('message', data.get('error'))}")


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, str, dict[str, Any]]]:
    """Yield number, name and data of each complete event, without comments."""
    buffer = b""
    async for piece in pieces:
        *frames, buffer = (buffer + piece).split(b"\n\n")
        for frame in frames:
            fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if not line.startswith(b":"))
            if b"data" in fields:
                yield int(fields[b"id"]), fields[b"event"].decode(), json.loads(fields[b"data"])
