"""The script that all agents follow: steps, clarifications and sub-agents in order. Pure.

`run_agent` yields commands and decides from their results only, so a driver can replay it from recorded
results. Durable Functions replays an orchestration's history, and the inline driver replays the results of a
run that waits for a reply.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from shared.answering.steps import (
    AnswerTimedOut,
    AnswerWritten,
    CommitAnswer,
    DelegationDeferred,
    FilesUnread,
    LooksFurther,
    Observation,
    Prepare,
    Prepared,
    ReportFailure,
    RunClosed,
    StepAction,
    StepFailed,
    StepResult,
    SubagentAction,
    SubagentsChosen,
    SubagentsEnded,
    TakeAnswer,
    TakeTurn,
    UserAsked,
)
from shared.answering.subagent_models import SubagentEnd, SubagentPlace, SubagentStart
from shared.answering.summary_models import DocumentAction, DocumentsChosen
from shared.runs.plan import QueryType, TodoItem, close_todo, complete_lookups, count_attempt, start_ready

Phase = Literal["prepare", "await", "take", "turn", "delegate", "commit", "fail", "end"]

# Maximum number of attempts at a step. If a service has failed twice despite its own retries, a third attempt
# is unlikely to help.
MAX_TRIES = 2

# Maximum number of attempts at a step that only stores the end of a run or the user's choice. Storage usually
# recovers within minutes.
MAX_PATIENT_TRIES = 8
_PATIENT: frozenset[Phase] = frozenset({"take", "commit", "fail"})
_FIRST_DELAY_S = 2.0
_LONGEST_DELAY_S = 60.0

# Seconds that a retry of a step and all later steps need. With less time left, the step is not retried.
_NEEDED_S: dict[str, float] = {"prepare": 8.0, "turn": 3.0}
_NEEDED_OTHERWISE_S = 2.0


@dataclass(frozen=True)
class Step:
    """Command to perform one step after a delay. The driver sends its result back to the script.

    Attributes:
        tokens: used by the run before this step.
        before: latest time at which the step may begin; after it the result is None.
    """

    action: StepAction | SubagentAction | DocumentAction
    tokens: int = 0
    delay_s: float = 0.0
    before: datetime | None = None


@dataclass(frozen=True)
class Steps:
    """Command to perform several steps after a delay, at most `at_once` concurrently.

    The result is a tuple of `StepResult` in their order.
    """

    actions: tuple[DocumentAction, ...]
    at_once: int
    delay_s: float = 0.0


@dataclass(frozen=True)
class Reply:
    """Command to wait for the user's reply. The result is `AnswerArrived` or `AnswerTimedOut` in a
    `StepResult`.

    Attributes:
        ask_step: the step that asked; part of the external event's name.
        until: time with zone at which the question expires, also for a run that was restarted meanwhile.
    """

    ask_step: int
    until: datetime


@dataclass(frozen=True)
class Children:
    """Command to run sub-agents concurrently. The result is `SubagentsEnded` in a `StepResult`.

    Attributes:
        until: time with zone at which unfinished sub-agents are terminated.
    """

    starts: tuple[SubagentStart, ...]
    until: datetime


@dataclass(frozen=True)
class Readers:
    """Command to run the children that read a summary's documents. The result is `SubagentsEnded` in a
    `StepResult`.

    Attributes:
        until: time with zone at which unfinished children are terminated.
        at_once: maximum number of concurrent children.
    """

    starts: tuple[SubagentPlace, ...]
    until: datetime
    at_once: int


Command = Step | Steps | Reply | Children | Readers


@dataclass(frozen=True)
class RunEnd:
    """Outcome of a run. `abstained` means that the documents didn't contain the answer."""

    outcome: Literal["completed", "failed"]
    abstained: bool


End = TypeVar("End")
EndT_co = TypeVar("EndT_co", covariant=True)
Script = Generator[Command, Any, End]
Observed = TypeVar("Observed")
StepResults = tuple[StepResult, ...]
"""The results of a run's commands so far, in order. They determine its next command."""


class AgentSteps(Protocol[EndT_co]):
    """The part of the script that differs between kinds of agents.

    Steps return an observation, with `is_last` once no turn follows.
    """

    step: int

    def first_step(self) -> Script[Any]:
        """Perform the first step, and return its observation."""

    def next_step(self, observation: Any) -> Script[Any]:
        """Perform the step that follows an earlier step's observation."""

    def record(self, observation: Observation) -> None:
        """Record the result of a wait: the reply to a clarification, or the ends of sub-agents."""

    def close(self, observation: Any) -> Script[EndT_co]:
        """Perform the closing steps after the last turn, and return the agent's end."""


