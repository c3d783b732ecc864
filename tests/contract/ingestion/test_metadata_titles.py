"""A title that many documents share doesn't distinguish them, so it is replaced."""

from typing import Any

import pytest

from shared.wiring import Services
from tests.contract.ingestion.driving import documents_of, dropped, unique
from tests.contract.ingestion.models import METADATA, CountingChatModel

pytestmark = pytest.mark.contract


class LetterheadModel(CountingChatModel):
    """A model that returns the letterhead, which all documents share, as the title."""

    letterhead = unique("")

    async def parse(self, prompt: Any, output: Any, limits: Any) -> Any:
        self.prompts.append(prompt)
        return output.model_validate(METADATA.model_dump() | {"title": f"Agency {self.letterhead}"})


@pytest.mark.parametrize("chat_model", [LetterheadModel()], ids=["letterhead"])
async def test_a_title_that_two_others_bear_gives_way_to_the_files_name(
    services: Services, chat_model: LetterheadModel
) -> None:
    names = [unique(".md") for _ in range(3)]
    for number, name in enumerate(names):
        assert await dropped(services, name, f"# Agency\n\nPump {number} runs at 16 bar.\n") == "ready"
    titles = [(await documents_of(services, name))[0]["title"] for name in names]
    assert titles[:2] == [f"Agency {chat_model.letterhead}"] * 2
    assert titles[2] == names[2].rsplit("/", 1)[-1].removesuffix(".md").replace("_", " ")
    assert "# Agency" in chat_model.prompts[0].user, "the prompt tells which lines are large"


class HeadingModel(CountingChatModel):
    """A model that returns the first heading as the title."""

    async def parse(self, prompt: Any, output: Any, limits: Any) -> Any:
        self.prompts.append(prompt)
        title = prompt.user.partition("# ")[2].partition("\n")[0]
        return output.model_validate(METADATA.model_dump() | {"title": title})


@pytest.mark.parametrize("chat_model", [HeadingModel()], ids=["heading"])
async def test_the_default_name_of_a_sheet_is_not_a_title(
    services: Services, chat_model: HeadingModel
) -> None:
    name = unique(".md")
    assert await dropped(services, name, "# Sheet1\n\nThe valve costs 12 euros.\n") == "ready"
    (document,) = await documents_of(services, name)
    assert document["title"] == name.rsplit("/", 1)[-1].removesuffix(".md").replace("_", " ")


@pytest.mark.parametrize("chat_model", [HeadingModel()], ids=["heading"])
async def test_the_model_is_shown_similar_titles_that_all_readers_may_read(
    services: Services, chat_model: HeadingModel
) -> None:
    word = "".join(filter(str.isalpha, unique("")))
    readers = {"open": "anna,ben", "closed": "anna", "newer": "anna,ben"}
    for name, acl in readers.items():
        content = f"# Pump {word} {name}\n\nIt runs at 16 bar.\n"
        rights = {"acl": acl, "owner_id": "anna", "project_id": word}
        assert await dropped(services, unique(".md"), content, rights) == "ready"
    first, _, last = (prompt.user for prompt in chat_model.prompts[-3:])
    assert f"<existing_titles>Pump {word} open</existing_titles>" in last
    assert "existing_titles" not in first
