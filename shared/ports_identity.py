"""Port of the organisation's directory. Part of `shared.ports`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

# For annotations alone: the start of the app need not build every model.
if TYPE_CHECKING:
    from shared.models.identity import DirectoryPerson


class GroupDirectory(Protocol):
    """Who belongs to which groups, as the organisation's directory knows it."""

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """Ids of all groups of a person, nested ones included; all or an error, never some.

        Raises:
            NotFoundError: the directory has no such person.
            DependencyError: it does not answer, or refuses us.
        """

    async def person(self, user_id: str) -> DirectoryPerson:
        """What it says of a person; errors as `groups_of`."""
