"""How settings are read from the environment: the base of `Settings` and of its parts.

Every setting is one value (text, a number, a flag, a word), so that this little is enough. A package for it
costs a cold start as much as all settings.
"""

import os
from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict


class EnvironmentModel(BaseModel):
    """Fields that are environment variables."""

    # Parts are built with `Settings` alone: nobody makes one of them.
    model_config = ConfigDict(defer_build=True, validate_default=True)

    @classmethod
    def from_environment(cls) -> Self:
        """Fields from variables of their alias or name, in any case; one that is empty is not set.

        Raises:
            ValidationError: one is missing or wrong.
        """
        return cls.model_validate(dict(cls._given()))

    @classmethod
    def _given(cls) -> Iterator[tuple[str, str]]:
        variables = {name.lower(): text for name, text in os.environ.items() if text}
        for name, field in cls.model_fields.items():
            known_as = field.alias or name
            text = variables.get(known_as.lower(), variables.get(name))
            if text is not None:
                yield known_as, text
