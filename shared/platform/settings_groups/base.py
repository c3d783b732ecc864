"""Base class of settings groups, and the kinds of their fields."""

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

CONSTANT, MODEL_TIMEOUT, PLATFORM = "constant", "model timeout", "platform"
"""Kinds of fields that operators don't set."""


def prefixed(prefix: str) -> Callable[[str], str]:
    """Return a function that maps a field name to an environment variable name with this prefix."""
    return lambda field: f"{prefix}{field}".upper()


def constant(value: object, *, alias: str | None = None) -> Any:
    """Declare a constant: a value that no operator needs to change, but that tests can override like a
    setting.
    """
    return Field(default=value, alias=alias, json_schema_extra={"kind": CONSTANT})


def model_timeout(value: float) -> Any:
    """Declare the timeout of a model call in seconds. It is multiplied by MODEL_TIMEOUT_FACTOR."""
    return Field(default=value, json_schema_extra={"kind": MODEL_TIMEOUT})


def of_the_platform(default: object) -> Any:
    """Declare an environment variable that the hosting platform sets."""
    return Field(default=default, json_schema_extra={"kind": PLATFORM})


class SettingsGroup(BaseModel):
    """Base class of settings groups. A field is read from the environment variable named by its alias, which
    defaults to the field name in upper case.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # error messages must not quote a value, because it may be a key
        alias_generator=prefixed(""),
    )


def kind_of(field: FieldInfo) -> str | None:
    """Return the kind of a field that operators don't set, such as a constant. Return None for a setting."""
    extra = field.json_schema_extra
    return str(extra["kind"]) if isinstance(extra, dict) else None


def settings_of(kind: type[SettingsGroup]) -> dict[str, FieldInfo]:
    """Return the fields of a group that operators can set, keyed by environment variable."""
    return {name: field for name, field in fields_of([kind]).items() if kind_of(field) is None}


def fields_of(kinds: Iterable[type[SettingsGroup]]) -> dict[str, FieldInfo]:
    """Return all fields of several groups, including constants, keyed by environment variable."""
    return {field.alias or "": field for kind in kinds for field in kind.model_fields.values()}
