"""kill -9 of the host at random moments while sub-agents work: every run ends once, with an answer."""

import os
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from evals.budgets.children import Instances
from evals.budgets.following import Caller, Followed
from evals.budgets.seen import differs, terminal_events
from local.run_all.api_client import StreamEvent
from local.run_all.stack import LocalStack
from shared.answering.subagent_budget import CRASH_GRACE
from tests.e2e.sub_agents.hosts import GIVE_UP_S, MODEL, SLACK_S, answer_of, caller_of, configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

SEED = 20251121
KILLS = int(os.environ.get("KILLS", "1"))  # To kill more often: KILLS=20 make e2e ARGS=…
AT_ONCE = 2
LONGEST_WAIT_S = 4.0  # the duration of a child with this model
# Model calls of children take more than a second, so that most kills interrupt a call.
SLOW = {"CHAT_MODEL": f"{MODEL}@ttft=1200,only=sub_agent"}
QUESTIONS = (
    "Compare the revenue in the annual report 2023 and the annual report 2024.",
    "Summarise the Heron 400 installation guide.",
    "What changed between the annual report 2023 and the annual report 2024?",
    "Summarise the onboarding guide.",
)


@dataclass
class Striker:
    """Kills the host a random time after a child has become active, and restarts it."""

    stack: LocalStack
    chance: random.Random

    def strike(self, at_work: threading.Event) -> bool:
        """Kill the host. Return False if no child became active."""
        if not at_work.wait(GIVE_UP_S):
            return False
        time.sleep(self.chance.uniform(0.0, LONGEST_WAIT_S))
        self.stack.kill_host()
        self.stack.start_host()
        return True


def watched(caller: Caller, question: str, at_work: threading.Event) -> Followed:
    """Follow a run to its end, and set `at_work` when its first child starts."""

    def watch(event: StreamEvent) -> None:
        if event.data.get("state") == "delegation" and event.data["decision"] == "delegate":
            at_work.set()

    return caller.ask(question, GIVE_UP_S, watch)


def struck_runs(stack: LocalStack, kills: int) -> list[Followed]:
    """Return AT_ONCE runs for each kill."""
    chance = random.Random(SEED)
    caller, striker = caller_of(stack), Striker(stack, chance)
    runs: list[Followed] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(kills):
            at_work = threading.Event()
            futures = [
                pool.submit(watched, caller, one, at_work) for one in chance.sample(QUESTIONS, AT_ONCE)
            ]
            assert striker.strike(at_work), "no sub-agent came to work"
            runs += results_of(futures)
    return runs


def results_of(futures: list["Future[Followed]"]) -> list[Followed]:
    return [one.result() for one in futures]


def test_runs_whose_host_is_killed_while_children_work_all_end_once_with_an_answer(stack: LocalStack) -> None:
    with configured(stack, **SLOW) as running:
        runs = struck_runs(running, KILLS)
        assert len(runs) == KILLS * AT_ONCE
        assert sum(run.reconnects > 0 for run in runs) >= KILLS, "the kills came when runs had ended"
        instances = Instances(running, SLACK_S + CRASH_GRACE.total_seconds())
        for run in runs:
            check(running, instances, run)
        instances.close()


def check(stack: LocalStack, instances: Instances, run: Followed) -> None:
    """Check one run: it ended once with an answer, readers saw what the log contains,
    and no child is left.
    """
    assert run.last is not None, f"stuck: {run.run_id}"
    answer = answer_of(run)
    assert answer["text"].strip()
    assert [event.number for event in run.events] == list(range(1, len(run.events) + 1))
    again = caller_of(stack).replay(run.run_id)
    assert terminal_events(again) == 1
    assert not differs(run.events, again)
    assert len(again) == len(run.events)
    children = instances.wait_until_settled(run.run_id)
    assert not any(child.outlived for child in children)
    assert not instances.is_open(run.run_id)
    child_ids = [view["child_id"] for view in answer["sub_agents"]]
    assert len(child_ids) == len(set(child_ids))
    assert set(child_ids) <= {child.child_id for child in children}
