"""The people of the setting LOCAL_DIRECTORY, which stand in for Microsoft Graph outside Azure. Pure."""

import json
from functools import cache

from pydantic import Field, TypeAdapter, ValidationError

from shared.platform.models import Model


class ListedPerson(Model):
    """A person with the groups and department that their token carries."""

    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    groups: tuple[str, ...] = ()
    department: str = ""


@cache
def listed_people(text: str) -> tuple[ListedPerson, ...]:
    """Parse the setting.

    Raises:
        ValueError: it isn't a JSON list of people; the message quotes no value.
    """
    if not text.strip():
        return ()
    try:
        return TypeAdapter(tuple[ListedPerson, ...]).validate_python(json.loads(text))
    except (json.JSONDecodeError, ValidationError):
        raise ValueError('is not a JSON list of people such as {"id": "anna", "name": "Anna"}') from None
