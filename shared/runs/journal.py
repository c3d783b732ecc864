"""The journal of a run: an append-only log from which its complete state can be restored.

A line is either a public event or internal: the completion of a step, a stored value, a token reservation or
a reply to a clarification. A step is complete if and only if its completion is in the journal. It is written
in the same conditional append as the step's last events and values, so readers and later steps always see
the same result.
"""

from collections.abc import Iterable
from datetime import datetime

from shared.platform.blobs import BlobStore, read_model
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.models import Model, Stored
from shared.platform.names import RUN_LOG
from shared.runs.event_log import EventLog, RunClosedError
from shared.runs.events import (
    AskUserEvent,
    DoneLine,
    ReplyLine,
    ReservedLine,
    RunEvent,
    ValueLine,
    events_of,
    is_terminal,
)
from shared.runs.log_lines import LogSlice
from shared.runs.models import Choice, Clarification, ClarificationOption, RunAnswer, RunRecord
from shared.runs.run_files import RunFiles, answer_path
from shared.runs.run_log import RunLog
from shared.runs.run_state import fold

# Plans and answers with citations fit inline; evidence does not. Readers of the event stream download inline
# values too.
INLINE_BYTES = 16 * 1024


class Journal:
    """A run's journal as read from storage, with access to values that are stored in separate blobs.

    Attributes:
        events: all lines, including internal ones.
        offset: end of these lines, in bytes.
    """

    def __init__(self, log: RunLog, blobs: BlobStore, run_id: str) -> None:
        self._log = log
        self.files = RunFiles(blobs, run_id)
        self.run_id = run_id
        self.events: list[RunEvent] = []
        self.offset = 0
        self._staged: list[ValueLine] = []
        self._unwritten: list[ValueLine] = []

    async def read(self) -> None:
        """Read the lines appended since the last call.

        Raises:
            NotFoundError: the journal doesn't exist.
            UnknownEventError: a newer version of the app wrote an internal line.
        """
        self.add(await self._log.read(self.run_id, self.offset))

    def add(self, log_slice: LogSlice) -> None:
        """Add lines from storage. They must directly follow the lines that have already been read."""
        self.events += events_of(log_slice)
        self.offset = log_slice.next_offset

    def add_written(self, event_log: EventLog) -> None:
        """Append the lines that an attempt has written since this journal was read."""
        self.events += event_log.written

    @property
    def is_closed(self) -> bool:
        """Whether the journal contains the run's last event."""
        return any(map(is_terminal, self.events))

    def completion(self, step: int) -> DoneLine | None:
        """Return the completion of a step, or None if it is not complete."""
        done = (line for line in self.events if isinstance(line, DoneLine) and line.child is None)
        return next((line for line in done if line.step == step), None)

    def lines_of_child(self, step: int, child: int) -> list[RunEvent]:
        """Return the lines of a sub-agent, identified by the step that started it and its index."""
        return [event for event in self.events if (event.step, event.child) == (step, child)]

    def reserved(self, step: int, child: int | None = None, turn: int | None = None) -> int:
        """Return the number of tokens that earlier attempts at a step reserved for model calls. They may have
        been spent even if the attempts failed.

        Args:
            child, turn: the child's turn to return them for; None = the step itself.
        """
        lines = [line for line in self.events if isinstance(line, ReservedLine)]
        place = (step, child, turn)
        return next(
            (line.tokens for line in reversed(lines) if (line.step, line.child, line.turn) == place), 0
        )

    def reply(self, step: int) -> ReplyLine | None:
        """Return the first reply to a step's clarification. Later replies are ignored."""
        return first_reply(self.events, step)

    def value_lines(self, part: str) -> list[ValueLine]:
        """Return all lines that store a value named `part`, regardless of the step."""
        stored = [line for line in self.events if isinstance(line, ValueLine)]
        return [line for line in (*stored, *self._staged) if line.part == part]

    async def find(self, step: int, kind: type[Stored], part: str) -> Stored | None:
        """Return the value `part` of a step, or None. If attempts stored several values, the first one
        counts.
        """
        line = next((line for line in self.value_lines(part) if line.of == step), None)
        return None if line is None else await self.value(line, kind)

    async def get(self, step: int, kind: type[Stored], part: str) -> Stored:
        """Return the value `part` of a step.

        Raises:
            NotFoundError: the part is missing, or the run was purged.
        """
        value = await self.find(step, kind, part)
        if value is None:
            raise NotFoundError(f"The run has no {part} of step {step}.")
        return value

    async def value(self, line: ValueLine, kind: type[Stored]) -> Stored:
        """Return the value that a line contains or, if it is large, the value in the blob that the line
        names.
        """
        if line.path is not None:
            return await self.files.read_value(line.path, kind)
        return kind.from_payload(line.inline)

    async def stage(self, step: int, value: Model, part: str) -> ValueLine:
        """Create the line that stores the value `part` of a step, for the next append. A large value is
        written to its blob first.

        The part can be found from now on. The caller must append the line.
        """
        line = await self.value_line(step, value, part)
        self._staged.append(line)
        self._unwritten.append(line)
        return line

    async def value_line(
        self, step: int, value: Model, part: str, *, most_inline: int = INLINE_BYTES
    ) -> ValueLine:
        """Return the line that stores a value. A value larger than `most_inline` bytes is first written to a
        blob, which the line references.
        """
        if len(value.model_dump_json()) <= most_inline:
            return ValueLine(of=step, part=part, inline=value.model_dump(mode="json"))
        return ValueLine(of=step, part=part, path=await self.files.write_value(value))

    def take_staged(self) -> list[ValueLine]:
        """Return the staged lines and clear the list, so that each line is appended once."""
        lines, self._unwritten = self._unwritten, []
        return lines


