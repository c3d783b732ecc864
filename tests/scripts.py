"""Helpers for tests that execute the script of a question step by step."""

from shared.answering.effects import perform_metered
from shared.answering.script import Children, Readers, Reply, RunEnd, Step, StepResults, Steps, next_command
from shared.answering.steps import Observation, StepAction, StepInput, StepResult, SubagentAction
from shared.answering.summary_models import DocumentAction
from shared.wiring import Services


def start() -> StepResults:
    """Return the initial results, as of a run that hasn't performed any step."""
    return ()


def observe(results: StepResults, observation: Observation, tokens: int = 0) -> StepResults:
    """Append the observation of the latest command to the results."""
    return (*results, StepResult(observation=observation, tokens=tokens))


def next_action(results: StepResults) -> StepAction | Reply | Children | RunEnd:
    """Return the action of the next step, or the command or run end that comes in its place."""
    command = next_command(results)
    assert not isinstance(command, Steps | Readers)
    if not isinstance(command, Step):
        return command
    assert not isinstance(command.action, SubagentAction | DocumentAction)
    return command.action


def delay_s(results: StepResults) -> float:
    """Return the pause before the next step, in seconds."""
    command = next_command(results)
    assert isinstance(command, Step)
    return command.delay_s


def tokens_of(results: StepResults) -> int:
    """Return the number of tokens that the steps have used, excluding sub-agents."""
    return sum(result.tokens for result in results)


async def perform(step_input: StepInput, services: Services) -> Observation:
    """Perform a step and return its observation."""
    return (await perform_metered(step_input, services)).observation
