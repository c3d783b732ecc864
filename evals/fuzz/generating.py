"""Requests from the description of the API: which, how many of each, in which order. The seed decides all."""

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

# They start orchestrations, keep their connection, or look at everything: each gets a fifth of a share.
SLOW = frozenset(
    {
        "chat",
        "create_summary",
        "upload_document",
        "document_events",
        "get_run_events",
        "get_audit",
        "reconcile_now",
    }
)
AnyCase = Case[Any]
_WHOLE, _PART = 5, 1
_MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        number: its place; the user who sends it, and whether it names something that exists, follow from it.
        name: the operationId.
        is_valid: it is as described, but for names in the path; else something in it is not.
    """

    number: int
    name: str
    is_valid: bool
    case: AnyCase


def shares(names: Sequence[str], cases: int) -> dict[str, int]:
    """How many cases each call gets: `cases` together, and two each at least if there are so many."""
    weights = {name: _PART if name in SLOW else _WHOLE for name in names}
    least = 2 if cases >= 2 * len(names) else 0
    rest, whole = cases - least * len(names), sum(weights.values())
    given_out = {name: least + rest * weight // whole for name, weight in weights.items()}
    for name in list(names)[: cases - sum(given_out.values())]:
        given_out[name] += 1
    return given_out


def requests(document: Mapping[str, Any], cases: int, seed_number: int) -> list[Request]:
    """`cases` requests over every call of the description, half of them valid, shuffled."""
    schema = schemathesis.openapi.from_dict(dict(document))
    operations = {
        found.ok().definition.raw["operationId"]: found.ok()
        for found in schema.get_all_operations()
        if isinstance(found, Ok)  # what is no operation fails the test of the description
    }
    made: list[tuple[str, bool, AnyCase]] = []
    for name, count in shares(sorted(operations), cases).items():
        for mode, part in zip(_MODES, (count - count // 2, count // 2), strict=True):
            generated = cases_of(operations[name], mode, part, f"{seed_number} {name} {mode}")
            made += [(name, _is_valid(case), case) for case in generated]
    random.Random(seed_number).shuffle(made)
    return [Request(number, *one) for number, one in enumerate(made)]


def _is_valid(case: AnyCase) -> bool:
    return case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE


def cases_of(operation: Any, mode: GenerationMode, count: int, seed_text: str) -> list[AnyCase]:
    """`count` cases; a call without anything to get wrong is sent valid ones."""
    found: list[AnyCase] = []

    def collect(case: AnyCase) -> None:
        found.append(case)

    chosen = settings(
        max_examples=max(count, 1),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        strategy = operation.as_strategy(generation_mode=mode)
        # hypothesis types `given` for written functions; this one is made, and run at once.
        seed(zlib.crc32(seed_text.encode()))(chosen(given(strategy)(collect)))()  # type: ignore[no-untyped-call]
    except Exception:
        if mode is GenerationMode.POSITIVE:
            raise
        return cases_of(operation, GenerationMode.POSITIVE, count, seed_text)
    return [found[number % len(found)] for number in range(count)] if found else []
