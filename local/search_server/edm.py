"""Converts values of the entity data model (EDM): accepted JSON, canonical form and SQL form. Pure.

Source: "Supported data types" of the Azure AI Search REST reference.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from local.search_server.errors import RequestError

STRING: Final = "Edm.String"
BOOLEAN: Final = "Edm.Boolean"
INT32: Final = "Edm.Int32"
INT64: Final = "Edm.Int64"
DOUBLE: Final = "Edm.Double"
DATE: Final = "Edm.DateTimeOffset"
VECTOR: Final = "Collection(Edm.Single)"

INTEGER_TYPES: Final = frozenset({INT32, INT64})
NUMBER_TYPES: Final = frozenset({INT32, INT64, DOUBLE})
SCALAR_TYPES: Final = frozenset({STRING, BOOLEAN, INT32, INT64, DOUBLE, DATE})

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

SqlValue = None | int | float | str
Vector = npt.NDArray[np.float32]


def element_type(edm_type: str) -> str | None:
    """Return the element type of a `Collection(...)` type, or None for any other type."""
    if edm_type.startswith("Collection(") and edm_type.endswith(")"):
        return edm_type.removeprefix("Collection(").removesuffix(")")
    return None


def parse_date(text: str) -> datetime:
    """Return the UTC time of an ISO 8601 text, which must have a UTC offset.

    Raises:
        ValueError: if the text isn't a date, has no offset or is out of range.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError(f"'{text}' has no offset from UTC.")
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"'{text}' is out of range.") from error


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970, as an integer because a float would round them."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def canonical_scalar(edm_type: str, value: JsonValue, path: str) -> JsonValue:
    """Return a non-null value in the canonical JSON form in which it is stored.

    Raises:
        RequestError: 400, if the value has a different type.
    """
    try:
        return _CANONICAL[edm_type](value)
    except ValueError as error:
        reason = f" {error}" if str(error) else ""
        raise RequestError(
            f"The request is invalid. Details: Cannot convert the value of '{path}' to the expected type"
            f" '{edm_type}'.{reason}"
        ) from error


def canonical_text(value: JsonValue, path: str) -> str:
    """Return the value if it is a string that SQLite can store and compare.

    Raises:
        RequestError: 400, see `canonical_scalar`.
    """
    return str(canonical_scalar(STRING, value, path))


def sql_value(edm_type: str, value: JsonValue) -> SqlValue:
    """Return a canonical value for SQL comparisons. Dates become microseconds since 1970, Booleans 0 or 1."""
    if edm_type == DATE and isinstance(value, str):
        return microseconds(parse_date(value))
    if value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a value of type {edm_type} has no SQL form")


def vector_of(value: JsonValue, dimensions: int, path: str) -> Vector:
    """Return a JSON list as a float32 vector with exactly `dimensions` numbers.

    Raises:
        RequestError: 400, if the value isn't a list of finite numbers or has a different length.
    """
    if not isinstance(value, list) or len(value) != dimensions:
        length = len(value) if isinstance(value, list) else "no list"
        raise RequestError(
            f"There's a mismatch in vector dimensions. The vector field '{path}', with dimension of"
            f" '{dimensions}', expects a length of '{dimensions}'. However, the provided vector has a"
            f" length of '{length}'."
        )
    try:
        numbers = np.asarray(value)
    except ValueError:
        numbers = np.asarray("no vector")
    if numbers.dtype.kind not in "if" or numbers.ndim != 1:
        raise RequestError(f"The vector field '{path}' accepts only numbers.")
    with np.errstate(over="ignore"):
        vector = numbers.astype(np.float32)
    if not np.isfinite(vector).all():
        raise RequestError(f"The vector field '{path}' accepts only finite numbers.")
    return vector


def _string(value: JsonValue) -> JsonValue:
    if not isinstance(value, str):
        raise ValueError
    # An unpaired surrogate is valid JSON but not UTF-8, so SQLite could not store it.
    value.encode()
    return value


def _boolean(value: JsonValue) -> JsonValue:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _integer(limit: int) -> Callable[[JsonValue], JsonValue]:
    def convert(value: JsonValue) -> JsonValue:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not -limit - 1 <= value <= limit:
            raise ValueError
        return value

    return convert


def _double(value: JsonValue) -> JsonValue:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError from error
    if not math.isfinite(number):
        raise ValueError
    return number


def _date(value: JsonValue) -> JsonValue:
    if not isinstance(value, str):
        raise ValueError
    moment = parse_date(value)
    return moment.isoformat().replace("+00:00", "Z")


_CANONICAL: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    STRING: _string,
    BOOLEAN: _boolean,
    INT32: _integer(MAX_INT32),
    INT64: _integer(MAX_INT64),
    DOUBLE: _double,
    DATE: _date,
}
