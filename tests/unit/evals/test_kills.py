"""Tests for `make kills`: it counts rounds and resumes after an interruption."""

import json
from pathlib import Path
from typing import cast

import pytest

from evals import kills
from evals.kills import Outcome, Scene, measure, rounds_beside
from local.run_all.stack import LocalStack


class HostlessStack:
    """The part of a stack that a round needs before it asks questions."""

    def stop_host(self) -> None:
        pass

    def start_host(self, changes: dict[str, str]) -> None:
        assert "CHAT_MODEL" in changes

    def token(self, _user: object) -> str:
        return "token"


STACK = cast(LocalStack, HostlessStack())


def test_an_interrupted_measurement_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, measured = tmp_path / "report.json", 0

    def strike(_scene: Scene) -> list[Outcome]:
        nonlocal measured
        measured += 1
        if measured == 3:
            raise KeyboardInterrupt
        return [Outcome(is_complete=True, is_whole=measured != 1, doubled=0, recovered_s=float(measured))]

    monkeypatch.setattr(kills, "ROUNDS", {"worker": strike})
    with pytest.raises(KeyboardInterrupt):
        measure(STACK, ["worker"], 3, 1, out)
    assert json.loads(out.read_text())["worker"]["rounds"] == 2
    report = measure(STACK, ["worker"], 3, 1, out)
    assert measured == 4
    assert report == json.loads(out.read_text())
    assert report["worker"] | {"recovered_p95_s": 0} == {
        "rounds": 3,
        "questions": 3,
        "complete": 3,
        "whole": 2,
        "lost": 0,
        "doubled_events": 0,
        "recovered_p50_s": 2.0,
        "recovered_p95_s": 0,
    }
    assert not rounds_beside(out).exists()
