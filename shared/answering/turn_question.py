"""What a turn begins with: the question with what was found for it, and the turns before it.

A call that the loop carries out, a question to the person or work for sub-agents, ends its turn. The next
turn begins with its result. One is carried out per turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from shared.answering.models import HeldResult, Turn, TurnResults
from shared.answering.results import Collected, collect
from shared.answering.step_context import StepContext
from shared.answering.steps import TakeTurn
from shared.answering.web_consent import await_consent, is_granted
from shared.evidence.messages import Messages, messages_in
from shared.evidence.reader_text import readable_line
from shared.retrieval.models import ReadableDocuments
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Choice, ClarificationOption, RunRequest
from shared.tools.ask_user import AskUser, AskUserParameters
from shared.tools.delegate import Delegate, DelegateParameters
from shared.tools.tool_calls import PlannedCall, RefusedCall, observation

_HELD: dict[str, type[AskUserParameters | DelegateParameters]] = {
    AskUser.name: AskUserParameters,
    Delegate.name: DelegateParameters,
}
_MAX_RESULT_CHARS = 4000
_NOBODY_ANSWERED = "Nobody answered in time. State what you assume, and go on."

HeldArguments = AskUserParameters | DelegateParameters


async def collected_once(context: StepContext, step: int, evidence: Evidence) -> Collected:
    """Return the results of a step's sub-agents, the same for all turns. They are collected once."""
    kept = await context.journal.find(step, Collected, "collected")
    if kept is not None:
        return kept
    collected = await collect(context.journal, step, evidence, context.services)
    return await context.keep(collected, "collected", of=step)


@dataclass
class Before:
    """The turns before this one.

    Attributes:
        results: what their calls brought; of the last one maybe nothing yet.
        asking_step: of the turn that asked the person what they mean; 0 = none did.
        choice: what they answered.
        consent_step: of the turn that asked whether the web may be used; 0 = none did.
        web_allowed: their answer; None = they were not asked, or have not answered.
        collected: what the sub-agents of a turn brought, by the turn's position in `turns`.
    """

    turns: list[Turn]
    results: list[TurnResults]
    asking_step: int = 0
    choice: Choice = field(default_factory=Choice)
    consent_step: int = 0
    web_allowed: bool | None = None
    collected: dict[int, Collected] = field(default_factory=dict)

    @classmethod
    async def read(cls, context: StepContext, action: TakeTurn) -> "Before":
        """Load the turns before a step, with their results, from the journal."""
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
            [found for found in results if found is not None],
            next((step for step, turn in numbered if question_of(turn)), 0),
            consent_step=next((step for step, turn in numbered if turn.asks_consent), 0),
            collected={position: one for position, one in brought.items() if one is not None},
        )

    def withdraw_unreadable(self, documents: ReadableDocuments) -> None:
        """Replace the results of turns that found anything that the asker can't read any more."""
        for position, found in enumerate(self.results):
            collected = self.collected.get(position)
            brought = collected is None or collected.only_readable(documents) is collected
            if not (brought and found.is_readable(documents)):
                self.results[position] = found.withdrawn

    @property
    def asked_steps(self) -> tuple[int, ...]:
        """Steps of the turns that asked the person anything, in order."""
        return tuple(sorted(step for step in (self.asking_step, self.consent_step) if step))

    def note_answer(self, step: int, choice: Choice) -> None:
        """Note what the person answered to the question of a step."""
        if step == self.consent_step:
            self.web_allowed = is_granted(choice)
        else:
            self.choice = choice


