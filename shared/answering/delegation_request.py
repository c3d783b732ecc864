"""Input of a delegation decision."""

from dataclasses import dataclass
from datetime import datetime

from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunRequest
from shared.tools.delegate import DelegateParameters


@dataclass(frozen=True)
class DelegationRequest:
    """A question, or a task of the model, and the evidence before the answer is written.

    Attributes:
        series: further documents of the series found as evidence for a comparison.
        step: the step that writes the answer, or delegates first.
        tokens: tokens used by the run, including earlier sub-agents; 0 = not counted.
        began: start of the run's time if postponed by a wait or a crash; None = when the question arrived.
        call: the model's call of `delegate` to decide on; None = the question itself.
        document_tokens: total size of the documents to summarise or compare.
        web_allowed: the user, or the operator on their behalf, consented to use the web.
    """

    request: RunRequest
    stored: StoredPlan
    evidence: Evidence
    series: tuple[str, ...] = ()
    step: int = 0
    tokens: int = 0
    began: datetime | None = None
    call: DelegateParameters | None = None
    document_tokens: int = 0
    web_allowed: bool = False

    @property
    def question(self) -> str:
        """The question to delegate. It can be understood without the conversation."""
        return self.call.task if self.call else self.stored.plan.standalone_question or self.request.question
