"""Parts of the OpenAI protocol that not every endpoint has, by name: what MODEL_FEATURES may list."""

from typing import Literal, get_args

Feature = Literal[
    "json_schema",  # response_format of that type
    "json_object",  # response_format of that type
    "tools",  # tools, tool_choice, messages of role tool
    "stream_usage",  # stream_options: tokens are told at the end of a stream
    "max_completion_tokens",  # the newer name of the limit of an answer
    "max_tokens",  # its older name
    "system_role",  # messages of role system
    "images",  # pictures as parts of a message
    "base64_vectors",  # encoding_format of embeddings
    "dimensions",  # vectors that are shortened on demand
]
ALL_FEATURES: frozenset[Feature] = frozenset(get_args(Feature))
