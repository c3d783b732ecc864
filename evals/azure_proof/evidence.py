"""The evidence of a proof run: a JSON file that is rewritten after every step, so that single steps can be
repeated.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FILE_NAME = "evidence.json"
Figure = str | int | float


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Check(_Frozen):
    """An expectation that a step checked, with the observed value."""

    expected: str
    passed: bool
    seen: str


class Outcome(_Frozen):
    """The checks and figures of a step. A step such as the cost estimate has figures only."""

    checks: tuple[Check, ...] = ()
    figures: dict[str, Figure] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class StepResult(_Frozen):
    """The result of a step, as recorded in the evidence file.

    Attributes:
        status: `skipped` if the step doesn't apply to this target.
        advice: what to do about a failure.
    """

    name: str
    title: str
    status: Literal["passed", "failed", "skipped"]
    at: datetime
    seconds: float
    outcome: Outcome = Outcome()
    advice: str = ""


class Facts(_Frozen):
    """The environment and versions that were tested."""

    target: Literal["azure", "local"]
    url: str = ""
    region: str = ""
    models: str = ""
    versions: dict[str, str] = Field(default_factory=dict)


class Evidence(_Frozen):
    """All recorded results for one commit, in the order of the steps."""

    commit: str
    begun_at: datetime
    facts: Facts
    steps: tuple[StepResult, ...] = ()

    def with_step(self, result: StepResult, order: tuple[str, ...]) -> "Evidence":
        """Return the evidence with this result, which replaces an earlier result of the same step."""
        steps = [one for one in self.steps if one.name != result.name] + [result]
        return self.model_copy(update={"steps": tuple(sorted(steps, key=lambda one: order.index(one.name)))})


def check(expected: str, seen: object, *, passed: bool) -> Check:
    """Return a check with an expectation and the observed value, which is truncated to 300 characters."""
    return Check(expected=expected, passed=passed, seen=" ".join(str(seen).split())[:300])


def load(folder: Path, commit: str, facts: Facts) -> Evidence:
    """Return the stored evidence for this commit and target, or new evidence if there is none."""
    path = folder / FILE_NAME
    if path.exists():
        evidence = Evidence.model_validate_json(path.read_bytes())
        if (evidence.commit, evidence.facts.target) == (commit, facts.target):
            return evidence.model_copy(update={"facts": facts})
    return Evidence(commit=commit, begun_at=datetime.now(UTC), facts=facts)


def save(evidence: Evidence, folder: Path) -> None:
    """Write the evidence atomically, so that a killed process leaves the previous file intact."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{FILE_NAME}.new"
    draft.write_text(evidence.model_dump_json(indent=1) + "\n", encoding="utf-8")
    draft.replace(folder / FILE_NAME)