def first_reply(events: Iterable[RunEvent], step: int) -> ReplyLine | None:
    """Return the first reply to the clarification of a step. Later replies are ignored."""
    return next((line for line in events if isinstance(line, ReplyLine) and line.step == step), None)


async def clarification_of(
    run_id: str, step: int, log: RunLog
) -> tuple[Clarification | None, ReplyLine | None]:
    """Return the clarification that a step requested and the reply to it. Either is None if it doesn't exist.

    Both are None if the journal was purged.
    """
    try:
        events = events_of(await log.read(run_id))
    except NotFoundError:
        return None, None
    for event in events:
        if isinstance(event, AskUserEvent) and event.step == step and event.expires_at is not None:
            options = tuple(option for option in event.options if isinstance(option, ClarificationOption))
            clarification = Clarification(
                question=event.question, options=options, expires_at=event.expires_at
            )
            return clarification, first_reply(events, step)
    return None, first_reply(events, step)


async def keep_reply(log: RunLog, run_id: str, step: int, choice: Choice, at: datetime) -> ReplyLine:
    """Append the reply to a clarification unless there is one. Return the first reply, the only one that
    counts.

    The user's reply and the timeout compete: the first append wins.

    Raises:
        NotFoundError: the journal doesn't exist.
        RunClosedError: the run ended without a reply.
    """
    while True:
        log_slice = await log.read(run_id)
        events = events_of(log_slice)
        reply = first_reply(events, step)
        if reply is not None:
            return reply
        if any(map(is_terminal, events)):
            raise RunClosedError("The run has ended.")
        line = ReplyLine(step=step, choice=choice, at=at)
        try:
            await log.append(run_id, [line], at_offset=log_slice.next_offset)
        except ConflictError:  # Another writer appended first, or the response to this append was lost.
            continue
        return line


async def read_journal(log: RunLog, blobs: BlobStore, run_id: str) -> Journal:
    """Read and return a run's journal.

    Raises:
        NotFoundError: the journal doesn't exist.
    """
    journal = Journal(log, blobs, run_id)
    await journal.read()
    return journal


async def committed_answer(run_id: str, blobs: BlobStore, log: RunLog) -> RunAnswer:
    """Return the answer of a completed run from its blob, or from the journal if the blob has not been
    written yet.

    Raises:
        NotFoundError: the run has no answer, or its thread was erased.
    """
    try:
        return await read_model(blobs, RUN_LOG, answer_path(run_id), RunAnswer)
    except NotFoundError:
        answer = fold(events_of(await log.read(run_id))).answer
        if answer is None:
            raise
        return answer


async def current_record(record: RunRecord, log: RunLog) -> RunRecord:
    """Return the run record updated from the journal, because the stored record may lag behind the end of the
    run.
    """
    if record.finished_at is not None or not record.has_log:
        return record
    try:
        return fold(events_of(await log.read(record.run_id))).update(record)
    except NotFoundError:  # The run is being erased.
        return record
