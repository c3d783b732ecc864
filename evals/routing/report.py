"""The report of `make eval-routing`: JSON for programs, tables for people. Pure: values to text.

Questions of the held-out half that went wrong are counted, and never shown.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from evals.evaluation.report import Origin, table
from evals.routing.asking import Clarified, Routed
from evals.routing.measures import clarification_measures, confusion, routing_measures


def as_json(routed: Sequence[Routed], clarified: Sequence[Clarified], origin: Origin) -> str:
    """`{"sets": {"routing": {measure: number}, "clarification": {…}}, "model", "commit"}`, as `make eval`."""
    sets = {"routing": routing_measures(routed), "clarification": clarification_measures(clarified)}
    return json.dumps({"sets": sets, **asdict(origin)}, indent=1) + "\n"


def as_markdown(routed: Sequence[Routed], clarified: Sequence[Clarified], origin: Origin) -> str:
    """The readable report; docs/internals/measuring.md says what each measure means."""
    types = confusion((one.question.query_type, one.query_type) for one in routed)
    intents = confusion((one.question.intent, one.intent) for one in routed)
    return "\n".join(
        [
            f"# Routing and questions back\n\nModel: {origin.model}\n\nCommit: {origin.commit}\n",
            table("routing", {"value": routing_measures(routed)}),
            _confusion_table("type", types),
            _confusion_table("intent", intents),
            table("questions back", {"value": clarification_measures(clarified)}),
            "## Wrong in the half that rules are improved by\n",
            *(_routed_line(one) for one in routed if one.question.half == "dev" and not one.is_right),
            *(_clarified_line(one) for one in clarified if one.question.half == "dev" and not one.is_right),
            "",
        ]
    )


def _confusion_table(corner: str, counts: Mapping[str, Counter[str]]) -> str:
    """A row for each label, a column for what it was taken for."""
    taken = sorted({name for row in counts.values() for name in row})
    lines = [f"| {corner}, taken for → | {' | '.join(taken)} |", f"|---|{'---:|' * len(taken)}"]
    lines += [
        f"| {label} | {' | '.join(str(counts[label][name] or '') for name in taken)} |"
        for label in sorted(counts)
    ]
    return "\n".join(lines) + "\n"


def _routed_line(one: Routed) -> str:
    wanted = f"{one.question.query_type}, {one.question.intent}"
    came = one.error or f"{one.query_type}, {one.intent}"
    return f"- {one.question.query_id}: “{one.question.text}” is {wanted}; taken for {came}"


def _clarified_line(one: Clarified) -> str:
    wanted = "ambiguous" if one.question.ambiguous else "clear"
    came = one.error or ("asked back" if one.asked else "not asked back")
    return f"- {one.question.query_id}: “{one.question.text}” is {wanted}; {came}"
