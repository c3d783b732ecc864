"""Asks a model to repair quotations that no document contains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shared.evidence.citations import CitationBook
from shared.evidence.repairs import FailedQuotation, RepairedQuotations, repair_input
from shared.platform.errors import BudgetExceededError, DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load

# Output tokens per quotation, enough for a long sentence in JSON.
_REPAIR_TOKENS = 150
# Maximum output tokens of a reply, enough for ten quotations.
_MOST_REPAIR_TOKENS = 1500


@dataclass(frozen=True)
class QuoteRepairer:
    """Repairer that has a model find verbatim quotations for claims.

    Attributes:
        limits: returns the limits of a repair that begins now, or None if there is no time for one.
        question: the question that the claims answer. A table cell is hard to read without it.
    """

    chat_model: ChatModel
    limits: Callable[[], CallLimits | None]
    question: str = ""

    async def repair(self, failed: Sequence[FailedQuotation], book: CitationBook) -> Mapping[int, str]:
        """Return replacement quotations by the number of the claim. They still have to be checked.

        Returns none if the model fails or its budget is used up: the claims are then marked as unproved.
        """
        limits, claims = self.limits(), repair_input(failed, book.hits, book.records)
        if limits is None or claims is None:
            return {}
        question = f"{element('question', self.question)}\n" if self.question else ""
        prompt = Prompt(name="repair", system=load("answering", "repair"), user=question + claims)
        most = min(_REPAIR_TOKENS * (len(failed) + 1), _MOST_REPAIR_TOKENS)
        limits = limits.model_copy(update={"max_output_tokens": most})
        try:
            repaired = await self.chat_model.parse(prompt, RepairedQuotations, limits)
        except (DependencyError, ModelFixableError, BudgetExceededError):
            return {}
        return {repair.number: repair.quote for repair in repaired.quotations if repair.quote}
