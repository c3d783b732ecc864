"""What one turn of a sub-agent works at: its task, what it has so far, what it may still use."""

from collections.abc import Iterable
from datetime import UTC, datetime

from shared.platform.language_models.models import ModelUsage
from shared.platform.prompts import load, render
from shared.platform.search import Filters
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.models import RunRequest, SubagentTool
from shared.subagents.artifacts import ChildStore
from shared.subagents.budget import Prices, Spent
from shared.subagents.child_events import ChildEvents
from shared.subagents.models import ChildTranscript, SubagentState, SubagentTask, TurnInput, WarningCode
from shared.subagents.profiles import PROFILES, Profile
from shared.subagents.services import SubagentServices

_MAX_HITS = 80  # more than any token budget lets a model read; keeps the state small


class Desk:
    """One turn's work. `state` and `transcript` are replaced as it goes on, and stored by `keep`."""

    def __init__(
        self,
        services: SubagentServices,
        turn: TurnInput,
        task: SubagentTask,
        request: RunRequest,
        stored: tuple[ChildStore, SubagentState],
    ) -> None:
        """`stored`: what was read from the store, or how a sub-agent begins."""
        self.services = services
        self.turn = turn
        self.task = task
        self.request = request
        self.store, self.state = stored
        self.transcript = ChildTranscript()
        self.events = ChildEvents(None, turn)
        self.prices = Prices(
            services.settings.models.input_usd_per_million_tokens,
            services.settings.models.output_usd_per_million_tokens,
        )

    @property
    def profile(self) -> Profile:
        """The one in force: the task's, or a smaller one that took over."""
        return PROFILES[self.turn.profile]

    @property
    def system(self) -> str:
        """The profile's prompt."""
        return render(load("subagents", self.profile.name), {"rules": load("subagents", "rules")})

    @property
    def tools(self) -> tuple[SubagentTool, ...]:
        """What it may use: of the task's tools those that are the profile's, and that there are."""
        allowed = [name for name in self.profile.tools if name in self.task.tools]
        return tuple(name for name in allowed if name != "web_search" or self.services.web_search)

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline; below 0 behind it."""
        return (self.task.deadline - datetime.now(UTC)).total_seconds()

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        return Spent(self.state.tokens, self.state.cost_usd)

    @property
    def scope(self) -> tuple[str, ...]:
        """The documents that searches may not leave; empty = all that the asker may read."""
        chosen = self.request.doc_ids
        within = tuple(doc_id for doc_id in self.task.doc_ids if not chosen or doc_id in chosen)
        return within or chosen

    @property
    def records(self) -> dict[str, DocumentRecord]:
        """Documents known so far."""
        return {record.doc_id: record for record in self.state.records}

    @property
    def targets(self) -> list[tuple[str, str]]:
        """(doc_id, file name) of the documents that the task is about and the asker may read."""
        known = self.records
        return [(doc_id, known[doc_id].filename) for doc_id in self.task.doc_ids if doc_id in known]

    def filters(self, doc_ids: Iterable[str] = ()) -> Filters:
        """The limits of a search: the task's project, and its documents or some of them."""
        filters: Filters = {}
        if project_id := self.task.project_id or self.request.project_id:
            filters["project_id"] = project_id
        if limited := tuple(doc_ids) or self.scope:
            filters["doc_id"] = limited
        return filters

    def book(self, usage: ModelUsage) -> None:
        """Count one call of the model."""
        spent = self.spent.plus(usage, self.prices)
        self.change(tokens=spent.tokens, cost_usd=spent.cost_usd)

    def warn(self, *codes: WarningCode) -> None:
        """Note what did not go as it should, each once."""
        self.change(warnings=tuple(dict.fromkeys((*self.state.warnings, *codes))))

    def add(self, hits: Iterable[Hit], records: Iterable[DocumentRecord]) -> None:
        """Note what was found."""
        found = {hit.block_id: hit for hit in (*self.state.hits, *hits)}
        known = {record.doc_id: record for record in (*self.state.records, *records)}
        self.change(hits=tuple(found.values())[:_MAX_HITS], records=tuple(known.values())[:_MAX_HITS])

    def change(self, **values: object) -> None:
        """Replace fields of the state."""
        self.state = self.state.model_copy(update=values)

    async def keep(self) -> None:
        """Store the state as it is. StaleAttemptError: another attempt at this turn was quicker."""
        await self.store.put_state(self.state)

    async def keep_both(self) -> None:
        """The same, and the transcript after it: both are of one attempt."""
        await self.keep()
        await self.store.put_transcript(self.transcript)
