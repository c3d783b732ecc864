"""Tests for rolling upgrades, in which an older worker reads events written by a newer one."""

from typing import Any, ClassVar

import pytest

from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run, view_run
from shared.answering.steps import Prepare, StepFailed, StepInput
from shared.runs.events import RunEvent, StatusEvent, parse_event
from shared.runs.models import ChatRequest, RunRequest
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.scripts import perform
from tests.world import ANNA, corpus_services


class NewEvent(RunEvent):
    """A public event unknown to this version."""

    name: ClassVar[Any] = "HEARTBEAT"

    beats: int = 3


class NewStatus(StatusEvent):
    """A status event whose state is unknown to this version."""

    state: str = "rereading"


class InternalLine(RunEvent):
    """An internal journal line of a newer version, which readers never receive."""

    name: ClassVar[Any] = "step_done"


async def begin_with_event(services: Services, event: RunEvent) -> RunRequest:
    request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
    await services.run_log.append(request.run_id, [event])
    return request


@pytest.mark.parametrize("event", [NewEvent(), NewStatus()], ids=["event", "status"])
async def test_public_event_of_a_newer_version_fails_no_run_and_is_passed_on(event: RunEvent) -> None:
    services = await corpus_services()
    request = await begin_with_event(services, event)
    await run_to_end(request.run_id, services)
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services, ANNA)
    assert view.status == "completed"
    assert view.answer is not None
    assert view.answer.text.startswith("It runs at 15 bar.")
    line = (await services.run_log.read(request.run_id)).lines[1]
    assert (parse_event(line).to_line(), parse_event(line).data) == (event.to_line(), event.data)


async def test_internal_line_of_a_newer_version_is_left_to_a_newer_worker() -> None:
    services = await corpus_services()
    request = await begin_with_event(services, InternalLine())
    failed = await perform(StepInput(run_id=request.run_id, action=Prepare(step=1)), services)
    assert isinstance(failed, StepFailed)
    assert (failed.error_type, failed.retryable) == ("UnknownEventError", True)
