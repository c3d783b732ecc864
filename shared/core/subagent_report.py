"""Reading a report while it is written: what of its JSON stands already. Pure.

A report that breaks off, at a time limit or at its largest length, is worth what came until then.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json


def read_partial(text: str) -> Mapping[str, Any] | None:
    """The object that the text begins, without what is not whole yet; None when it can be read as none.

    A last value that is not whole is left out of the innermost list or object, which may so lack fields.
    What stands before the object, such as the fence of a code block, is passed over.
    """
    start = text.find("{")
    if start < 0:
        return None
    try:
        said = from_json(text[start:], allow_partial=True)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def is_whole(said: Mapping[str, Any] | None, report: type[BaseModel]) -> bool:
    """Whether every part of the report was at least begun: the last part tells that of those before it."""
    return said is not None and report.model_fields.keys() <= said.keys()
