"""Context of a sub-agent's turn: its task, its state, its remaining budget and its journal lines.

Events show tools, turns and counts to readers, but no document contents. An event that can't be written is
dropped without failing the turn. The sub-agent ends as soon as its run no longer waits for it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from shared.answering.budget import Budget, Prices
from shared.answering.calls import CallResults, pages_read
from shared.answering.children import FINDINGS, STATE
from shared.answering.passages import task_message
from shared.answering.profiles import PROFILES, SCOPES, CallRules, SubagentProfile
from shared.answering.prompt import system_prompt
from shared.answering.services import SubagentServices
from shared.answering.step_context import AttemptContext
from shared.answering.subagent_budget import CRASH_GRACE
from shared.answering.subagent_models import (
    ReportedFindings,
    SubagentState,
    SubagentTask,
    TakeSubagentTurn,
    TurnResult,
    WarningCode,
)
from shared.platform.errors import GroundworkError, NotFoundError
from shared.platform.language_models.models import ModelUsage
from shared.platform.models import Model
from shared.platform.search import Filters
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.event_log import RunClosedError, StaleAttemptError, open_child_log
from shared.runs.events import DoneLine, RunEvent, SubagentStatus, ToolResultEvent, ToolStartedEvent
from shared.runs.journal import Journal
from shared.runs.models import RunRequest
from shared.runs.provenance import Provenance
from shared.runs.step_time import child_losses
from shared.tools.base import Tool, ToolEvidence
from shared.tools.fetch_page import FetchPage
from shared.tools.models import WebHit
from shared.tools.outside import WEB_TOOLS, Outside, outside_of
from shared.tools.registry import bound_tool
from shared.tools.tool_calls import signature

# Maximum length of a call argument in events, enough for readers to see the purpose of the call.
_MAX_ARGUMENT_CHARS = 200
Phase = Literal["started", "turn", "artifact", "failed", "ended"]
# Maximum number of hits in the state. More wouldn't fit into any token budget.
_MAX_HITS = 80


def _without_contents(event: RunEvent) -> RunEvent:
    """Return a tool event that readers may see: with truncated arguments, and without error texts and SQL."""
    if isinstance(event, ToolStartedEvent):
        arguments = {name: _readable(value) for name, value in event.arguments.items()}
        return event.model_copy(update={"arguments": arguments})
    if isinstance(event, ToolResultEvent):
        return event.model_copy(update={"result_count": event.result_count or 0, "error": None, "sql": None})
    return event


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MAX_ARGUMENT_CHARS]
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value[:10]]
    return value if isinstance(value, int | float | bool) else None


class SubagentContext(AttemptContext[SubagentServices]):
    """Context of an attempt at a sub-agent's turn.

    Attributes:
        state: the previous turn's state, updated as the turn proceeds.
        lost_s: seconds by which the deadline is postponed, because a worker died.
    """

    def __init__(
        self,
        services: SubagentServices,
        journal: Journal,
        turn: TakeSubagentTurn,
        task: SubagentTask,
        *,
        request: RunRequest,
        state: SubagentState,
    ) -> None:
        super().__init__(services, journal)
        self.turn = turn
        self.task = task
        self.place = task.place
        self.request = request
        self.state = state
        self.lost_s = self._lost_time().total_seconds()

    @property
    def profile(self) -> SubagentProfile:
        """The profile used in this turn: the task's profile, or a smaller replacement."""
        return PROFILES[self.turn.profile]

    @property
    def call_rules(self) -> CallRules:
        """Limits on the sub-agent's tool calls."""
        return replace(self.profile.calls, in_all=self.services.settings.subagents.child_max_tool_calls)

    @property
    def system(self) -> str:
        """The system prompt of the current profile."""
        return system_prompt(self.profile)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the task and the profile allow and that are available."""
        allowed = [scope for scope in self.profile.tools if scope in self.task.tools]
        works = [scope for scope in allowed if scope != "web_search" or self.services.web_search]
        is_read = FetchPage.name in self.services.settings.answering.enabled_tools
        off = () if is_read else (FetchPage.name,)
        return tuple(name for scope in works for name in SCOPES[scope] if name not in off)

    def bind(self, name: str, evidence: ToolEvidence) -> Tool:
        """Return a tool that acts with the permissions of the run's user and within the task's documents,
        whatever its arguments.
        """
        outside = self._outside(name)
        return bound_tool(name, self.services, self.request.user, self.filters(), evidence, outside=outside)

    def _outside(self, name: str) -> Outside | None:
        if name not in WEB_TOOLS:
            return None
        records, hits = self.records, self.state.hits
        return outside_of(
            self.services.settings,
            own_words=[self.request.question, *(turn.question for turn in self.request.conversation.turns)],
            # The main agent may have written the task after reading documents, so it counts as document text.
            document_texts=[
                self.task.question,
                *(f"{hit.content} {hit.image_caption or ''}" for hit in hits),
            ],
            search_results=[page.url for page in self.state.pages],
            documents={hit.doc_id: records.get(hit.doc_id) for hit in hits},
        )

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline; negative after it. Time lost in worker crashes extends it."""
        return (self.task.deadline - datetime.now(UTC)).total_seconds() + self.lost_s

    @property
    def budget(self) -> Budget:
        """The budget of the task with the usage of the sub-agent so far."""
        models = self.services.settings.models
        return Budget(
            self.task.budget.max_child_tokens,
            self.task.budget.max_child_cost_usd,
            tokens=self.state.tokens,
            cost_usd=self.state.cost_usd,
            prices=Prices(
                models.input_usd_per_million_tokens,
                models.output_usd_per_million_tokens,
                models.cached_input_usd_per_million_tokens,
            ),
        )

    @property
    def records(self) -> dict[str, DocumentRecord]:
        """The documents whose metadata the sub-agent has read, by id."""
        return {record.doc_id: record for record in self.state.records}

    @property
    def targets(self) -> list[tuple[str, str]]:
        """Id and file name of each document that the task is about and that the user may read."""
        records = self.records
        return [(doc_id, records[doc_id].filename) for doc_id in self.task.doc_ids if doc_id in records]

    def message(
        self,
        hits: Sequence[Hit] = (),
        pages: Sequence[WebHit] = (),
        listed: Sequence[DocumentRecord] = (),
        *,
        then: Literal["work", "report"] = "work",
    ) -> str:
        """Return the user message with the task and the given evidence, for a work turn or for the report."""
        question, records = self.task.question, self.records
        return task_message(question, self.targets, hits, records, pages, listed=listed, then=then)

    def filters(self) -> Filters:
        """Return the filters that apply to every search: the project, and the documents of the task."""
        chosen = self.request.doc_ids
        within = tuple(doc_id for doc_id in self.task.doc_ids if not chosen or doc_id in chosen)
        filters: Filters = {}
        if project_id := self.task.project_id or self.request.project_id:
            filters["project_id"] = project_id
        if limited := within or chosen:
            filters["doc_id"] = limited
        return filters

    def add_usage(self, usage: ModelUsage) -> None:
        """Add the tokens and the cost of a model call to the state."""
        used = self.budget.after(usage)
        self.update_state(tokens=used.tokens, cost_usd=used.cost_usd)

    def add_warnings(self, *codes: WarningCode) -> None:
        """Add warning codes to the state, without duplicates."""
        self.update_state(warnings=tuple(dict.fromkeys((*self.state.warnings, *codes))))

    def add_evidence(self, hits: Sequence[Hit], records: Sequence[DocumentRecord]) -> None:
        """Add hits and document records to the state, without duplicates and up to a maximum number."""
        self.record_provenance(Provenance.of(*hits, *records))
        hits_by_id = {hit.block_id: hit for hit in (*self.state.hits, *hits)}
        records_by_id = {record.doc_id: record for record in (*self.state.records, *records)}
        self.update_state(
            hits=tuple(hits_by_id.values())[:_MAX_HITS], records=tuple(records_by_id.values())[:_MAX_HITS]
        )

    def record_provenance(self, *used: Provenance) -> None:
        """Add documents to the record of everything that has influenced the sub-agent's result."""
        provenance = self.state.provenance or Provenance()
        self.update_state(provenance=Provenance.joined((provenance, *used)))

    def add_results(self, results: CallResults) -> None:
        """Add the results of the planned calls to the state and to the conversation with the model."""
        state = self.state
        self.record_provenance(*(one.provenance for one in results.called))
        found_records = [record for one in results.called for record in one.evidence.records]
        described = [results.records[hit.doc_id] for hit in results.hits if hit.doc_id in results.records]
        self.add_evidence(results.hits, (*described, *found_records))
        pages = {page.url: page for page in state.pages}
        for one in results.called:
            # The fetched text of a page replaces the excerpt from its search result.
            pages = {page.url: page for page in (*one.evidence.pages, *pages.values(), *pages_read(one))}
        listed = (*state.listed, *(record.doc_id for record in found_records))
        previous_calls = [
            signature(item.call.name, item.arguments) for item in state.planned if item.arguments is not None
        ]
        self.update_state(
            pages=tuple(pages.values()),
            listed=tuple(dict.fromkeys(listed)),
            messages=(*state.messages, *results.messages),
            made=(*state.made, *previous_calls),
            planned=(),
        )

    def update_state(self, **values: object) -> None:
        """Replace fields of the state in memory. `store_state` or `complete` must follow to store them."""
        self.state = self.state.model_copy(update=values)

    async def open(self, *phases: Phase) -> None:
        """Append the start of this attempt to the journal, followed by a status event for each phase.

        Raises:
            RunClosedError: the run has ended, has been erased, or no longer waits for the sub-agent.
            StaleAttemptError: another attempt took over.
        """
        place = (self.place.step, self.place.index, self.turn.profile)
        first = [self._phase_event(phase) for phase in phases]
        with _treat_erased_as_closed():
            self._event_log = await open_child_log(
                self.services.run_log, self.run_id, place, first, self.known_lines
            )

    def _lost_time(self) -> timedelta:
        """Return the time that the sub-agent lost in worker crashes, at most CRASH_GRACE."""
        step, index = self.place.step, self.place.index
        begins = self._phase_event("turn").model_copy(
            update={"step": step, "child": index, "at": datetime.now(UTC)}
        )
        lost = child_losses((*self.journal.events, begins)).get((step, index), timedelta())
        return min(lost, CRASH_GRACE)

    async def store_state(self) -> None:
        """Append the sub-agent's state to the journal.

        Raises:
            RunClosedError: the run has ended, has been erased, or no longer waits for the sub-agent.
            StaleAttemptError: another attempt took over.
        """
        await self._write(self.state, STATE)

    async def store_findings(self, usage: ModelUsage) -> None:
        """Append the findings so far to the journal, with the usage including the current call, and tell
        readers about them.
        """
        used = self.budget.after(usage)
        findings = ReportedFindings(
            findings=self.state.findings,
            uncertainty=self.state.uncertainty,
            tokens=used.tokens,
            cost_usd=used.cost_usd,
        )
        with self._drop_failed_events():
            await self._write(findings, FINDINGS, self._phase_event("artifact"))

    async def complete(self, result: TurnResult, *events: RunEvent) -> None:
        """Append the state, the last events and the completion of this attempt to the journal atomically.

        Raises:
            RunClosedError: the run has ended, has been erased, or no longer waits for the sub-agent.
            StaleAttemptError: another attempt took over.
        """
        done = DoneLine(result=result.model_dump(mode="json"), turn=self.turn.turn, tries=self.turn.attempt)
        await self._write(self.state, STATE, *events, done)

    async def _write(self, value: Model, part: str, *events: RunEvent) -> None:
        line = await self.journal.value_line(self.place.step, value, part)
        with _treat_erased_as_closed():
            await self.event_log.write(line, *events)

    def end_event(
        self, phase: Phase, *, error_type: str | None = None, status: str | None = None
    ) -> RunEvent:
        """Return a status event that reports the end of a turn, with its error or its status."""
        return self._phase_event(phase).model_copy(update={"error_type": error_type, "status": status})

    def _phase_event(self, phase: Phase) -> SubagentStatus:
        state = self.state
        return SubagentStatus(
            phase=phase,
            turn=self.turn.turn,
            passages=len(state.hits),
            findings=len(state.findings),
            proved=sum(bool(finding.proofs) for finding in state.findings),
            tokens=state.tokens,
            cost_usd=state.cost_usd,
        )

    async def send(self, events: Sequence[RunEvent]) -> None:
        """Append tool events, without document contents, to the journal. If storing them fails, they are
        dropped.

        Raises:
            RunClosedError: the run has ended, has been erased, or no longer waits for the sub-agent.
            StaleAttemptError: another attempt took over.
        """
        with self._drop_failed_events(), _treat_erased_as_closed():
            await self.event_log.write(*map(_without_contents, events))

    @contextmanager
    def _drop_failed_events(self) -> Iterator[None]:
        """Log storage failures instead of raising them. Errors that end the sub-agent are still raised."""
        try:
            yield
        except (RunClosedError, StaleAttemptError):
            raise
        except GroundworkError as failed:
            get_logger().warning("sub_agent.event_lost", run_id=self.run_id, error_type=failed.code)


@contextmanager
def _treat_erased_as_closed() -> Iterator[None]:
    """Raise `RunClosedError` if the journal is missing because the run was erased."""
    try:
        yield
    except NotFoundError:
        raise RunClosedError("The journal of the run no longer exists.") from None
