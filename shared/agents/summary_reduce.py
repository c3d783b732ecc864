"""The reduce of a summary: many findings -> those that matter -> a narrative over them.

More findings than a model reads at once are halved group by group until they fit. When the model fails, the
findings stand as they are: a summary without a narrative is better than none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.agents.summary_model import SummaryModel
from shared.core.summary_findings import clean_tags, own_statements, places, statements_of
from shared.core.summary_windows import split, tokens_of
from shared.errors import DependencyError, ModelFixableError
from shared.models.summaries import Finding, Statement
from shared.retrieval.together import together
from shared.telemetry import get_logger

_UNMERGED = 12  # findings that are shown when no model put them together


@dataclass(frozen=True)
class Reduced:
    """What is left. `error_type` tells why the model did not do all of it; None when it did."""

    findings: tuple[Finding, ...]
    statements: tuple[Statement, ...]
    key_places: tuple[int, ...]
    tags: tuple[str, ...]
    error_type: str | None = None


async def reduce_findings(
    findings: Sequence[Finding], tags: Sequence[str], model: SummaryModel, *, most_tokens: int, most_key: int
) -> Reduced:
    """Never raises for a model that fails.

    Args:
        most_tokens: of findings that are given to the model at once.
        most_key: key findings at most.
    """
    if not findings:
        return Reduced((), (), (), tuple(tags))
    left = list(findings)
    try:
        left = await _narrowed(left, model, most_tokens)
        merged = await model.merge(left, tags)
    except (DependencyError, ModelFixableError) as failed:
        get_logger().warning("summary.reduce_failed", error_type=failed.code, result_count=len(left))
        return _as_they_are(left, tags, min(most_key, _UNMERGED), failed.code)
    statements = statements_of(merged.statements, len(left))
    if not any(statement.findings for statement in statements):
        return _as_they_are(left, tags, min(most_key, _UNMERGED), ModelFixableError.code)
    cited = dict.fromkeys(place for statement in statements for place in statement.findings)
    key_places = places(merged.key_findings, len(left)) or tuple(cited)
    return Reduced(tuple(left), statements, key_places[:most_key], clean_tags(merged.tags) or tuple(tags))


async def _narrowed(findings: list[Finding], model: SummaryModel, most_tokens: int) -> list[Finding]:
    while len(groups := split([tokens_of(finding.text) for finding in findings], most_tokens)) > 1:
        chosen = await together(_kept(findings[group.start : group.stop], model) for group in groups)
        fewer = [finding for kept in chosen for finding in kept]
        if len(fewer) == len(findings):
            return findings[:_UNMERGED]  # groups of a few huge findings: nothing can be left out by halving
        findings = fewer
    return findings


async def _kept(group: Sequence[Finding], model: SummaryModel) -> list[Finding]:
    if len(group) == 1:
        return list(group)
    return [group[place] for place in await model.choose(group, (len(group) + 1) // 2)]


def _as_they_are(findings: Sequence[Finding], tags: Sequence[str], most: int, error_type: str) -> Reduced:
    # From everywhere, not from the beginning alone.
    step = max(1, -(-len(findings) // most))
    shown = tuple(findings[::step])
    return Reduced(shown, own_statements(shown), tuple(range(len(shown))), tuple(tags), error_type)
