"""Recorded histories of orchestrations. They are replayed with the current code, to ensure that it can
continue running instances.

A recording is JSON. It consists of the history, and of the states returned after given numbers of events. It
contains neither code nor class names.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.replay.history import JsonObject
from tests.replay.sdk import Handler, NonDeterminismError, first_difference


@dataclass(frozen=True)
class Episode:
    """The orchestrator's state after the first `event_count` events."""

    event_count: int
    state: JsonObject


@dataclass
class Recording:
    """The recording of a run of one orchestrator."""

    instance_id: str
    input_json: str
    history: list[JsonObject] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)

    def write(self, orchestrator: str, path: Path) -> None:
        """Write the recording to a file. `orchestrator` is the name under which the app registers the
        orchestrator.
        """
        document = {
            "orchestrator": orchestrator,
            "instance_id": self.instance_id,
            "input": self.input_json,
            "history": self.history,
            "episodes": [vars(episode) for episode in self.episodes],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def recorded_orchestrator(path: Path) -> str:
    """Return the name of the orchestrator to which a recording belongs."""
    return str(json.loads(path.read_text(encoding="utf-8"))["orchestrator"])


def replay_recording(path: Path, orchestrator: Any) -> None:
    """Replay every episode of a recording with the current code, and fail if a state differs.

    Raises:
        NonDeterminismError: The current code behaves differently, so running instances would break.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    handler = Handler(orchestrator)
    for episode in document["episodes"]:
        history = document["history"][: episode["event_count"]]
        state = handler.replay(history, document["instance_id"], document["input"])
        if state != episode["state"]:
            difference = first_difference(episode["state"], state)
            raise NonDeterminismError(f"{path.name}, after {episode['event_count']} events: {difference}")
