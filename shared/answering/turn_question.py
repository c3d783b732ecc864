"""Input of a turn of the main agent: the question, its evidence and the earlier turns."""

from dataclasses import dataclass, field

from shared.answering.delegation_results import Collected, collect
from shared.answering.models import Turn, TurnResults
from shared.answering.script_calls import delegation_of, question_of
from shared.answering.step_context import StepContext
from shared.answering.steps import TakeTurn
from shared.answering.web_consent import is_granted
from shared.evidence.messages import Messages, messages_in
from shared.retrieval.models import ReadableDocuments
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Choice, RunRequest


async def collected_once(context: StepContext, step: int, evidence: Evidence) -> Collected:
    """Return the merged results of the sub-agents that a step started. They are stored, so that all turns use
    the same results.
    """
    stored = await context.journal.find(step, Collected, "collected")
    if stored is not None:
        return stored
    collected = await collect(context.journal, step, evidence, context.services)
    return await context.keep(collected, "collected", of=step)


@dataclass
class EarlierTurns:
    """The earlier turns of the run, with the results of their calls and the user's replies.

    Attributes:
        results: results of their calls; may be missing for the last turn.
        asking_step: step of the turn that asked for clarification; 0 = none did.
        choice: the user's reply.
        consent_step: step of the turn that asked for consent to use the web; 0 = none did.
        web_allowed: the user's decision; None = not asked, or no reply yet.
        collected: results of each turn's sub-agents, by the turn's position in `turns`.
    """

    turns: list[Turn]
    results: list[TurnResults]
    asking_step: int = 0
    choice: Choice = field(default_factory=Choice)
    consent_step: int = 0
    web_allowed: bool | None = None
    collected: dict[int, Collected] = field(default_factory=dict)

    @classmethod
    async def read(cls, context: StepContext, action: TakeTurn) -> "EarlierTurns":
        """Load the earlier turns and their results from the journal. Replies of the user are added later by
        `note_answer`.
        """
        journal = context.journal
        turns = [await journal.get(step, Turn, "turn") for step in action.earlier]
        results = [await journal.find(step, TurnResults, "results") for step in action.earlier]
        numbered = list(zip(action.earlier, turns, strict=True))
        brought = {
            position: await journal.find(step, Collected, "collected")
            for position, (step, turn) in enumerate(numbered)
            if delegation_of(turn)
        }
        return cls(
            turns,
            [turn_results for turn_results in results if turn_results is not None],
            next((step for step, turn in numbered if question_of(turn)), 0),
            consent_step=next((step for step, turn in numbered if turn.asks_consent), 0),
            collected={position: one for position, one in brought.items() if one is not None},
        )

    def withdraw_unreadable(self, documents: ReadableDocuments) -> None:
        """Replace the results of every turn that contain anything which the user can no longer read."""
        for position, turn_results in enumerate(self.results):
            collected = self.collected.get(position)
            brought = collected is None or collected.only_readable(documents) is collected
            if not (brought and turn_results.is_readable(documents)):
                self.results[position] = turn_results.withdrawn

    @property
    def asked_steps(self) -> tuple[int, ...]:
        """Step numbers of the turns that asked the user a question, in ascending order."""
        return tuple(sorted(step for step in (self.asking_step, self.consent_step) if step))

    def note_answer(self, step: int, choice: Choice) -> None:
        """Record the user's reply to the question asked in a step: an answer, or consent to use the web."""
        if step == self.consent_step:
            self.web_allowed = is_granted(choice)
        else:
            self.choice = choice


@dataclass
class TurnQuestion:
    """The question to answer, its evidence, and the tools that the model may call.

    Attributes:
        collected: evidence found before the first turn, including the sub-agents' evidence.
        tools: names of the tools that the model may call.
        web_consent: whether the web may be used; None = the user has to be asked first.
    """

    request: RunRequest
    stored: StoredPlan
    collected: Collected
    tools: tuple[str, ...]
    before: EarlierTurns
    web_consent: bool | None = None

    def join(self, more: Collected) -> None:
        """Add the results of sub-agents that a turn started. The evidence of the first prompt stays
        unchanged.
        """
        own = self.collected
        joined = {
            "proofs": (*own.proofs, *more.proofs),
            "views": (*own.views, *more.views),
            "warnings": (*own.warnings, *more.warnings),
            "web": "\n\n".join(filter(None, (own.web, more.web))),
        }
        self.collected = own.model_copy(update=joined)

    @property
    def text(self) -> str:
        """The question as a text that can be understood without the conversation."""
        return self.stored.plan.standalone_question or self.request.question

    @property
    def shown(self) -> Evidence:
        """All evidence that the model has seen so far, from the first search and from tool calls, without
        duplicate blocks.
        """
        own, results = self.collected.evidence, self.before.results
        hits = {hit.block_id: hit for turn_results in results for hit in turn_results.hits}
        hits = {hit.block_id: hit for hit in own.hits} | hits
        records = {record.doc_id: record for turn_results in results for record in turn_results.records}
        records = {record.doc_id: record for record in own.records} | records
        return own.model_copy(update={"hits": tuple(hits.values()), "records": tuple(records.values())})

    @property
    def words(self) -> Messages:
        """The app's fixed sentences in the language of the answer."""
        words = messages_in(self.stored.plan.language)
        return words.without_search if self.collected.evidence.unfinished and self.is_empty else words

    @property
    def is_empty(self) -> bool:
        """Whether there is no evidence at all from before the first turn."""
        evidence = self.collected.evidence
        return not (evidence.blocks or evidence.records or evidence.tables or self.collected.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user about plan, evidence and sub-agents, without duplicates."""
        texts = (*self.stored.warnings, *self.collected.evidence.warnings, *self.collected.warnings)
        return tuple(dict.fromkeys(texts))

    async def join_earlier(self, context: StepContext) -> None:
        """Add the results of the sub-agents of earlier turns, then remove everything that the user may no
        longer read.

        Raises:
            DependencyError: the table storage failed.
        """
        before = self.before
        for more in before.collected.values():
            self.join(more)
        doc_ids = self.collected.doc_ids.union(
            *(found.doc_ids for found in before.results),
            *(collected.doc_ids for collected in before.collected.values()),
        )
        documents = await context.searches.readable(doc_ids, self.request)
        before.withdraw_unreadable(documents)
        self.collected = self.collected.only_readable(documents)
