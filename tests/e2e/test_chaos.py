"""Kills and hangs while users work, followed by a check of the stores: a short variant of `make chaos`."""

from pathlib import Path

import pytest

from evals.chaos.__main__ import KEYS, measure
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from tests.e2e.stack_fixture import PATIENT, environment_without_model, settings_for

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(2400)]

# With seed 1, the first round strikes model, worker and storage while people ask questions. The second round
# strikes storage, worker and host while only documents are processed.
ROUNDS = [1, 2]


def test_the_stores_hold_what_people_did(tmp_path: Path) -> None:
    with LocalStack(settings_for(tmp_path), PATIENT, environment_without_model()) as stack:
        bring_samples(stack, lambda done, whole, current: None)
        report = measure(stack, ROUNDS, 1, tmp_path / "report.json")
    keys = (*KEYS, "reembedded")
    assert {key: report[key] for key in keys} == dict.fromkeys(keys, 0)
