"""Tests for group names in access lists on Azure: they become ids, or are refused with a hint."""

import pytest

from shared.access.access_lists import with_ids
from shared.access.listed_directory import ListedDirectory
from shared.access.models import UserContext
from shared.platform.errors import AccessDeniedError, CallerError, DependencyError
from shared.platform.listed_people import ListedPerson
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.services import fake_settings

GROUP, OTHER, STRANGER = (f"0000000{n}-aaaa-4bbb-8ccc-000000000000" for n in range(3))
USER = UserContext(user_id=OTHER, org_id="t", department="Legal")
IN_AZURE = fake_settings(WEBSITE_SITE_NAME="groundwork")


@pytest.fixture
def directory() -> InMemoryDirectory:
    fake_directory = InMemoryDirectory()
    fake_directory.names = {"finance": frozenset({GROUP}), "all": frozenset({GROUP, OTHER})}
    return fake_directory


async def test_the_name_of_a_group_becomes_its_id(directory: InMemoryDirectory) -> None:
    entries = ("finance", OTHER, "org:t", "*", "Legal")
    assert await with_ids(entries, USER, directory, IN_AZURE) == (GROUP, *entries[1:])


async def test_an_id_that_nobody_has_is_refused(directory: InMemoryDirectory) -> None:
    with pytest.raises(CallerError, match="No known person or group"):
        await with_ids((STRANGER,), USER, directory, IN_AZURE)
    directory.groups[STRANGER] = frozenset()
    assert await with_ids((STRANGER,), USER, directory, IN_AZURE) == (STRANGER,)


LISTED = ListedDirectory(
    (
        ListedPerson(id="anna", name="Anna Bergqvist", groups=("safety",), department="engineering"),
        ListedPerson(id="ben", name="Ben Okafor", groups=("hr", "safety"), department="people"),
    )
)
WITH_LIST = fake_settings(LOCAL_DIRECTORY='[{"id": "anna", "name": "Anna"}]')


async def test_a_listed_name_becomes_the_id_of_the_person() -> None:
    entries = ("Ben Okafor", "ben", "hr", "people", "*")
    assert await with_ids(entries, USER, LISTED, WITH_LIST) == ("ben", "ben", "hr", "people", "*")


async def test_an_entry_of_the_list_so_far_stays_valid() -> None:
    assert await with_ids(("left", "ben"), USER, LISTED, WITH_LIST, current=("left",)) == ("left", "ben")


async def test_an_unlisted_name_is_refused_with_similar_ones() -> None:
    with pytest.raises(CallerError, match="no-such-group"):
        await with_ids(("no-such-group",), USER, LISTED, WITH_LIST)
    with pytest.raises(CallerError) as refused:
        await with_ids(("Ben Okafer",), USER, LISTED, WITH_LIST)
    assert refused.value.hints[0] == "Did you mean Ben Okafor (ben)?"


@pytest.mark.parametrize("name", ["nobody", "all", "Finance"])
async def test_a_name_that_is_not_one_groups_is_refused(directory: InMemoryDirectory, name: str) -> None:
    with pytest.raises(CallerError, match=name) as refused:
        await with_ids(("*", name), USER, directory, IN_AZURE)
    assert "Microsoft Graph" in refused.value.hints[-1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("all", "Several people or groups have the name 'all'"),
        (" ", "No known person or group has the name ' '"),
        ("x" * 90, f"No known person or group has the name '{'x' * 80}'"),
    ],
)
async def test_a_refusal_says_how_many_have_the_name(
    directory: InMemoryDirectory, name: str, reason: str
) -> None:
    with pytest.raises(CallerError, match=reason):
        await with_ids((name,), USER, directory, IN_AZURE)


async def test_a_name_is_refused_where_the_directory_does_not_answer(directory: InMemoryDirectory) -> None:
    directory.fails_with = DependencyError("The directory does not answer.")
    with pytest.raises(CallerError, match="finance"):
        await with_ids(("finance",), USER, directory, IN_AZURE)
    assert await with_ids((GROUP,), USER, directory, IN_AZURE) == (GROUP,)


async def test_a_name_may_be_a_department_where_there_are_some(directory: InMemoryDirectory) -> None:
    settings = fake_settings(WEBSITE_SITE_NAME="groundwork", department_claim="division")
    assert await with_ids(("Sales", "finance"), USER, directory, settings) == ("Sales", GROUP)


async def test_on_this_machine_groups_go_by_their_names(directory: InMemoryDirectory) -> None:
    assert await with_ids(("engineering",), USER, directory, fake_settings()) == ("engineering",)


@pytest.mark.parametrize("principal", ["*", "org:t"])
async def test_only_people_with_the_role_open_a_document_to_all(
    directory: InMemoryDirectory, principal: str
) -> None:
    settings = fake_settings(publish_role="publisher")
    with pytest.raises(AccessDeniedError) as refused:
        await with_ids(("engineering", principal), USER, directory, settings)
    assert "publisher" in refused.value.hints[0]
    assert await with_ids(("engineering",), USER, directory, settings) == ("engineering",)
    publisher = USER.model_copy(update={"roles": ("publisher",)})
    assert await with_ids((principal,), publisher, directory, settings) == (principal,)
    assert await with_ids((principal,), USER, directory, fake_settings()) == (principal,)
