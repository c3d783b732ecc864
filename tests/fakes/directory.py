"""A directory in memory that counts its queries."""

from collections.abc import Mapping

from shared.access.directory import GroupDirectory
from shared.access.models import DirectoryEntry, DirectoryPerson
from shared.platform.errors import GroundworkError, NotFoundError


class InMemoryDirectory(GroupDirectory):
    """A directory of the users in `groups`. If `fails_with` is set, every query raises it."""

    def __init__(self, groups: Mapping[str, frozenset[str]] | None = None) -> None:
        self.groups: dict[str, frozenset[str]] = dict(groups or {})
        self.people: dict[str, DirectoryPerson] = {}
        self.display_names: dict[str, str] = {}
        self.names: dict[str, frozenset[str]] = {}
        self.asked: list[str] = []
        self.fails_with: GroundworkError | None = None

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """Return a user's groups. Raise NotFoundError for unknown users."""
        self.asked.append(user_id)
        if self.fails_with is not None:
            raise self.fails_with
        if user_id not in self.groups:
            raise NotFoundError("no such person")
        return self.groups[user_id]

    async def person(self, user_id: str) -> DirectoryPerson:
        """Return the person, who is a member without a department unless `people` has another entry."""
        if self.fails_with is not None:
            raise self.fails_with
        if user_id not in self.groups:
            raise NotFoundError("no such person")
        return self.people.get(user_id, DirectoryPerson(is_guest=False))

    async def group_names(self, user_id: str) -> Mapping[str, str]:
        """Return the groups' names from `display_names`, or the id for a group without a name."""
        return {group: self.display_names.get(group, group) for group in await self.groups_of(user_id)}

    async def resolve(self, text: str) -> tuple[DirectoryEntry, ...]:
        """Return the entries of `names` that equal the text, and the user with this id."""
        if self.fails_with is not None:
            raise self.fails_with
        if text in self.groups:
            return (DirectoryEntry(kind="person", principal=text, name=text),)
        ids = self.names.get(text, frozenset())
        return tuple(DirectoryEntry(kind="group", principal=one, name=text) for one in sorted(ids))

    async def search(self, text: str, most: int) -> tuple[DirectoryEntry, ...]:
        """Return the entries of `names` that begin with the text."""
        entries = [
            entry for name in self.names if name.startswith(text) for entry in await self.resolve(name)
        ]
        return tuple(entries[:most])
