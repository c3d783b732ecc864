"""One second chance for a quotation that does not stand in its block."""

from collections.abc import Callable
from dataclasses import dataclass

from shared.agents.prompt_files import load
from shared.core.prompts import element
from shared.errors import BudgetExceededError, DependencyError, ModelFixableError
from shared.models.citations import QuoteRepair
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel

_MAX_REPAIRS = 3  # per answer: a model that misquotes more often will not be mended by asking


@dataclass
class QuoteRepairer:
    """Asks the model for a verbatim quotation that proves a claim. Never raises for a model's failure, nor
    when no tokens are left to ask: the claim is marked then.

    Attributes:
        documents_xml: the `<documents>` that the answer was written from.
        limits: of a repair that begins now; None = there is no time for one.
        question: what the answer is to; a table cell's claim is hard to read without it.
    """

    chat_model: ChatModel
    documents_xml: str
    limits: Callable[[], CallLimits | None]
    question: str = ""
    repairs: int = 0

    @property
    def may_try(self) -> bool:
        """Whether a repair is left."""
        return self.repairs < _MAX_REPAIRS

    async def repair(self, claim: str, wrong_quote: str) -> str | None:
        """Other words to prove `claim`, still to be checked; None when there are none or no try is left."""
        limits = self.limits() if self.may_try else None
        if limits is None:
            return None
        self.repairs += 1
        question = [element("question", self.question)] if self.question else []
        asked = (*question, element("claim", claim), element("wrong_quote", wrong_quote), self.documents_xml)
        prompt = Prompt(name="repair", system=load("repair"), user="\n".join(asked))
        try:
            return (await self.chat_model.parse(prompt, QuoteRepair, limits)).quote
        except (DependencyError, ModelFixableError, BudgetExceededError):
            return None
