"""What is said to a model: one rendered prompt, and the limits of one call."""

from typing import Literal

from shared.models.base import Model


class Prompt(Model):
    """A rendered prompt. `user` holds the material; documents in it are data, never instructions.

    Attributes:
        picture_url: a data URI, for models that see.
    """

    name: Literal[
        "plan",
        "answer",
        "repair",
        "metadata",
        "caption",
        "rerank",
        "grade",
        "rewrite",
        "summarise_turns",
        "summarise_window",
        "summarise_choice",
        "summarise_merge",
        "sub_agent",
    ]
    system: str
    user: str
    picture_url: str | None = None


class CallLimits(Model):
    """Limits of one model or search call, retries included.

    Attributes:
        timeout_s: for the whole call, all tries together.
        max_retries: further tries after the first, on 429 and 5xx only.
        max_output_tokens: the model stops there.
    """

    timeout_s: float
    max_retries: int = 1
    max_output_tokens: int = 1500
