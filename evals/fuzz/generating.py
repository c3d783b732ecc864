"""Generates requests from the API description. The seed determines the requests and their order."""

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

# Expensive operations, such as orchestrations, streams and full scans. They get a fifth of the usual number
# of requests.
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
    """A generated request for one operation of the API.

    Attributes:
        number: its position, which determines the sender and whether it names something that exists.
        name: the operationId.
        is_valid: whether it matches the description, apart from names in the path.
    """

    number: int
    name: str
    is_valid: bool
    case: AnyCase


def shares(names: Sequence[str], cases: int) -> dict[str, int]:
    """Distribute `cases` requests over the operations, and return the number for each. If possible, each gets
    at least two.
    """
    weights = {name: _PART if name in SLOW else _WHOLE for name in names}
    least = 2 if cases >= 2 * len(names) else 0
    rest, whole = cases - least * len(names), sum(weights.values())
    given_out = {name: least + rest * weight // whole for name, weight in weights.items()}
    for name in list(names)[: cases - sum(given_out.values())]:
        given_out[name] += 1
    return given_out


def requests(document: Mapping[str, Any], cases: int, seed_number: int) -> list[Request]:
    """Return `cases` requests for all operations in random order. Half of them are valid."""
    schema = schemathesis.openapi.from_dict(dict(document))
    operations = {
        operation_result.ok().definition.raw["operationId"]: operation_result.ok()
        for operation_result in schema.get_all_operations()
        # Invalid operations are skipped here; the test of the API description reports them.
        if isinstance(operation_result, Ok)
    }
    generated_requests: list[tuple[str, bool, AnyCase]] = []
    for name, count in shares(sorted(operations), cases).items():
        for mode, part in zip(_MODES, (count - count // 2, count // 2), strict=True):
            generated = cases_of(operations[name], mode, part, f"{seed_number} {name} {mode}")
            generated_requests += [(name, _is_valid(case), case) for case in generated]
    random.Random(seed_number).shuffle(generated_requests)
    return [Request(number, *one) for number, one in enumerate(generated_requests)]


def _is_valid(case: AnyCase) -> bool:
    return case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE


def cases_of(operation: Any, mode: GenerationMode, count: int, seed_text: str) -> list[AnyCase]:
    """Generate `count` cases of an operation. Cases of an operation without parameters are always valid,
    regardless of the mode.
    """
    cases: list[AnyCase] = []

    def collect(case: AnyCase) -> None:
        cases.append(case)

    chosen = settings(
        max_examples=max(count, 1),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        strategy = operation.as_strategy(generation_mode=mode)
        # The type hints of hypothesis expect `given` to decorate a declared function, but this one is created
        # and called here.
        seed(zlib.crc32(seed_text.encode()))(chosen(given(strategy)(collect)))()  # type: ignore[no-untyped-call]
    except Exception:
        if mode is GenerationMode.POSITIVE:
            raise
        return cases_of(operation, GenerationMode.POSITIVE, count, seed_text)
    return [cases[number % len(cases)] for number in range(count)] if cases else []
