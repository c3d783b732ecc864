"""Simulated users: their identities, questions and behaviour, drawn from a seed. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from samples.acl import ANNA, BEN, SampleUser
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION

Behaviour = Literal["reads", "reconnects", "cancels"]

RECONNECT_SHARE, CANCEL_SHARE = 0.10, 0.05
OPENERS = (
    *(one.text for one in (FIRST_QUESTION, *DEMO_QUESTIONS)),
    "Who approves changes to the maintenance plan?",
    "What was decided about guards on the test bench?",
    "How is the Heron 400 installed?",
    "What does a Heron 400 cost?",
)
FOLLOW_UPS = (
    "And in 2024?",
    "Where exactly does it say so?",
    "Which document is that from?",
    "What else is known about it?",
)
# Minimum and maximum number of questions in a thread.
_THREAD_LENGTH = (1, 4)


@dataclass(frozen=True)
class Turn:
    """A question to ask. `begins` starts a new thread; after `after` events, the user disconnects or
    cancels.
    """

    question: str
    begins: bool
    behaviour: Behaviour
    after: int


def person(number: int) -> SampleUser:
    """Return the simulated user with this number. Even numbers have Anna's permissions, odd numbers Ben's."""
    like = (ANNA, BEN)[number % 2]
    return SampleUser(f"load-{number:03}", f"Load {number}", like.department, like.groups)


def turns(seed: int, number: int) -> Iterator[Turn]:
    """Yield an endless sequence of questions for one user, determined by the seed and the user's number."""
    chance = random.Random(f"{seed}-{number}")
    left = 0
    while True:
        begins = left == 0
        left = chance.randint(*_THREAD_LENGTH) if begins else left
        left -= 1
        question = chance.choice(OPENERS if begins or chance.random() < 0.5 else FOLLOW_UPS)
        yield Turn(question, begins, _behaviour(chance.random()), chance.randint(1, 12))


def _behaviour(draw: float) -> Behaviour:
    if draw < CANCEL_SHARE:
        return "cancels"
    return "reconnects" if draw < CANCEL_SHARE + RECONNECT_SHARE else "reads"
