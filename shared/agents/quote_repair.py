"""One second chance for a quotation that does not stand in its block."""

from dataclasses import dataclass

from shared.agents.prompt_files import load
from shared.core.prompts import element
from shared.errors import DependencyError, ModelFixableError
from shared.models.citations import QuoteRepair
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel

_MAX_REPAIRS = 3  # per answer: a model that misquotes more often will not be mended by asking


@dataclass
class QuoteRepairer:
    """Asks the model for a verbatim quotation that proves a claim. Never raises for a model's failure.

    Attributes:
        documents_xml: the `<documents>` that the answer was written from.
    """

    chat_model: ChatModel
    documents_xml: str
    limits: CallLimits
    repairs: int = 0

    async def repair(self, claim: str, wrong_quote: str) -> str | None:
        """Other words to prove `claim`, still to be checked; None when there are none or no try is left."""
        if self.repairs >= _MAX_REPAIRS:
            return None
        self.repairs += 1
        user = "\n".join((element("claim", claim), element("wrong_quote", wrong_quote), self.documents_xml))
        prompt = Prompt(name="repair", system=load("repair"), user=user)
        try:
            return (await self.chat_model.parse(prompt, QuoteRepair, self.limits)).quote
        except (DependencyError, ModelFixableError):
            return None