def run_agent(agent: AgentSteps[End]) -> Script[End]:
    """Run an agent of any kind until it ends: yield its commands, receive their results, and return its
    end.
    """
    observation = yield from agent.first_step()
    while not observation.is_last:
        if isinstance(observation, UserAsked | LooksFurther) and observation.expires_at is not None:
            reply: StepResult = yield Reply(agent.step - 1, observation.expires_at)
            agent.record(reply.observation)
        elif isinstance(observation, SubagentsChosen):
            ends: StepResult = yield Children(observation.children, observation.until)
            agent.record(ends.observation)
        elif isinstance(observation, DocumentsChosen):
            ends = yield Readers(observation.children, observation.until, observation.at_once)
            agent.record(ends.observation)
        observation = yield from agent.next_step(observation)
    return (yield from agent.close(observation))


def next_command(results: StepResults) -> Command | RunEnd:
    """Return the next command of a run after these results, or its end. Equal results give equal commands."""
    script = run_agent(MainAgent())
    try:
        command = next(script)
        for result in results:
            command = script.send(result)
    except StopIteration as ended:
        end: RunEnd = ended.value
        return end
    return command


def retry_delay_s(phase: Phase, tries: int, failure: StepFailed) -> float | None:
    """Return the seconds to wait before a failed step is retried, or None if it must not be retried.

    Args:
        tries: number of earlier failed attempts.
    """
    if not failure.retryable:
        return None
    doubled: float = _FIRST_DELAY_S * 2.0**tries
    delay_s = min(max(doubled, failure.retry_after_s or 0.0), _LONGEST_DELAY_S)
    if phase in _PATIENT:
        return delay_s if tries + 1 < MAX_PATIENT_TRIES else None
    left_s = failure.remaining_s
    has_time = left_s is None or left_s - delay_s >= _NEEDED_S.get(phase, _NEEDED_OTHERWISE_S)
    return delay_s if tries + 1 < MAX_TRIES and has_time else None


def retry(phase: Phase, attempt: Callable[[int, float], Script[Observed]]) -> Script[Observed]:
    """Perform a step, and repeat it after failures that a retry may resolve. Return the last observation.

    Args:
        attempt: makes one attempt, from the number of earlier failed ones and the seconds to wait before it;
            returns its observation.
    """
    tries, delay_s = 0, 0.0
    while True:
        observation = yield from attempt(tries, delay_s)
        retry_s = retry_delay_s(phase, tries, observation) if isinstance(observation, StepFailed) else None
        if retry_s is None:
            return observation
        tries, delay_s = tries + 1, retry_s


