"""`python -m benchmarks.journeys --out report.json`: count the functions and files of this repository that a
question and an ingestion run through.

Two journeys run in one warm process with the fakes of the tests. `question` goes from the handler of POST
/api/chat through orchestration and activities to the end of the stream, `markdown` from the handler of a blob
event to the status `ready`. Each runs twice before it is measured, on the same services.

A profiler sees every call in every thread. The parser runs in the thread that waits for it, so it is counted
too. No real service is called.

files, functions: of `functions/`, `orchestrations/`, `shared/` and `function_app.py`, counted once. Modules,
class bodies, lambdas, comprehensions, generator expressions and generated code aren't counted.

crossings: calls from another file. The caller is the nearest function of this repository on the stack,
ignoring libraries in between; a call without such a caller also counts as a crossing. A generator or
coroutine counts as called when it starts. The tests' harness replays each episode twice, and both count.

Figures are repeatable on a quiet machine. On a busy one the reader of the stream may poll more often, which
adds a few calls.
"""

import argparse
import asyncio
import dis
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from benchmarks.start.probes import AGENT_SETTINGS
from shared import wiring
from tests.contract.ingestion.driving import state_of
from tests.contract.ingestion.models import CountingChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.replay.harness import Script, simulate
from tests.unit.functions.http_app import SECRET, as_user, make_app
from tests.world import corpus_services

ROOT = Path(__file__).resolve().parents[1]
OURS = tuple(f"{ROOT}/{name}" for name in ("functions/", "orchestrations/", "shared/", "function_app.py"))
WARM_UPS = 2
QUESTION = "At what pressure does the pump run?"
MARKDOWN = """# Running the pump

This guide is for those who run the pump in the north hall. Read it before the first shift.

## Starting

Open the inlet valve before the motor is switched on. A dry pump is damaged within a minute.

1. Open the inlet valve.
2. Switch the motor on.
3. Wait until the gauge stands still.

## Limits

The limits hold for water of up to 40 degrees. Ask the workshop about anything else.

| quantity | lowest | highest |
|---|---|---|
| pressure, bar | 8 | 15 |
| speed, turns a minute | 900 | 1450 |
| current, ampere | 4 | 11 |

## Stopping

- Close the outlet valve by half.
- Switch the motor off.
- Close both valves.

Write the time and the last pressure into the log of the shift.
"""

Function = tuple[str, int, str]
"""Its file, line and name: two code objects of different files can be equal."""


class Recorder:
    """A profiler that records which functions of this repository are called while it is active."""

    def __init__(self) -> None:
        self._is_on = False
        self.functions: set[Function] = set()
        # One entry per call of a function from another file. A list, because several threads append to it.
        self.crossings: list[Function] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record the event if it is a call of a function in this repository. The interpreter calls this
        method.
        """
        code = frame.f_code
        if (
            not self._is_on
            or event != "call"
            or not _is_ours(code.co_filename)
            or frame.f_lasti > _beginning(code)
        ):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED or code.co_name.startswith("<"):
            return
        callee = (code.co_filename, code.co_firstlineno, code.co_qualname)
        self.functions.add(callee)
        caller = frame.f_back
        while caller is not None and not _is_ours(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != code.co_filename:
            self.crossings.append(callee)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Discard earlier records, and record the functions called until the block exits."""
        self.functions.clear()
        self.crossings.clear()
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def by_file(self) -> dict[str, list[str]]:
        """Return the names of the recorded functions, by file and in source order."""
        functions: dict[str, list[str]] = defaultdict(list)
        for filename, _, name in sorted(self.functions):
            functions[str(Path(filename).relative_to(ROOT))].append(name)
        return functions

    def figures(self) -> dict[str, int]:
        """Return the numbers of files, functions, and calls from one file to another."""
        counts = (len(self.by_file()), len(self.functions), len(self.crossings))
        return dict(zip(("files", "functions", "crossings"), counts, strict=True))


@cache
def _is_ours(filename: str) -> bool:
    return filename.startswith(OURS)


@cache
def _beginning(code: CodeType) -> int:
    """Return the bytecode offset at which a function starts. A generator that is resumed continues at a later
    offset.
    """
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


