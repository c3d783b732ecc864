"""Parts of the OpenAI protocol that an endpoint may not support, and reasoning efforts. Types only."""

from dataclasses import dataclass
from typing import Literal, get_args

Effort = Literal["none", "minimal", "low", "medium", "high"]
"""How many hidden tokens a reasoning model may spend before it answers."""


@dataclass(frozen=True)
class Efforts:
    """Reasoning efforts by kind of call; None means the model's default.

    Attributes:
        tools: turns with tools.
        short: plans, rewritten questions, repairs, judgements of passages, summaries of turns.
        writing: everything else: reports, summaries of documents, descriptions.
    """

    tools: Effort | None = None
    short: Effort | None = None
    writing: Effort | None = None


Feature = Literal[
    "json_schema",  # response_format of that type
    "json_object",  # response_format of that type
    "tools",  # tools, tool_choice, messages of role tool
    "stream_usage",  # stream_options: token usage at the end of a stream
    "max_completion_tokens",  # the newer name of the limit of an answer
    "max_tokens",  # its older name
    "reasoning_effort",  # how much the model may think
    "system_role",  # messages of role system
    "images",  # pictures as parts of a message
    "base64_vectors",  # encoding_format of embeddings
    "dimensions",  # vectors that are shortened on demand
]

ALL_FEATURES: frozenset[Feature] = frozenset(get_args(Feature))