class MainAgent:
    """The agent that answers a question. It prepares, takes turns until the answer is written, and commits
    it.

    Attributes:
        step: the next step's number, counted from 1. Waits and sub-agents also take a number.
        tokens: total tokens of the run's models, including sub-agents.
        turns: steps of the completed turns that requested more evidence.
        looks: number of searches made. The gaps named by the model are searched up to a configured limit.
        delegation_step: the step that chose sub-agents before the first turn; 0 if none did.
    """

    def __init__(self) -> None:
        self.phase: Phase = "prepare"
        self.step = 1
        self.tokens = 0
        self.query_type: QueryType = "CONTENT_SEARCH"
        self.todo: tuple[TodoItem, ...] = ()
        self._is_todo_sent = True
        self._prepared = Prepared(query_type="CONTENT_SEARCH", intent="fact_lookup", todo=(), found_count=0)
        self._prepared_step = 0
        self._timed_out = False
        self._turns: tuple[int, ...] = ()
        self._looks = 1
        self._delegation_step = 0
        self._children: tuple[SubagentStart, ...] = ()
        self._abstained = False

    def first_step(self) -> Script[Observation]:
        """Plan the question, and search for its original wording at the same time."""
        return (yield from self._perform("prepare", lambda tries: Prepare(step=self.step, tries=tries)))

    def next_step(self, observation: Observation) -> Script[Observation]:
        """Search the documents that the user chose, or take a turn."""
        if isinstance(observation, UserAsked):
            ask_step = self.step - 2  # two steps back, because the wait for the reply has taken a step number

            def take_answer(tries: int) -> TakeAnswer:
                return TakeAnswer(step=self.step, tries=tries, ask_step=ask_step, timed_out=self._timed_out)

            return (yield from self._perform("take", take_answer))
        return (yield from self._perform("turn", self._turn))

    def record(self, observation: Observation) -> None:
        """Record the result of a wait: the reply to a clarification, or the ends of sub-agents."""
        if isinstance(observation, SubagentsEnded):
            self.tokens += _tokens_of_children(self._children, observation.ends)
        self._timed_out = isinstance(observation, AnswerTimedOut)
        self._is_todo_sent = True
        self.step += 1

    def close(self, observation: Observation) -> Script[RunEnd]:
        """Commit the answer, or report the failure if there is none or the commit fails."""
        if isinstance(observation, AnswerWritten):
            answer_step = self.step - 1

            def commit(tries: int) -> CommitAnswer:
                todo = close_todo(self.todo, succeeded=not self._abstained)
                return CommitAnswer(step=self.step, tries=tries, todo=todo, answer_step=answer_step)

            observation = yield from self._perform("commit", commit)
        failure = observation if isinstance(observation, StepFailed) else None
        if failure is not None:
            message, hints = failure.message, failure.hints

            def report(tries: int) -> ReportFailure:
                return ReportFailure(
                    step=self.step,
                    tries=tries,
                    todo=close_todo(self.todo, succeeded=False),
                    error_type=failure.error_type,
                    message=message,
                    hints=hints,
                )

            # If this step fails as well, the next reader or a timer closes the run (see `revive_run`).
            observation = yield from self._perform("fail", report)
        if isinstance(observation, RunClosed):
            self.todo = close_todo(self.todo, succeeded=failure is None and not self._abstained)
        self.phase = "end"
        return RunEnd("failed" if failure else "completed", self._abstained)

    def _turn(self, tries: int) -> TakeTurn:
        may_call = len(self._turns) + 1 < self._prepared.max_turns
        return TakeTurn(
            step=self.step,
            tries=tries,
            todo=() if self._is_todo_sent else self.todo,
            prepared_step=self._prepared_step,
            earlier=self._turns,
            delegation_step=self._delegation_step,
            may_call=may_call,
            may_look=may_call and self._looks < self._prepared.max_looks,
        )

    def _perform(self, phase: Phase, action: Callable[[int], StepAction]) -> Script[Observation]:
        """Perform a step, and retry it after failures that a retry may resolve.

        Args:
            action: creates the step's action from the number of failed attempts.
        """
        self.phase = phase

        def attempt(tries: int, delay_s: float) -> Script[Observation]:
            if tries:
                self._set_todo(count_attempt(self.todo))
            while True:
                result: StepResult = yield Step(action(tries), self.tokens, delay_s)
                observation = result.observation
                self.tokens += result.tokens
                self._record_result(observation)
                self.step += 1
                if not isinstance(observation, DelegationDeferred | FilesUnread):
                    return observation
                # A deferred step has not failed, so `tries` stays unchanged. The step itself stops deferring
                # when time runs out.
                delay_s = observation.delay_s

        return (yield from retry(phase, attempt))

    def _record_result(self, observation: Observation) -> None:
        todo = self.todo
        match observation:
            case Prepared():
                self._prepared, self._prepared_step = observation, self.step
                todo = start_ready(observation.todo)
                todo = complete_lookups(todo) if observation.found_count else todo
            case UserAsked():
                todo = start_ready(observation.todo)
            case LooksFurther():
                self._turns = (*self._turns, self.step)
                self._looks += bool(observation.gaps)
                todo = count_attempt(todo) if observation.gaps else todo
            case SubagentsChosen():
                self._children = observation.children
                if observation.by_model:
                    self._turns = (*self._turns, self.step)
                else:
                    self._delegation_step = self.step
            case AnswerWritten():
                self._abstained = observation.abstained
        if isinstance(observation, Prepared | UserAsked):
            self.query_type = observation.query_type
        self._set_todo(todo, is_sent=isinstance(observation, Prepared | UserAsked))

    def _set_todo(self, todo: tuple[TodoItem, ...], *, is_sent: bool = False) -> None:
        """Change the to-do list. The next turn sends the change to readers, unless the step's events already
        did.
        """
        self._is_todo_sent = is_sent or todo == self.todo
        self.todo = todo


def _tokens_of_children(children: Sequence[SubagentStart], ends: Sequence[SubagentEnd]) -> int:
    """Return the total tokens used by the sub-agents. A sub-agent that reported no usage counts with its
    whole budget.
    """
    tokens_by_child = {end.child_id: end.tokens for end in ends if end.tokens is not None}
    return sum(tokens_by_child.get(child.child_id, child.max_tokens) for child in children)
