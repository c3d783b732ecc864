"""Parser for LOCAL_DIRECTORY, a list of people that replaces Microsoft Graph outside Azure. Pure."""

import json
from functools import cache

from pydantic import Field, TypeAdapter, ValidationError

from shared.platform.models import Model


class ListedPerson(Model):
    """Person with the groups and department that are added to their token."""

    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    groups: tuple[str, ...] = ()
    department: str = ""


@cache
def listed_people(text: str) -> tuple[ListedPerson, ...]:
    """Parse the LOCAL_DIRECTORY setting, a JSON list of people.

    Raises:
        ValueError: the text is not a JSON list of people. The message does not quote any value.
    """
    if not text.strip():
        return ()
    try:
        return TypeAdapter(tuple[ListedPerson, ...]).validate_python(json.loads(text))
    except (json.JSONDecodeError, ValidationError):
        raise ValueError('is not a JSON list of people such as {"id": "anna", "name": "Anna"}') from None
