"""Report on the responses, as JSON and as text. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evals.fuzz.scenarios import Told
from evals.fuzz.sending import Seen

# Maximum number of complaints listed in the report. All of them are counted.
_TOLD = 100


def report(seen: Sequence[Seen], unknown: Sequence[Seen], scenarios: Told | None = None) -> dict[str, Any]:
    """Return the report: totals, counts for each operation, and the first responses with complaints.

    `unknown` are requests without an identity, `scenarios` the call sequences, whose failures count equally.
    """
    everything = (*seen, *unknown, *(scenarios.seen if scenarios else ()))
    complained = [one for one in everything if one.complaints]
    return {
        "cases": len(seen),
        "valid_cases": sum(one.is_valid for one in seen),
        "without_identity": len(unknown),
        "server_errors": sum(_is_server_error(one) for one in everything),
        "mismatches": sum(not _is_server_error(one) for one in complained),
        "no_answer": sum(one.status is None for one in everything),
        "statuses": _statuses(seen),
        "stateful": scenarios.body if scenarios else Told().body,
        "calls": {name: _of_call([one for one in seen if one.name == name]) for name in _names(seen)},
        "complaints": [vars(one) for one in complained[:_TOLD]],
    }


def is_clean(results: dict[str, Any]) -> bool:
    """Return whether there was no server error and every response matched the API description."""
    return bool(results["cases"]) and not results["server_errors"] and not results["mismatches"]


def as_text(data: dict[str, Any]) -> str:
    """Format the report as text."""
    lines = [
        f"{data['cases']} requests ({data['valid_cases']} valid), {data['without_identity']} without "
        f"identity: {data['server_errors']} server errors, {data['mismatches']} mismatched responses"
    ]
    stateful = data["stateful"]
    lines[0] += (
        f"; {stateful['scenarios']} scenarios of {stateful['calls']} calls, {stateful['followed_links']} by "
        f"links, {stateful['foreign_tries']} tried by another user"
    )
    lines += [f"  {status}: {count}" for status, count in data["statuses"].items()]
    for one in data["complaints"][:20]:
        lines += [f"- {one['name']} {one['status']} as {one['user']}: {one['sent']}"]
        lines += [f"    {complaint}" for complaint in one["complaints"]]
    return "\n".join(lines)


def _is_server_error(one: Seen) -> bool:
    """Return whether a response is an unexpected server error. The readiness probe may return 503 in normal
    operation.
    """
    return one.status is not None and one.status >= 500


def _names(seen: Sequence[Seen]) -> list[str]:
    return sorted({one.name for one in seen})


def _statuses(seen: Sequence[Seen]) -> dict[str, int]:
    return dict(sorted(Counter(str(one.status) for one in seen).items()))


def _of_call(seen: Sequence[Seen]) -> dict[str, Any]:
    return {
        "cases": len(seen),
        "statuses": _statuses(seen),
        "complained": sum(bool(one.complaints) for one in seen),
    }
