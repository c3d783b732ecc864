"""State that tests prepare for the activities of the test app, and inspect afterwards."""

import asyncio
import threading
from collections import Counter
from typing import Any


class Stage:
    """Gates that block activities, and counts of their runs. Reset before each test."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.runs: Counter[str] = Counter()
        self.gates: dict[str, asyncio.Event] = {}
        self.seen: list[Any] = []
        self.changed = False
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())


stage = Stage()
