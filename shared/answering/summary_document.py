"""Performs the steps that read one document of a summary: split it into windows, read them, and merge their
findings.

Each step is a turn of the child with its own completion in the journal: opening is turn 0, window k is turn
k + 1, and merging is the turn after the last window. Permissions are checked before each window and again
before the result, so a document that became unreadable contributes nothing.
"""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from shared.answering.attempts import Attempt
from shared.answering.budget import Budget, tokens_in
from shared.answering.metering import MeteredChatModel, charge_to
from shared.answering.services import SubagentServices
from shared.answering.steps import RunClosed, StepFailed, StepResult, step_failed
from shared.answering.subagent_models import SubagentPlace
from shared.answering.summary_findings import (
    common_tags,
    proved_window,
    without_repeated_metrics,
    without_repeats,
)
from shared.answering.summary_limits import SummaryTime, document_tokens, most_windows
from shared.answering.summary_model import SummaryModel, reduce_findings, split
from shared.answering.summary_models import (
    DocumentAction,
    DocumentEnded,
    DocumentOpened,
    DocumentPlan,
    DocumentResult,
    OpenDocument,
    ReadWindows,
    ReduceDocument,
    WindowRead,
    WindowResult,
    WindowsRead,
)
from shared.answering.summary_result import not_found_warning
from shared.platform.concurrency import run_together
from shared.platform.errors import CallTimeoutError, DocumentNotFoundError, GroundworkError, NotFoundError
from shared.platform.models import Model, Stored
from shared.platform.telemetry import get_logger
from shared.retrieval.block_reading import BlockLookup, DocumentBlocks
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.event_log import EventLog, StaleAttemptError, staged_child_log
from shared.runs.events import DoneLine, ReservedLine, ValueLine
from shared.runs.journal import Journal
from shared.runs.models import RunRequest, SummaryOrder

MAX_KEY_FINDINGS = 12
# Names of the values that the steps store in the journal.
_PLAN, _RESULT, _WINDOW = "plan", "result", "window-"
# Maximum number of concurrent reads of stored values. Each takes a few milliseconds. Not measured.
_AT_ONCE = 16


async def perform_document_step(
    place: SubagentPlace, action: DocumentAction, services: SubagentServices
) -> StepResult:
    """Perform a step of the child that reads one document. Expected failures are returned; defects are
    raised.
    """
    journal = Journal(services.run_log, services.blobs, place.run_id)
    match action:
        case OpenDocument():
            return await _Opening(place, 0, journal, services).result()
        case ReadWindows():
            return await _read_range(place, action, journal, services)
        case ReduceDocument():
            return await _Merging(place, action.window_count + 1, journal, services).result()


async def _read_range(
    place: SubagentPlace, action: ReadWindows, journal: Journal, services: SubagentServices
) -> StepResult:
    """Read a range of windows in order. Stop early if the result of the document is final or the run has
    ended.
    """
    done = failed = again = tokens = 0
    for number in range(action.first, action.end):
        result = await _Reading(place, number + 1, journal, services).result()
        tokens += result.tokens
        match result.observation:
            case DocumentEnded() | RunClosed():
                return result
            case StepFailed() as unread:
                failed, again = failed + 1, again + unread.retryable
            case _:
                done += 1
    return StepResult(observation=WindowsRead(done=done, failed=failed, again=again), tokens=tokens)


Done = tuple[DocumentOpened | WindowRead | DocumentEnded, Model, str]
"""The observation of a turn, and the value to store with it as a part of the journal."""


