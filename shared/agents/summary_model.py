"""What a summary asks the model: three prompts, each call within its own limit and the summary's deadline."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from shared.agents.prompt_files import load
from shared.core.prompts import documents_with_blocks, element
from shared.core.summary_findings import numbered, places
from shared.errors import CallTimeoutError, ModelFixableError
from shared.models.documents import DocumentRecord
from shared.models.prompts import CallLimits, Prompt
from shared.models.search import Hit
from shared.models.summaries import Finding, SummaryRequest
from shared.models.summary_outputs import FindingChoice, MergedSummary, WindowSummary
from shared.ports import ChatModel, StructuredOutput
from shared.settings import Settings

_TRIES = 2  # of an answer that does not fit its schema; what a service refuses is retried below
_LEAST_S = 1.0  # less time is not worth a call

PromptName = Literal["summarise_window", "summarise_choice", "summarise_merge"]


class SummaryModel:
    """The model, bound to one summary. Every method raises DependencyError or ModelFixableError."""

    def __init__(
        self, chat_model: ChatModel, request: SummaryRequest, settings: Settings, until: datetime
    ) -> None:
        """`until`: no call goes on after it."""
        self._chat_model = chat_model
        self._order = request.order
        self._settings = settings
        self._until = until

    async def read(self, hits: Sequence[Hit], records: Mapping[str, DocumentRecord]) -> WindowSummary:
        """Findings, metrics and tags of one window."""
        return await self._ask("summarise_window", documents_with_blocks(hits, records), WindowSummary)

    async def choose(self, findings: Sequence[Finding], most: int) -> tuple[int, ...]:
        """Places of the findings that matter most, at most `most`, in their own order."""
        wanted = element("most", str(most))
        answer = await self._ask("summarise_choice", f"{wanted}\n{numbered(findings)}", FindingChoice)
        chosen = places(answer.numbers, len(findings))[:most]
        if not chosen:
            raise ModelFixableError("The model chose none of the findings.")
        return tuple(sorted(chosen))

    async def merge(self, findings: Sequence[Finding], tags: Sequence[str]) -> MergedSummary:
        """The narrative over the findings."""
        known = element("tags", ", ".join(tags))
        return await self._ask("summarise_merge", f"{known}\n{numbered(findings)}", MergedSummary)

    async def _ask(self, name: PromptName, material: str, output: type[StructuredOutput]) -> StructuredOutput:
        asked = [element("focus", self._order.focus)] if self._order.focus else []
        if self._order.language:
            asked.append(element("language", self._order.language))
        prompt = Prompt(name=name, system=load(name), user="\n".join((*asked, material)))
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._chat_model.parse(prompt, output, self._limits())
            except ModelFixableError:
                if attempt == _TRIES:
                    raise
        raise AssertionError("the last try raises or returns")

    def _limits(self) -> CallLimits:
        left_s = (self._until - datetime.now(UTC)).total_seconds()
        if left_s < _LEAST_S:
            raise CallTimeoutError("No time is left for a call of the model.", "Raise SUMMARY_TIMEOUT_S.")
        return CallLimits(
            timeout_s=min(left_s, self._settings.summary_call_timeout_s),
            max_output_tokens=self._settings.summary_output_tokens,
        )