class Host:
    """A replacement for the Functions host and its durable client, with all functions of the app by name."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._functions = {one.get_function_name(): one for one in app.get_functions()}
        self._begun: list[asyncio.Task[Any]] = []

    def function(self, name: str) -> Callable[..., Any]:
        """Return an HTTP handler or activity without the wrapper that passes the durable client to it."""
        function = self._functions[name].get_user_function()
        return getattr(function, "client_function", function)  # type: ignore[no-any-return]

    async def start_new(self, name: str, instance_id: str, payload: object) -> str:
        """Start an orchestration in a background thread, and return its instance id."""
        orchestrator = SimpleNamespace(_function=self._functions[name])
        loop = asyncio.get_running_loop()
        script = Script({one: partial(self._perform, one, loop) for one in self._functions})
        run = asyncio.to_thread(simulate, orchestrator, payload, script, instance_id=instance_id)
        self._begun.append(asyncio.create_task(run))
        return instance_id

    async def get_status(self, instance_id: str) -> None:
        """Return None, because no orchestration has a status here."""

    async def end(self) -> None:
        """Wait until all orchestrations have ended."""
        await asyncio.gather(*self._begun)
        self._begun.clear()

    def _perform(self, activity: str, loop: asyncio.AbstractEventLoop, argument: object) -> object:
        function = self.function(activity)
        needs_client = hasattr(self._functions[activity].get_user_function(), "client_function")
        call = function(argument, self) if needs_client else function(argument)
        return asyncio.run_coroutine_threadsafe(call, loop).result()


class WorkerInProcess:
    """A replacement for `subprocess.Popen` that runs the parser worker in the calling thread, where it is
    profiled.
    """

    def __init__(self, command: list[str], **_: object) -> None:
        match = re.search(r"from (\S+) import main", command[-1])
        if match is None:
            raise RuntimeError(f"This is not the parser's worker: {command}")
        self._worker = importlib.import_module(match[1])
        self._reply = ""
        self.stdin = self.stdout = self

    def write(self, line: str) -> None:
        """Run the parser job in a line of JSON. An empty line makes the worker report that it is ready."""
        if not line:
            self._reply = self._worker.READY
            return
        job = self._worker.ParseJob.model_validate_json(line)
        self._reply = self._worker._reply(job, 1 << 30).model_dump_json()

    def readline(self) -> str:
        """Return the reply to the last line written."""
        return self._reply

    def flush(self) -> None:
        """Do nothing, because nothing is buffered."""

    def poll(self) -> None:
        """Return None, which means that the process is running."""


async def question(host: Host, recorder: Recorder, number: int) -> None:
    """Run a question, from the POST request to the end of its event stream."""
    # The number is not needed, because each question starts a new thread.
    del number
    app = make_app(host)
    async with as_user(app, "anna", groups=["engineering"]) as anna:
        with recorder.recording():
            answered = await anna.post("/chat", json={"question": QUESTION})
            await host.end()
    if "\nevent: complete\n" not in answered.text:
        raise RuntimeError(f"The question was not answered: {answered.text}")


async def markdown(host: Host, recorder: Recorder, number: int) -> None:
    """Run the ingestion of a Markdown file, from its blob event until the document is ready."""
    services, blob = wiring.get_services(), SimpleNamespace(container="documents", name=f"pump-{number}.md")
    await services.blobs.write(blob.container, blob.name, MARKDOWN.encode())
    with recorder.recording():
        await host.function("blob_created")(blob, host)
        await host.end()
    if (state := await state_of(services, blob.name)).status != "ready":
        raise RuntimeError(f"The file did not become ready: {state}")


def serve(services: Any) -> None:
    """Make the app in this process use the given services."""
    wiring.build_services = lambda settings: services
    wiring.get_services.cache_clear()


async def measure(*, lists_functions: bool) -> dict[str, dict[str, int]]:
    """Run a question and an ingestion three times each. Print and return the counts of the last run."""
    # The app is imported here, because importing it reads the settings.
    from function_app import app

    host, recorder, report = Host(app), Recorder(), {}
    # The profiler must be set before any thread starts.
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    settings = fake_settings(dev_token_secret=SECRET, subagents_enabled=False)
    worlds = {
        question: await corpus_services(settings=settings),
        markdown: fake_services(chat_model=CountingChatModel()),
    }
    for journey, services in worlds.items():
        serve(services)
        for number in range(WARM_UPS + 1):
            await journey(host, recorder, number)
        figures = report[journey.__name__] = recorder.figures()
        print(f"{journey.__name__}: " + ", ".join(f"{count} {name}" for name, count in figures.items()))
        for file, functions in recorder.by_file().items() if lists_functions else ():
            print(f"  {file} ({len(functions)}): {', '.join(functions)}")
    sys.setprofile(None)
    return report


def main() -> None:
    """Run the benchmark, print the figures and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journeys", description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to which the report is written.")
    parser.add_argument(
        "--list", action="store_true", help="Also print the names of the functions in each file."
    )
    arguments = parser.parse_args()
    os.environ |= AGENT_SETTINGS
    subprocess.Popen = WorkerInProcess  # type: ignore[assignment, misc]
    report = asyncio.run(measure(lists_functions=arguments.list))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
