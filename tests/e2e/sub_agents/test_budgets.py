"""A short variant of `make budgets`: runs with a short time budget end in time, whatever the model does.

Each change is tested with a model that is slow in sub-agents and answers. Nightly tests add a model that
never answers and a faulty model. `make budgets` measures how exactly runs keep their time limit on an idle
machine.
"""

from collections.abc import Sequence

import pytest

from evals.budgets.batches import USUAL, Batch
from evals.budgets.lane import Lane
from evals.budgets.questions import DELEGATED, QUESTIONS
from evals.budgets.report import are_kept, promises
from evals.budgets.seen import Seen
from local.run_all.stack import LocalStack
from tests.e2e.sub_agents.hosts import SLACK_S, configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BUDGET_MS = 12_000
AT_ONCE = 4
DEEP = [question for question in QUESTIONS if question.kind in DELEGATED]
# Low minimums, so that sub-agents start even on a machine on which planning takes most of the time.
EAGER = {"MIN_REMAINING_LATENCY_TO_DELEGATE_MS": "2500", "SUBAGENTS_CHILD_MIN_LATENCY_MS": "100"}
SLOW = "tps=1,only=sub_agent+answer"
FAULTS = (SLOW, "stall=0", "chaos=5")


@pytest.mark.nightly
def test_runs_end_within_their_budget_though_the_model_is_slow(stack: LocalStack) -> None:
    keep_their_budget(stack, (SLOW,))


@pytest.mark.nightly
def test_runs_end_within_their_budget_whatever_the_model_does(stack: LocalStack) -> None:
    runs = keep_their_budget(stack, FAULTS)
    assert any(run.children for run in runs), "no sub-agent was at work"


def keep_their_budget(stack: LocalStack, faults: Sequence[str]) -> Sequence[Seen]:
    """Check that runs with each fault stay within their limits of time, tokens and cost, and return the
    runs.
    """
    batches = [
        Batch(knobs, knobs, tuple(DEEP[place::3][:AT_ONCE]), {**USUAL, **EAGER})
        for place, knobs in enumerate(faults)
    ]
    with configured(stack) as running:
        lane = Lane(running, BUDGET_MS, AT_ONCE, SLACK_S * 1000, SLACK_S)
        runs = [run for batch in batches for run in lane.run(batch)]
    assert len(runs) == len(faults) * AT_ONCE
    assert are_kept(promises(runs)), [
        (run.defects, run.excesses, run.knobs, run.question, run.wall_ms) for run in runs if run.defects
    ]
    return runs
