"""Crashes of the whole stack: the host in the middle of an answer, and the launcher itself."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.run_all import process_record
from local.run_all.api_client import ApiClient, Reply, StreamEvent, collect
from local.run_all.stack import ROOT, LocalStack
from local.run_all.stack_settings import DATA_SETTING, PORT_SETTINGS
from samples.acl import ANNA
from samples.questions import FIRST_QUESTION
from tests.e2e.stack_fixture import PATIENT, environment_without_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SLOW_MODEL = {
    "CHAT_MODEL": "groundwork-extractive@tps=12",
    "MAX_TOTAL_LATENCY_MS": "240000",  # the time that the host is down counts
    "SUBAGENTS_ENABLED": "false",
}
QUICK_MODEL = {
    "CHAT_MODEL": "groundwork-extractive",
    "SUBAGENTS_ENABLED": "true",
    **PATIENT,
}
START_GUARD_S = 240.0


class _KilledError(Exception):
    """Ends the reading of a stream at the chosen moment."""


@pytest.fixture
def slow_stack(stack: LocalStack) -> Iterator[LocalStack]:
    """The same stack with a model that writes slowly enough to be interrupted."""
    stack.kill_host()
    stack.start_host(SLOW_MODEL)
    yield stack
    stack.kill_host()
    stack.start_host(QUICK_MODEL)


def read_until_killed(stack: LocalStack, tokens: int) -> list[StreamEvent]:
    """Ask, and kill the host once that many tokens have arrived. What was received until then."""
    received: list[StreamEvent] = []

    def kill_in_the_middle(event: StreamEvent) -> None:
        received.append(event)
        if sum(one.name == "token" for one in received) == tokens:
            stack.kill_host()
            raise _KilledError

    with pytest.raises((_KilledError, OSError, http.client.HTTPException)):
        ApiClient(stack.base_url, stack.token(ANNA)).ask(FIRST_QUESTION.text, kill_in_the_middle)
    return received


def shown_text(reply: Reply) -> str:
    """What a reader has on the screen at the end: withdrawn steps are dropped."""
    texts: dict[int, str] = {}
    for event in reply.events:
        step = event.data.get("step", 0)
        if event.name == "status" and event.data.get("state") in ("restarted", "discarded"):
            texts.pop(step, None)
        elif event.name == "token":
            texts[step] = texts.get(step, "") + event.data["text"]
    return "".join(texts.values())


def test_a_host_killed_in_mid_answer_completes_it_and_every_event_comes_once(slow_stack: LocalStack) -> None:
    before = read_until_killed(slow_stack, tokens=3)
    run_id = before[0].data["run_id"]
    slow_stack.start_host()
    api = ApiClient(slow_stack.base_url, slow_stack.token(ANNA))
    after = list(api.resume(run_id, before[-1].number))
    events = before + after
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert events[-1].name == "complete"
    reply = collect(events, lambda _: None)
    assert "6.5 bar" in reply.text
    assert shown_text(reply) == reply.text
    assert all(citation["verified"] for citation in reply.citations)
    replayed = list(api.resume(run_id, 0))
    assert [event.frame for event in replayed] == [event.frame for event in events]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of launchers, one after the other: only the first has to bring the samples in."""
    return tmp_path_factory.mktemp("launched")


def launch(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    ports = dict.fromkeys(PORT_SETTINGS.values(), "0")
    environment = {**environment_without_model(), DATA_SETTING: str(folder), **ports}
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "local.run_all", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(launcher: "subprocess.Popen[str]", words: str) -> str:
    assert launcher.stdout is not None
    seen = ""
    deadline = time.monotonic() + START_GUARD_S
    for line in launcher.stdout:
        seen += line
        if words in line:
            return seen
        assert time.monotonic() < deadline, seen
    raise AssertionError(f"the launcher ended before it said {words!r}:\n{seen}")


def children_of(folder: Path) -> dict[str, tuple[int, str]]:
    recorded = process_record.read(folder)
    return {name: entry for name, entry in recorded.items() if name != process_record.LAUNCHER}


def is_alive(entry: tuple[int, str]) -> bool:
    return process_record.birth(entry[0]) == entry[1]


def test_a_killed_launcher_can_be_started_again_and_sigterm_ends_everything(folder: Path) -> None:
    with launch(folder) as launcher:
        said = read_until(launcher, "Serving until Ctrl-C")
        assert "no language model" in said
        assert "heron-400-manual.pdf, page 4 (verified)" in said
        orphans = children_of(folder)
        assert len(orphans) == 4
        launcher.kill()
    assert all(is_alive(entry) for entry in orphans.values())
    with launch(folder) as launcher:
        read_until(launcher, "Serving until Ctrl-C")
        assert not any(is_alive(entry) for entry in orphans.values())
        children = children_of(folder)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(120) == 0
    assert not any(is_alive(entry) for entry in children.values())


def test_a_server_that_dies_ends_the_stack_and_is_named(folder: Path) -> None:
    with launch(folder) as launcher:
        read_until(launcher, "Serving until Ctrl-C")
        children = children_of(folder)
        os.kill(children["search server"][0], signal.SIGKILL)
        said = read_until(launcher, "The search server ended with exit code -9")
        assert launcher.wait(120) == 1, said
    assert not any(is_alive(entry) for entry in children.values())
