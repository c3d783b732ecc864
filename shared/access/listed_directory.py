"""A directory of the people configured in LOCAL_DIRECTORY, for use without Microsoft Graph."""

from collections.abc import Mapping

from shared.access.directory import GroupDirectory
from shared.access.models import DirectoryEntry, DirectoryPerson
from shared.platform.errors import NotFoundError
from shared.platform.listed_people import ListedPerson


class ListedDirectory(GroupDirectory):
    """A directory of configured people. Groups and departments are identified by their names."""

    def __init__(self, people: tuple[ListedPerson, ...]) -> None:
        self._people = {person.id: person for person in people}
        entries = [_person(person) for person in people]
        entries += [DirectoryEntry(kind="group", principal=name, name=name) for name in _groups(people)]
        entries += [
            DirectoryEntry(kind="department", principal=name, name=name)
            for name in sorted({person.department for person in people if person.department})
        ]
        self._entries = entries

    async def groups_of(self, user_id: str) -> frozenset[str]:
        """Return the names of a person's groups. Raise NotFoundError if the person isn't listed."""
        return frozenset(self._person(user_id).groups)

    async def person(self, user_id: str) -> DirectoryPerson:
        """Return a person's record, always as a member of the organisation. Raises the same errors as
        `groups_of`.
        """
        person = self._person(user_id)
        return DirectoryPerson(is_guest=False, department=person.department or None, name=person.name)

    async def group_names(self, user_id: str) -> Mapping[str, str]:
        """Return the names of a person's groups, mapped to themselves. Raises the same errors as
        `groups_of`.
        """
        return {group: group for group in self._person(user_id).groups}

    async def resolve(self, text: str) -> tuple[DirectoryEntry, ...]:
        """Find the entries with this id. If there are none, find entries with this name, ignoring case."""
        exact = tuple(entry for entry in self._entries if entry.principal == text)
        return exact or tuple(entry for entry in self._entries if entry.name.casefold() == text.casefold())

    async def search(self, text: str, most: int) -> tuple[DirectoryEntry, ...]:
        """Search for up to `most` entries whose name or id has a word that starts with `text`, people
        first.
        """
        start = text.casefold()
        matches = [entry for entry in self._entries if _has_word(entry, start)]
        return tuple(matches[:most])

    def _person(self, user_id: str) -> ListedPerson:
        try:
            return self._people[user_id]
        except KeyError:
            raise NotFoundError("The directory has no such person.") from None


def _person(person: ListedPerson) -> DirectoryEntry:
    return DirectoryEntry(kind="person", principal=person.id, name=person.name, detail=person.department)


def _groups(people: tuple[ListedPerson, ...]) -> list[str]:
    return sorted({group for person in people for group in person.groups})


def _has_word(entry: DirectoryEntry, start: str) -> bool:
    words = f"{entry.name} {entry.principal}".casefold()
    return words.startswith(start) or f" {start}" in words
