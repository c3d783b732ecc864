"""Tests for the audiences offered for sharing and for looking up their names."""

import asyncio
from typing import Any

from shared.access.access_lists import with_ids
from shared.access.audiences import audiences_of, look_up_audiences
from shared.access.models import DirectoryEntry, UserContext
from shared.platform.errors import DependencyError
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.services import fake_settings

FINANCE, AUDIT, ELSEWHERE, EVA = (f"0000000{n}-aaaa-4bbb-8ccc-000000000000" for n in range(4))
USER = UserContext(user_id=EVA, name="Eva Lind", department="Legal", org_id="t", groups=(FINANCE, AUDIT))


def in_azure(**others: Any) -> Any:
    return fake_settings(WEBSITE_SITE_NAME="groundwork", **others)


def directory() -> InMemoryDirectory:
    fake_directory = InMemoryDirectory({EVA: frozenset({FINANCE, AUDIT, ELSEWHERE})})
    fake_directory.display_names = {FINANCE: "Finance", AUDIT: "audit", ELSEWHERE: "Not let in by the token"}
    return fake_directory


async def test_groups_go_by_their_names_and_only_those_that_count() -> None:
    audiences = (await audiences_of(USER, directory(), in_azure())).audiences
    assert [(one.kind, one.principal, one.name) for one in audiences] == [
        ("person", EVA, "Eva Lind"),
        ("group", AUDIT, "audit"),
        ("group", FINANCE, "Finance"),
        ("department", "Legal", "Legal"),
        ("organisation", "org:t", "t"),
        ("everyone", "*", "*"),
    ]


async def test_a_directory_that_fails_leaves_the_ids() -> None:
    failing = directory()
    failing.fails_with = DependencyError("The directory does not answer.")
    audiences = (await audiences_of(USER, failing, in_azure())).audiences
    assert [one.name for one in audiences if one.kind == "group"] == [FINANCE, AUDIT]


async def test_only_publishers_are_offered_what_opens_a_document_widely() -> None:
    settings = in_azure(publish_role="publisher")
    kinds = [one.kind for one in (await audiences_of(USER, directory(), settings)).audiences]
    assert kinds == ["person", "group", "group", "department"]
    publisher = USER.model_copy(update={"roles": ("publisher",)})
    assert len((await audiences_of(publisher, directory(), settings)).audiences) == 6


async def test_a_guest_without_groups_shares_with_themselves_and_everyone() -> None:
    fake_directory = directory()
    result = await audiences_of(UserContext(user_id=EVA), fake_directory, in_azure())
    assert [(one.kind, one.name) for one in result.audiences] == [("person", EVA), ("everyone", "*")]
    assert fake_directory.asked == []


async def test_outside_azure_nobody_is_asked_for_names() -> None:
    fake_directory = directory()
    user = USER.model_copy(update={"groups": ("hr",)})
    result = await audiences_of(user, fake_directory, fake_settings())
    assert ("group", "hr", "hr") in [(one.kind, one.principal, one.name) for one in result.audiences]
    assert fake_directory.asked == []


async def test_every_audience_is_taken_in_an_access_list() -> None:
    result = await audiences_of(USER, directory(), in_azure())
    principals = [one.principal for one in result.audiences]
    assert await with_ids(principals, USER, directory(), in_azure()) == tuple(principals)


class SlowDirectory(InMemoryDirectory):
    """A directory that resolves numbers, fails for other ids, and counts concurrent lookups."""

    active = 0
    most_active = 0

    async def resolve(self, text: str) -> tuple[DirectoryEntry, ...]:
        """Return the entry after other lookups had the chance to start."""
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        await asyncio.sleep(0.001)
        self.active -= 1
        if not text.isdigit():
            raise DependencyError("The directory does not answer.")
        return (DirectoryEntry(kind="person", principal=text, name=f"Person {text}"),)


async def test_fifty_ids_are_looked_up_a_few_at_a_time_and_in_order() -> None:
    slow = SlowDirectory()
    ids = [str(number) for number in range(50)]
    audiences = (await look_up_audiences(ids, slow)).audiences
    assert [one.principal for one in audiences] == ids
    assert 1 < slow.most_active <= 8


async def test_failed_lookups_and_names_are_left_out() -> None:
    slow = SlowDirectory()
    assert [one.name for one in (await look_up_audiences(["7", "x", "8"], slow)).audiences] == [
        "Person 7",
        "Person 8",
    ]
    fake_directory = InMemoryDirectory()
    fake_directory.names = {"Finance": frozenset({FINANCE})}  # a name is not an id
    assert (await look_up_audiences(["Finance", "unknown"], fake_directory)).audiences == ()
