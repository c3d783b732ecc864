"""Model calls of a summary: read a window, select findings, and write the narrative.

More findings than fit into one call are halved group by group until they fit. If the model fails, the
findings are shown without a narrative.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from shared.answering.summary_findings import (
    clean_tags,
    numbered_passages,
    places,
    statements_of,
    statements_without_model,
)
from shared.answering.summary_models import (
    Finding,
    FindingChoice,
    MergedSummary,
    WindowSummary,
)
from shared.answering.summary_result import Narrative
from shared.evidence.document_prompt import documents_with_blocks
from shared.platform.concurrency import run_together
from shared.platform.errors import BudgetExceededError, CallTimeoutError, DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt, StructuredOutput
from shared.platform.language_models.repair import parse_or_repair
from shared.platform.prompts import element, load
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger
from shared.platform.tokens import tokens_of
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.models import SummaryOrder

# Minimum time for a model call. Not measured.
_LEAST_S = 1.0
# Maximum number of findings in a summary without a narrative, after the model failed.
_MAX_SAMPLE = 12
PromptName = Literal["summarise_window", "summarise_choice", "summarise_merge"]


class SummaryModel:
    """The prompts and call limits of one summary, with the model that answers them.

    Every method raises `DependencyError`, `ModelFixableError`, or `BudgetExceededError` if too few tokens
    remain.
    """

    def __init__(
        self, chat_model: ChatModel, order: SummaryOrder, settings: Settings, until: datetime
    ) -> None:
        """Configure the model for one summary. No call continues after `until`, a time with zone."""
        self._chat_model = chat_model
        self._order = order
        self._settings = settings
        self._until = until

    async def read(self, hits: Sequence[Hit], records: Mapping[str, DocumentRecord]) -> WindowSummary:
        """Have the model read one window, and return its findings, metrics and tags."""
        return await self._ask("summarise_window", documents_with_blocks(hits, records), WindowSummary)

    async def choose(self, findings: Sequence[Finding], most: int) -> tuple[int, ...]:
        """Have the model select the most important findings, at most `most`. Return their indexes in
        ascending order.
        """
        limit = element("most", str(most))
        answer = await self._ask("summarise_choice", f"{limit}\n{numbered_passages(findings)}", FindingChoice)
        chosen = places(answer.numbers, len(findings))[:most]
        if not chosen:
            raise ModelFixableError("The model selected no findings.")
        return tuple(sorted(chosen))

    async def merge(self, findings: Sequence[Finding], tags: Sequence[str]) -> MergedSummary:
        """Have the model write a narrative over the findings, with key findings and tags."""
        tag_element = element("tags", ", ".join(tags))
        return await self._ask(
            "summarise_merge", f"{tag_element}\n{numbered_passages(findings)}", MergedSummary
        )

    async def _ask(self, name: PromptName, material: str, output: type[StructuredOutput]) -> StructuredOutput:
        parts = [element("focus", self._order.focus)] if self._order.focus else []
        if self._order.language:
            parts.append(element("language", self._order.language))
        prompt = Prompt(name=name, system=load("answering", name), user="\n".join((*parts, material)))
        value, _ = await parse_or_repair(self._chat_model, prompt, output, self._limits)
        return value

    def _limits(self) -> CallLimits:
        left_s = (self._until - datetime.now(UTC)).total_seconds()
        if left_s < _LEAST_S:
            raise CallTimeoutError("Not enough time left for a model call.", "Summarise fewer documents.")
        return CallLimits(
            timeout_s=min(left_s, self._settings.summaries.call_timeout_s),
            max_output_tokens=self._settings.summaries.output_tokens,
        )


async def reduce_findings(
    findings: Sequence[Finding], tags: Sequence[str], model: SummaryModel, *, most_tokens: int, most_key: int
) -> Narrative:
    """Have the model select as many findings as fit into one call, and write a narrative over them. If the
    model fails, return a sample of the findings as statements.

    Args:
        most_tokens: maximum tokens of findings per call.
        most_key: maximum number of key findings.
    """
    if not findings:
        return Narrative((), (), (), tuple(tags))
    left = list(findings)
    try:
        left = await _fewer_findings(left, model, most_tokens)
        output = await model.merge(left, tags)
    except (DependencyError, ModelFixableError, BudgetExceededError) as failed:
        get_logger().warning("summary.reduce_failed", error_type=failed.code, result_count=len(left))
        return _without_narrative(left, tags, most_key, failed.code)
    statements = statements_of(output.statements, len(left))
    if not any(statement.findings for statement in statements):
        return _without_narrative(left, tags, most_key, ModelFixableError.code)
    cited = dict.fromkeys(place for statement in statements for place in statement.findings)
    key_places = places(output.key_findings, len(left)) or tuple(cited)
    return Narrative(tuple(left), statements, key_places[:most_key], clean_tags(output.tags) or tuple(tags))


def split(sizes: Sequence[int], most: int) -> list[range]:
    """Group consecutive items so that each group has at most `most` tokens, and return the index ranges. A
    larger item forms a group by itself.
    """
    pieces: list[range] = []
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and total + size > most:
            pieces.append(range(start, place))
            start, total = place, 0
        total += size
    if sizes:
        pieces.append(range(start, len(sizes)))
    return pieces


async def _fewer_findings(findings: list[Finding], model: SummaryModel, most_tokens: int) -> list[Finding]:
    """Have the model halve the findings, group by group, until they fit into `most_tokens`."""
    while len(groups := split([tokens_of(finding.text) for finding in findings], most_tokens)) > 1:
        chosen = await run_together(
            *(_better_half(findings[group.start : group.stop], model) for group in groups)
        )
        fewer = [finding for selection in chosen for finding in selection]
        if len(fewer) == len(findings):
            return findings[:_MAX_SAMPLE]  # every group is a single huge finding, which can't be halved
        findings = fewer
    return findings


async def _better_half(group: Sequence[Finding], model: SummaryModel) -> list[Finding]:
    """Have the model select the more important half of a group of findings."""
    if len(group) == 1:
        return list(group)
    return [group[place] for place in await model.choose(group, (len(group) + 1) // 2)]


def _without_narrative(
    findings: Sequence[Finding], tags: Sequence[str], most_key: int, error_type: str
) -> Narrative:
    """Return a narrative that consists of sample findings, taken at even intervals from the whole
    document.
    """
    step = max(1, -(-len(findings) // min(most_key, _MAX_SAMPLE)))
    sample = tuple(findings[::step])
    return Narrative(
        sample, statements_without_model(sample), tuple(range(len(sample))), tuple(tags), error_type
    )
