"""A title that many documents bear tells none of them from the others."""

from typing import Any

import pytest

from shared.wiring import Services
from tests.contract.ingestion.driving import documents_of, dropped, unique
from tests.contract.ingestion.models import METADATA, CountingChatModel

pytestmark = pytest.mark.contract


class LetterheadModel(CountingChatModel):
    """Takes a letterhead, which is on every document, for the title."""

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
