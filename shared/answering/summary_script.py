"""The scripts of a summary and of the children that read its documents. Pure."""

from collections.abc import Callable
from math import ceil

from shared.answering.script import Phase, RunEnd, Script, Step, Steps, retry
from shared.answering.steps import (
    CommitSummary,
    MergeSummary,
    Observation,
    OpenSummary,
    ReportFailure,
    RunClosed,
    StepAction,
    StepFailed,
    StepResult,
)
from shared.answering.subagent_models import SubagentEnd, SubagentPlace
from shared.answering.summary_models import (
    DocumentEnded,
    DocumentOpened,
    OpenDocument,
    ReadWindows,
    ReduceDocument,
    SummaryMerged,
    SummaryStale,
    WindowsRead,
)
from shared.platform.errors import ConflictError
from shared.runs.models import ChildStatus

# Maximum number of steps that read the windows of one document. More would slow it down, because every step
# replays the whole history.
MAX_RANGES = 24
# Number of concurrent steps per document. The model endpoint is the bottleneck. Not measured.
AT_ONCE = 2
# Pauses in seconds before failed windows are read again. A service has often recovered by then.
PAUSES_S = (5.0, 20.0)
# Maximum number of merges. The first is repeated only if the user loses access to a document before the
# summary is committed.
MAX_MERGES = 3


class DocumentSummary:
    """The agent that summarises documents. A child reads each document; then the results are merged and
    committed.

    A child that fails or is late is left out with a warning, and the windows that it had read are used.

    Attributes:
        phase: `documents` while the children read, then `merge`.
        step: the next step's number, counted from 1. The children also take a number.
    """

    def __init__(self) -> None:
        self.phase = "documents"
        self.step = 1
        self._tokens = 0

    def first_step(self) -> Script[Observation]:
        """Choose the documents, and store the identities of their children."""
        return (yield from self._perform("commit", lambda tries: OpenSummary(step=self.step, tries=tries)))

    def next_step(self, observation: Observation) -> Script[Observation]:
        """Merge the results of the documents."""
        self.phase = "merge"
        return (yield from self._perform("commit", lambda tries: MergeSummary(step=self.step, tries=tries)))

    def record(self, observation: Observation) -> None:
        """Advance the step number past that of the children. Their results are in the journal."""
        self.step += 1

    def close(self, observation: Observation) -> Script[RunEnd]:
        """Commit the summary, or report its failure. A summary that has become stale is merged again
        first.
        """
        for merges in range(1, MAX_MERGES + 1):
            if not isinstance(observation, SummaryMerged):
                break
            merge_step = self.step - 1

            def commit(tries: int, merge_step: int = merge_step) -> CommitSummary:
                return CommitSummary(step=self.step, tries=tries, merge_step=merge_step)

            observation = yield from self._perform("commit", commit)
            if isinstance(observation, SummaryStale) and merges < MAX_MERGES:
                observation = yield from self.next_step(observation)
        if isinstance(observation, RunClosed):
            return RunEnd("completed", abstained=False)
        yield from self._perform("fail", lambda tries: self._failure(observation, tries))
        return RunEnd("failed", abstained=False)

    def _failure(self, observation: Observation, tries: int) -> ReportFailure:
        error_type, message, hints = (
            (observation.error_type, observation.message, observation.hints)
            if isinstance(observation, StepFailed)
            else (ConflictError.code, "Access to the documents changed while they were summarised.", ())
        )
        return ReportFailure(step=self.step, tries=tries, error_type=error_type, message=message, hints=hints)

    def _perform(self, phase: Phase, action: Callable[[int], StepAction]) -> Script[Observation]:
        """Perform a step, and retry it after failures that a retry may resolve."""

        def attempt(tries: int, delay_s: float) -> Script[Observation]:
            result: StepResult = yield Step(action(tries), self._tokens, delay_s)
            self._tokens += result.tokens
            self.step += 1
            return result.observation

        return (yield from retry(phase, attempt))


class DocumentReader:
    """The agent that reads one document. It splits the document into windows, reads them in parallel, and
    merges their findings.
    """

    def __init__(self, place: SubagentPlace) -> None:
        self.step = 0
        self._child_id = place.child_id

    def first_step(self) -> Script[Observation]:
        """Split the document into windows."""
        result: StepResult = yield Step(OpenDocument())
        return result.observation

    def next_step(self, observation: Observation) -> Script[Observation]:
        """Read all windows, read failed ones again after a pause, and merge the findings."""
        assert isinstance(observation, DocumentOpened)  # noqa: S101  # anything else is the last observation
        size = max(1, ceil(observation.window_count / MAX_RANGES))
        ranges = tuple(
            ReadWindows(first=first, end=min(first + size, observation.window_count))
            for first in range(0, observation.window_count, size)
        )
        for delay_s in (0.0, *PAUSES_S):
            results: tuple[StepResult, ...] = yield Steps(ranges, AT_ONCE, delay_s)
            observations = [result.observation for result in results]
            ended = next((item for item in observations if isinstance(item, DocumentEnded | RunClosed)), None)
            if ended is not None:
                return ended
            if not any(map(_may_help, observations)):
                break
        result: StepResult = yield Step(ReduceDocument(window_count=observation.window_count))
        return result.observation

    def record(self, observation: Observation) -> None:
        """Do nothing, because this agent has no children and never asks the user."""

    def close(self, observation: Observation) -> Script[SubagentEnd]:
        """Return the end of the child. The result of its document is in the journal."""
        yield from ()
        status: ChildStatus = "failed"
        if isinstance(observation, DocumentEnded) and observation.status != "not_found":
            status = observation.status
        return SubagentEnd(child_id=self._child_id, status=status)


def _may_help(observation: Observation) -> bool:
    """Return whether this observation reports failures that another attempt at the windows may resolve."""
    if isinstance(observation, StepFailed):
        return observation.retryable
    return isinstance(observation, WindowsRead) and observation.again > 0