class _DocumentTurn(Attempt[StepResult]):
    """Base of the attempts at a turn of the child that reads one document."""

    def __init__(self, place: SubagentPlace, turn: int, journal: Journal, services: SubagentServices) -> None:
        super().__init__(journal)
        self._place = place
        self._turn = turn
        self._services = services
        self._settings = services.settings
        self._budget = Budget()
        self._event_log: EventLog | None = None
        self._request: RunRequest | None = None

    @abstractmethod
    async def work(self) -> Done:
        """Perform the work of the turn. Return the observation, the value to store and its name in the
        journal.

        Raises:
            DocumentNotFoundError: the document was deleted, or the user lost access to it.
        """

    async def read(self) -> None:
        """Read the journal and the request, and open the indexes with the user's permissions."""
        await super().read()
        self._request = await self.journal.files.request()
        rows = RowsReadOnce(self._services.documents)
        self._documents = DocumentSearch(
            SecuredIndex(self._services.documents_index, self._request.user, rows)
        )
        self._content = SecuredIndex(self._services.content_index, self._request.user, rows)

    def stored_result(self) -> StepResult | None:
        """Return the stored result of this turn, or else of the turn that ended the document, or None."""
        for line in self.journal.lines_of_child(self._place.step, self._place.index):
            if isinstance(line, DoneLine):
                result = StepResult.from_payload(line.result)
                if line.turn == self._turn or isinstance(result.observation, DocumentEnded):
                    return result
        return None

    async def perform(self) -> StepResult:
        """Perform the turn within the remaining token budget of the document, and store its value and
        completion.
        """
        place, (step, index) = self._place, (self._place.step, self._place.index)
        earlier = self.journal.reserved(step, index, self._turn)
        others = tokens_in(self.journal.lines_of_child(step, index)) - earlier
        limit = document_tokens(self._settings.summaries, len(self._order.doc_ids))
        self._budget = Budget(limit - others, tokens=earlier)
        known = (self.journal.events, self.journal.offset)
        self._event_log = staged_child_log(
            self._services.run_log, place.run_id, (step, index, None), known, self._turn
        )
        try:
            observed, value, part = await self.work()
        except DocumentNotFoundError:
            # The document was deleted or the user lost access to it, so none of its findings may be used.
            value = DocumentResult(
                doc_id=self._doc_id, status="not_found", warning=not_found_warning(self._doc_id)
            )
            observed, part = DocumentEnded(status="not_found"), _RESULT
        result = StepResult(observation=observed, tokens=self._budget.tokens)
        # Store every value in a blob, even a small one, because each step reads the whole journal.
        line = await self.journal.value_line(step, value, part, most_inline=0)
        await self._event_log.write(line, DoneLine(result=result.model_dump(mode="json")))
        return result

    async def result_after_end(self) -> StepResult:
        """Return the result to report if the run has ended or no longer waits for this document."""
        return StepResult(observation=RunClosed(), tokens=self._budget.tokens)

    async def result_after_error(self, error: GroundworkError) -> StepResult:
        """Record the tokens that the attempt really used, and return the error as the result."""
        get_logger().warning(
            "step.failed", run_id=self._place.run_id, error_type=error.code, child=self._place.index
        )
        if self._event_log is not None and not isinstance(error, StaleAttemptError):
            with suppress(GroundworkError):  # if this fails, all reserved tokens count as used
                await self._event_log.write(ReservedLine(tokens=self._budget.tokens))
        return StepResult(observation=step_failed(error, None), tokens=self._budget.tokens)

    def model(self, until: datetime) -> SummaryModel:
        """Return the model for this document. It stops at `until` and at the token limit, and its calls are
        charged to the user.
        """
        charge = charge_to(self._owner.user.user_id, self._services.user_limits)
        metered = MeteredChatModel(
            self._services.chat_model, self._budget, reserve=self._reserve, charge=charge
        )
        return SummaryModel(metered, self._order, self._settings, until)

    async def plan(self) -> DocumentPlan:
        """Return the plan of the document, which lists its windows.

        Raises:
            NotFoundError: the document was not split into windows yet.
        """
        plan = await document_plan(self.journal, self._place)
        if plan is None:
            raise NotFoundError("The document was not split into windows yet.")
        return plan

    @property
    def time(self) -> SummaryTime:
        """The deadlines for the parts of the summary."""
        return SummaryTime.of(self._settings.summaries, self._owner.created_at, self.journal.events)

    @property
    def _owner(self) -> RunRequest:
        assert self._request is not None  # noqa: S101  # `read` comes first
        return self._request

    @property
    def _order(self) -> SummaryOrder:
        return order_of(self._owner)

    @property
    def _doc_id(self) -> str:
        return self._order.doc_ids[self._place.index]

    async def _reserve(self, tokens: int) -> None:
        assert self._event_log is not None  # noqa: S101  # `perform` comes first
        await self._event_log.write(ReservedLine(tokens=tokens))


class _Opening(_DocumentTurn):
    """Attempt at the turn that splits the document into windows."""

    async def work(self) -> Done:
        record = await self._documents.get(self._doc_id)
        windows, left_out = windows_of(
            await DocumentBlocks(self._content).sizes(self._doc_id),
            self._settings.summaries.window_tokens,
            most_windows(self._settings.summaries, len(self._order.doc_ids)),
        )
        plan = DocumentPlan(
            doc_id=self._doc_id,
            filename=record.filename,
            windows=windows,
            left_out_blocks=left_out,
            source_url=record.source_url,
            language=record.language or "",
        )
        return DocumentOpened(window_count=len(windows), filename=record.filename), plan, _PLAN


class _Reading(_DocumentTurn):
    """Attempt at a turn that reads one window."""

    async def work(self) -> Done:
        until = self.time.read_until
        if datetime.now(UTC) >= until:
            raise CallTimeoutError("The time for reading is over.", "Summarise fewer documents.")
        plan, number = await self.plan(), self._turn - 1
        record = await self._documents.get(self._doc_id)
        hits = await BlockLookup(self._content).get_many(plan.windows[number])
        hits = [hit for hit in hits if hit.doc_id == self._doc_id]
        if not hits:
            # The document has a new version with other blocks, or the blocks' permissions changed before
            # those of the document's row.
            raise NotFoundError("The blocks of this window no longer exist.")
        output = await self.model(until).read(hits, {self._doc_id: record})
        return WindowRead(), proved_window(output, hits, plan.source_url), f"{_WINDOW}{number}"


