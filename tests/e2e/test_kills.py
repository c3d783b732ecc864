"""kill -9 of the worker and the host during a run: a short variant of `make kills`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.kills import (
    Outcome,
    Round,
    Scene,
    kill_children,
    kill_host,
    kill_worker,
)
from local.run_all.app_settings import LOCAL_CHAT_MODEL
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from tests.e2e.stack_fixture import PATIENT, environment_without_model, settings_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

QUICK = {"LOCAL_WORKER_RESTART_S": "1"}
SLOW = {"CHAT_MODEL": f"{LOCAL_CHAT_MODEL}@ttft=1200,tps=30,only=answer+sub_agent"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("kills")
    environment = {**environment_without_model(), **QUICK}
    with LocalStack(settings_for(folder), {**PATIENT, **SLOW}, environment) as stack:
        bring_samples(stack, lambda done, whole, current: None)
        yield Scene(stack, seed=7)


# Kills of the host are tested with streams, summaries, sub-agents and ingestion.
@pytest.mark.parametrize(
    "strike",
    [
        kill_worker,
        pytest.param(kill_host, marks=pytest.mark.nightly),
        pytest.param(kill_children, marks=pytest.mark.nightly),
    ],
)
def test_nothing_is_lost_and_nothing_comes_twice(scene: Scene, strike: Round) -> None:
    outcomes: list[Outcome] = strike(scene)
    assert [one for one in outcomes if not one.is_complete] == []
    assert sum(one.doubled for one in outcomes) == 0
