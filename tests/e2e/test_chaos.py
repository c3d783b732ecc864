"""Two rounds of `make chaos`: work while processes die and hang, and stores that agree afterwards."""

from pathlib import Path

import pytest

from evals.chaos.__main__ import Chaos
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from tests.e2e.stack_fixture import PATIENT, environment_without_model, settings_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def test_nothing_is_lost_left_over_or_shown(tmp_path: Path) -> None:
    with LocalStack(settings_for(tmp_path), PATIENT, environment_without_model()) as stack:
        bring_samples(stack, lambda done, whole, current: None)
        chaos = Chaos(stack, seed=7)
        for number in (1, 2):
            result = chaos.round(number)
            assert result.finding.is_clean, result.document()