class _Merging(_DocumentTurn):
    """Attempt at the turn that merges the findings of all windows that were read."""

    async def work(self) -> Done:
        # raises if the document has become unreadable since the last window
        await self._documents.get(self._doc_id)
        plan = await self.plan()
        result = await self._merge_findings(plan, await read_windows(self.journal, self._place))
        return DocumentEnded(status=result.status), result, _RESULT

    async def _merge_findings(self, plan: DocumentPlan, windows: Sequence[WindowResult]) -> DocumentResult:
        findings = without_repeats(finding for window in windows for finding in window.findings)
        narrative = await reduce_findings(
            findings,
            common_tags(window.tags for window in windows),
            self.model(self.time.reduce_until),
            most_tokens=self._settings.summaries.window_tokens,
            most_key=MAX_KEY_FINDINGS,
        )
        result = document_result(plan, windows, narrative.error_type)
        if result.status == "failed":
            return result
        key_findings = [narrative.findings[place] for place in narrative.key_places]
        cited = dict.fromkeys(place for statement in narrative.statements for place in statement.findings)
        extra = [narrative.findings[place] for place in cited if place not in narrative.key_places]
        order = {place: rank for rank, place in enumerate(dict.fromkeys((*narrative.key_places, *cited)))}
        statements = tuple(
            one.model_copy(update={"findings": tuple(order[place] for place in one.findings)})
            for one in narrative.statements
        )
        return result.model_copy(
            update={
                "findings": (*key_findings, *extra),
                "key_count": len(key_findings),
                "statements": statements,
                "metrics": tuple(without_repeated_metrics(m for one in windows for m in one.metrics)),
                "tags": narrative.tags,
            }
        )


def order_of(request: RunRequest) -> SummaryOrder:
    """Return the order of a summary: its documents, focus and language."""
    assert request.summary is not None  # noqa: S101  # only summaries have these steps
    return request.summary


async def document_plan(journal: Journal, place: SubagentPlace) -> DocumentPlan | None:
    """Return the plan of a document, or None if the child has not split the document into windows yet."""
    return await _find(journal, place, _PLAN, DocumentPlan)


async def document_result_of(journal: Journal, place: SubagentPlace) -> DocumentResult | None:
    """Return the stored result of a document, or None if the child has stored none."""
    return await _find(journal, place, _RESULT, DocumentResult)


async def read_windows(journal: Journal, place: SubagentPlace) -> list[WindowResult]:
    """Return the results of all windows that a child has read so far, in order."""
    lines = {
        int(line.part.removeprefix(_WINDOW)): line
        for line in reversed(_values(journal, place))
        if line.part.startswith(_WINDOW)
    }
    numbers = sorted(lines)
    windows: list[WindowResult] = []
    for start in range(0, len(numbers), _AT_ONCE):
        some = [lines[number] for number in numbers[start : start + _AT_ONCE]]
        windows += await run_together(*(journal.value(line, WindowResult) for line in some))
    return windows


async def _find(journal: Journal, place: SubagentPlace, part: str, kind: type[Stored]) -> Stored | None:
    line = next((line for line in _values(journal, place) if line.part == part), None)
    return None if line is None else await journal.value(line, kind)


def _values(journal: Journal, place: SubagentPlace) -> list[ValueLine]:
    lines = journal.lines_of_child(place.step, place.index)
    return [line for line in lines if isinstance(line, ValueLine)]


def windows_of(
    blocks: Sequence[tuple[str, int]], most_tokens: int, most_windows: int
) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Divide the blocks of a document into windows of block ids. Also return the number of blocks beyond the
    last allowed window.

    Args:
        blocks: (block id, tokens) in document order.
    """
    pieces = split([size for _, size in blocks], most_tokens)
    windows = tuple(tuple(blocks[place][0] for place in piece) for piece in pieces[:most_windows])
    return windows, len(blocks) - sum(len(window) for window in windows)


def document_result(
    plan: DocumentPlan, windows: Sequence[WindowResult], error_type: str | None = None
) -> DocumentResult:
    """Return the result of a document with its status and warning, but without findings. The caller adds
    them.

    Args:
        error_type: why the model could not merge the findings.
    """
    name = plan.filename
    notes = []
    if not plan.windows:
        notes.append(f"{name} contains no readable text.")
    elif len(windows) < len(plan.windows):
        notes.append(
            f"{len(plan.windows) - len(windows)} of {len(plan.windows)} parts of {name} were not read."
        )
    elif not any(window.findings for window in windows):
        notes.append(f"None of the model's findings about {name} could be proved.")
    if plan.left_out_blocks:
        notes.append(f"{name} is long: the last {plan.left_out_blocks} blocks were left out.")
    if error_type:
        notes.append(f"The findings of {name} were not merged: the model failed ({error_type}).")
    status: Literal["done", "partial", "failed"] = "partial" if notes else "done"
    if not any(window.findings for window in windows):
        status = "failed"
    return DocumentResult(
        doc_id=plan.doc_id,
        filename=name,
        language=plan.language,
        status=status,
        warning=" ".join(notes) or None,
    )