@dataclass
class TurnQuestion:
    """What is answered, and from what.

    Attributes:
        collected: what was found before the first turn, by sub-agents, too.
        tools: names of those that the model may call.
        web_consent: whether the web may be used; None = the person has to be asked first.
    """

    request: RunRequest
    stored: StoredPlan
    collected: Collected
    tools: tuple[str, ...]
    before: Before
    web_consent: bool | None = None

    def join(self, more: Collected) -> None:
        """Sub-agents that a turn set to work count with those before the first; the first prompt stays."""
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
        """In words that stand alone."""
        return self.stored.plan.standalone_question or self.request.question

    @property
    def shown(self) -> Evidence:
        """What the model was shown, as far as it was looked up, each block once."""
        own, results = self.collected.evidence, self.before.results
        hits = {hit.block_id: hit for found in results for hit in found.hits}
        hits = {hit.block_id: hit for hit in own.hits} | hits
        records = {record.doc_id: record for found in results for record in found.records}
        records = {record.doc_id: record for record in own.records} | records
        return own.model_copy(update={"hits": tuple(hits.values()), "records": tuple(records.values())})

    @property
    def words(self) -> Messages:
        """Our own, in the answer's language."""
        words = messages_in(self.stored.plan.language)
        return words.without_search if self.collected.evidence.unfinished and self.is_empty else words

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        evidence = self.collected.evidence
        return not (evidence.blocks or evidence.records or evidence.tables or self.collected.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What did not go as it should, in words, each once."""
        told = (*self.stored.warnings, *self.collected.evidence.warnings, *self.collected.warnings)
        return tuple(dict.fromkeys(told))

    async def join_earlier(self, context: StepContext) -> None:
        """Add the evidence of earlier turns' sub-agents; leave out what the asker can't read any more.

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


def with_one_held(planned: Sequence[PlannedCall], *, may_ask: bool) -> tuple[PlannedCall, ...]:
    """The calls of a turn, those refused for which the loop would have to stop again.

    Args:
        may_ask: False once the person was asked: an answer asks back once.
    """
    held = [call for call in planned if _arguments(call) is not None]
    first = next((call for call in held if may_ask or call.call.name != AskUser.name), None)
    return tuple(_refused(call) if call in held and call is not first else call for call in planned)


def awaiting_consent(
    calls: Sequence[PlannedCall], consent: bool | None
) -> tuple[tuple[PlannedCall, ...], bool]:
    """Return the calls of a turn, and whether they wait until the person has allowed the web."""
    return await_consent(calls, [call for call in calls if _arguments(call) is not None], consent)


def held_call(turn: Turn) -> tuple[PlannedCall, HeldArguments] | None:
    """The call that the loop carries out before the next turn, with its arguments."""
    return next(((call, said) for call in turn.calls if (said := _arguments(call)) is not None), None)


def question_of(turn: Turn) -> AskUserParameters | None:
    """What a turn asks the person; None if it asks nothing."""
    held = held_call(turn)
    return held[1] if held and isinstance(held[1], AskUserParameters) else None


def delegation_of(turn: Turn) -> DelegateParameters | None:
    """What a turn hands to sub-agents; None if it hands on nothing."""
    held = held_call(turn)
    return held[1] if held and isinstance(held[1], DelegateParameters) else None


def options_of_question(asked: AskUserParameters) -> tuple[ClarificationOption, ...]:
    """The answers that a model offers, numbered from 1."""
    options = dict.fromkeys(filter(None, map(readable_line, asked.options)))
    return tuple(ClarificationOption(number=n, title=option) for n, option in enumerate(options, start=1))


def answer_result(asked: AskUserParameters, choice: Choice) -> HeldResult:
    """The result of `ask_user`: the person's words, and the options that they mean."""
    chosen = [option.title for option in options_of_question(asked) if option.number in choice.numbers]
    answered = {"success": True, "answer": choice.said, "chosen": chosen}
    silent = {"success": True, "answer": None, "note": _NOBODY_ANSWERED}
    return HeldResult(text=observation(answered if choice.said else silent, _MAX_RESULT_CHARS))


def _arguments(planned: PlannedCall) -> HeldArguments | None:
    """Those of a call that the loop carries out. One whose arguments are wrong is answered as any other."""
    kind = _HELD.get(planned.call.name)
    if kind is None or planned.arguments is None:
        return None
    try:
        return kind.model_validate(planned.arguments)
    except ValidationError:
        return None


def _refused(planned: PlannedCall) -> PlannedCall:
    refusal = RefusedCall(
        error="The user can be asked once."
        if planned.call.name == AskUser.name
        else "One delegation, or question to the user, is carried out per turn.",
        error_type="BudgetExceededError",
        hints=("State what you assume, and go on.",)
        if planned.call.name == AskUser.name
        else ("Call it alone, in the next turn.",),
    )
    return PlannedCall(call=planned.call, refused=refusal)
