"""Structured output as text: the schema in words, for endpoints that take none, and JSON cut out of
an answer.

Pure. What is cut out is validated all the same: an endpoint's promise is only believed when it holds.
"""

import json
import re
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError

from shared.clients.delta_text import whole_text
from shared.clients.json_text import objects_in
from shared.errors import ModelFixableError
from shared.models.conversing import Message
from shared.ports import StructuredOutput

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_ORDER = (
    "Answer with one JSON object and nothing else: no words around it, no code fence. "
    "It must be valid by this JSON schema:"
)


def schema_in_words(output: type[BaseModel]) -> str:
    """What is said to a model whose endpoint takes no schema."""
    schema = json.dumps(output.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return f'{_ORDER}\n<json_schema name="{output.__name__}">{schema}</json_schema>'


def mending_of(answer: str, problem: str) -> tuple[Message, Message]:
    """What follows the prompt of a model whose answer was not as it should be."""
    asked = f"{problem}\nAnswer again: the whole JSON object, mended, and nothing else."
    return Message(role="assistant", text=answer), Message(role="user", text=asked)


def read_output(text: str, output: type[StructuredOutput]) -> StructuredOutput:
    """The value that an answer holds: as it is, else cut out of a fence or of the words around it.

    Raises:
        ModelFixableError: where the answer does not fit the schema, without quoting it.
    """
    problem: ValidationError | None = None
    for candidate in _candidates(whole_text(text)):
        try:
            return output.model_validate_json(candidate)
        except ValidationError as invalid:
            # The first that is JSON at all says more than "not JSON" of the whole.
            if problem is None or (_is_no_json(problem) and not _is_no_json(invalid)):
                problem = invalid
    assert problem is not None  # noqa: S101  (the whole answer is always tried)
    raise ModelFixableError(_explain(problem)) from None


def holds_no_json(text: str) -> bool:
    """Whether an answer is words alone: whoever writes them does not know, or heed, that JSON is due."""
    return bool(text.strip()) and "{" not in text and "[" not in text


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from (found.group(1) for found in _FENCED.finditer(text))
    yield from (text[found.start : found.end] for found in objects_in(text))


def _is_no_json(invalid: ValidationError) -> bool:
    return any(problem["type"] == "json_invalid" for problem in invalid.errors(include_input=False))


def _explain(invalid: ValidationError) -> str:
    """Where the answer does not fit the schema, without quoting the answer."""
    places = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'the whole'}: {problem['msg']}"
        for problem in invalid.errors(include_input=False, include_url=False)
    ]
    return f"The model's answer does not fit the schema {invalid.title}: {'; '.join(places[:5])}"
