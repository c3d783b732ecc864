"""Plans a budget evaluation: batches of questions, each with a model fault. Pure: the seed determines the
plan.

Knobs are part of the model's name, which is a setting of the host, so runs are grouped in batches with one
host each.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evals.budgets.questions import DELEGATED, QUESTIONS, Question

MODEL = "groundwork-extractive"
# Model faults that are tested separately. `only=` restricts a fault to some calls, because a run whose model
# always fails never delegates to a sub-agent.
FAULTS: Mapping[str, tuple[str, ...]] = {
    "none": ("",),
    "stall": (
        "stall=0",
        "stall=12",
        "stall=0,only=sub_agent",
        "stall=12,only=sub_agent",
        "stall=30,only=answer",
        "stall=0,only=plan",
    ),
    "drip": ("tps=1", "tps=1,only=sub_agent", "tps=1,only=answer", "tps=4,only=plan"),
    "garbage": (
        "garbage=content",
        "garbage=body",
        "garbage=shape,only=sub_agent",
        "garbage=protocol,only=answer",
    ),
    "refused for ever": (
        "fail=429",
        "fail=429,retry_after=60",
        "fail=429,only=sub_agent",
        "fail=503,only=answer",
    ),
    "tool loop": ("toolloop", "toolloop=2", "toolloop,only=sub_agent"),
    "too many tokens": ("overtalk=3000", "overtalk=3000,only=sub_agent", "overtalk=20000,only=sub_agent"),
    "slow": ("ttft=4000", "ttft=9000,only=sub_agent"),
}
_MIXABLE = (
    "tps=1",
    "tps=3",
    "toolloop",
    "overtalk=3000",
    "ttft=2500",
    "stall=40",
    "fail=429:40%",
    "drop=25",
    "cut=12",
    "midstream=30",
    "garbage=shape",
)
TIGHT_SHARE = 0.25
_PLACES = ("", "", ",only=sub_agent", ",only=sub_agent+answer", ",only=plan+answer")
USUAL = {
    "MAX_TOTAL_TOKENS_PER_REQUEST": "24000",
    "MAX_CHILD_TOKENS": "8000",
    "CHAT_MODEL_INPUT_USD_PER_MILLION_TOKENS": "0.40",
    "CHAT_MODEL_OUTPUT_USD_PER_MILLION_TOKENS": "1.60",
}
"""The default of every setting that a batch may change. It is set explicitly, because a stack keeps the
settings of the previous batch.
"""
TIGHT = (
    {"MAX_TOTAL_TOKENS_PER_REQUEST": "12000", "MAX_CHILD_TOKENS": "2500"},
    {"CHAT_MODEL_INPUT_USD_PER_MILLION_TOKENS": "8", "CHAT_MODEL_OUTPUT_USD_PER_MILLION_TOKENS": "32"},
)
"""Token budgets and prices with which ordinary questions reach their limits."""


@dataclass(frozen=True)
class Batch:
    """A batch of questions for one host, with the model fault and settings of that host.

    Attributes:
        fault: name in the report: a key of FAULTS, "mixed" or "chaos".
        knobs: suffix of the model's name.
        settings: of the app, in addition to its model.
    """

    fault: str
    knobs: str
    questions: tuple[Question, ...]
    settings: Mapping[str, str] = field(default_factory=lambda: dict(USUAL))

    @property
    def model(self) -> str:
        return f"{MODEL}@{self.knobs}" if self.knobs else MODEL


def plan(runs: int, seed: int, size: int, faults: Sequence[str] = ()) -> list[Batch]:
    """Return batches with `runs` questions in total, at most `size` in each. If `faults` is given, only these
    model faults are used.

    A third has single faults, in turn; the rest combines two or uses random ones (chaos).
    """
    chance = random.Random(seed)
    makers = _makers(chance, faults)
    batches = []
    left = runs
    while left > 0:
        fault, knobs = next(makers)
        settings = chance.choice(TIGHT) if chance.random() < TIGHT_SHARE else {}
        batches.append(Batch(fault, knobs, _questions(chance, min(size, left)), {**USUAL, **settings}))
        left -= size
    return batches


def _makers(chance: random.Random, faults: Sequence[str]) -> Iterator[tuple[str, str]]:
    singles = [(fault, knobs) for fault in faults or FAULTS for knobs in FAULTS.get(fault, ())]
    chance.shuffle(singles)
    while True:
        for single in singles:
            yield single
            if not faults:
                yield _mixed_faults(chance)
                yield "chaos", f"chaos={chance.randrange(10_000)}"
        if "mixed" in faults:
            yield _mixed_faults(chance)
        if "chaos" in faults:
            yield "chaos", f"chaos={chance.randrange(10_000)}"


def _mixed_faults(chance: random.Random) -> tuple[str, str]:
    return "mixed", ",".join(chance.sample(_MIXABLE, 2)) + chance.choice(_PLACES)


def _questions(chance: random.Random, count: int) -> tuple[Question, ...]:
    """Return distinct questions in random order. Two thirds of them need sub-agents."""
    deep = [question for question in QUESTIONS if question.kind in DELEGATED]
    other = [question for question in QUESTIONS if question.kind not in DELEGATED]
    chosen = chance.sample(deep, min(-(-count * 2 // 3), len(deep)))
    chosen += chance.sample(other, min(count - len(chosen), len(other)))
    return tuple(chance.sample(chosen, len(chosen)))
