"""`answer_question` with sub-agents on a virtual clock: children race against a deadline, and late children
are terminated.
"""

from typing import Any

from orchestrations.run_agent import answer_question
from shared.answering.steps import AnswerWritten, DelegationDeferred, Observation, StepResult, SubagentsChosen
from shared.answering.subagent_models import SubagentEnd, SubagentPlace, SubagentStart
from tests.replay.harness import Reply, Run, Script, simulate
from tests.replay.history import moment
from tests.replay.test_answer_question import GOOD, kinds

UNTIL_S = 15
WRITING_STEP = 2


def start_of(index: int) -> SubagentStart:
    path = f"s{WRITING_STEP:03d}c{index}"
    return SubagentStart(run_id="instance-1", path=path, profile="comparator")


def chosen(count: int) -> SubagentsChosen:
    return SubagentsChosen(children=tuple(start_of(index) for index in range(count)), until=moment(UNTIL_S))


def done(payload: dict[str, Any]) -> dict[str, Any]:
    place = SubagentPlace(run_id=payload["run_id"], path=payload["path"])
    end = SubagentEnd(child_id=place.child_id, status="done", turns=2, tokens=900)
    return end.model_dump(mode="json")


def delegated(*replies: object, decided: tuple[Observation, ...] = ()) -> Run:
    """Run a question whose writing step first returns the observations `decided`, then delegates, then writes
    the answer.
    """
    observations = iter((*decided, chosen(len(replies)), GOOD["turn"]))

    def perform_step(payload: Any) -> object:
        kind = payload["action"]["kind"]
        observation = next(observations) if kind == "turn" else GOOD[kind]
        return StepResult(observation=observation).model_dump(mode="json")

    def run_sub_agent(payload: Any) -> object:
        reply = replies[int(payload["path"][-1])]
        return reply if isinstance(reply, Reply) else done(payload)

    def terminate(payload: Any) -> object:
        return Reply({"terminated": 1}, terminates=payload["instance_ids"])

    script = Script(
        activities={"perform_step": perform_step, "terminate_instances": terminate},
        children={"run_sub_agent": run_sub_agent},
    )
    return simulate(answer_question, {"run_id": "instance-1"}, script)


def names(run: Run) -> list[str]:
    return [payload["action"]["kind"] if name == "perform_step" else name for name, payload in run.calls]


BEFORE = ["prepare", "turn"]


def test_the_answer_is_written_when_the_sub_agents_have_ended() -> None:
    run = delegated("done", "done")
    assert names(run) == [*BEFORE, "run_sub_agent", "run_sub_agent", "turn", "commit_answer"]
    assert run.output == {"outcome": "completed", "abstained": False}
    assert run.finished_after_s == 0  # no open timer delays the end
    assert run.left_open == []


def test_the_answer_knows_the_step_that_chose_them_and_is_not_delegated_again() -> None:
    action = [payload["action"] for _, payload in delegated("done").calls if "action" in payload][-2]
    assert action["kind"] == "turn"
    assert (action["step"], action["delegation_step"]) == (WRITING_STEP + 2, WRITING_STEP)


def test_a_sub_agent_is_given_the_run_and_its_path_and_nothing_else() -> None:
    inputs = [payload for name, payload in delegated("done", "done").calls if name == "run_sub_agent"]
    assert inputs == [{"run_id": "instance-1", "path": f"s002c{index}"} for index in range(2)]


def test_a_sub_agent_that_is_late_is_ended_and_its_answer_is_not_waited_for() -> None:
    run = delegated("done", Reply({"status": "done"}, after_s=900))
    assert names(run)[-3:] == ["terminate_instances", "turn", "commit_answer"]
    assert run.finished_after_s == UNTIL_S
    assert run.left_open == []


def test_a_sub_agent_that_raises_or_answers_nonsense_costs_no_answer() -> None:
    for reply in (Reply(failure="a defect"), Reply({"nonsense": 1}), Reply("text")):
        run = delegated("done", reply)
        assert names(run)[-2:] == ["turn", "commit_answer"]
        assert run.output["outcome"] == "completed"


def test_the_status_names_the_children_while_they_are_at_work() -> None:
    run = delegated("done", Reply({"status": "done"}, after_s=900))
    statuses = [episode.state.get("customStatus") for episode in run.recording.episodes]
    children = [status["children"] for status in statuses if status and "children" in status]
    assert [child["status"] for child in children[0]] == ["running", "running"]
    assert [child["status"] for child in children[-1]] == ["done", "running"]
    assert children[0][0] == {
        "child_id": "instance-1:s002c0",
        "profile": "comparator",
        "status": "running",
    }


def test_a_deferred_decision_is_made_anew_after_its_delay() -> None:
    run = delegated("done", decided=(DelegationDeferred(delay_s=0.75), DelegationDeferred(delay_s=0.75)))
    assert kinds(_without_children(run))[1:5] == ["turn"] * 4
    assert run.finished_after_s == 1.5


def test_a_deferred_decision_may_end_in_an_answer() -> None:
    answer = AnswerWritten(abstained=False)
    run = delegated(decided=(DelegationDeferred(delay_s=0.75), answer))
    assert names(run) == [*BEFORE, "turn", "commit_answer"]


def _without_children(run: Run) -> Run:
    calls = [call for call in run.calls if call[0] == "perform_step"]
    return Run(**{**vars(run), "calls": calls})
