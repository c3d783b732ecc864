"""Optional parts of the OpenAI protocol, which some endpoints don't support, and reasoning efforts. Types
only.
"""

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
    "tools",  # fields tools and tool_choice, and messages with the role tool
    "stream_usage",  # field stream_options, which requests the token usage at the end of a stream
    "max_completion_tokens",  # newer name of the field that limits the length of a reply
    "max_tokens",  # older name of the same field
    "reasoning_effort",  # field that controls how much hidden reasoning precedes a reply
    "system_role",  # messages with the role system
    "images",  # pictures as content parts of messages
    "base64_vectors",  # the value base64 for the encoding_format of embeddings
    "dimensions",  # field that requests shorter embedding vectors
]

ALL_FEATURES: frozenset[Feature] = frozenset(get_args(Feature))
