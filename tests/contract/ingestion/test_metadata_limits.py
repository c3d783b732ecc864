"""The metadata of one file can't fill other users' lists and prompts, or hide text in them."""

from typing import Any

import pytest

from shared.evidence.document_prompt import documents_with_blocks
from shared.platform.errors import ModelFixableError
from shared.retrieval.models import DocumentRecord, Hit
from shared.wiring import Services
from tests.contract.ingestion.driving import documents_of, dropped
from tests.contract.ingestion.models import METADATA, CountingChatModel

pytestmark = [pytest.mark.contract, pytest.mark.attack("oversized metadata")]

LONG = "x " * 230_000
FRONT_MATTER = (
    f"---\ntitle: Pump {LONG}\nauthor: \x1b[31mMara\u202e {LONG}\n---\n\nThe pump runs at 16 bar at most.\n"
)


class TalkativeModel(CountingChatModel):
    """A model that describes every document at length, with control characters."""

    async def parse(self, prompt: Any, output: Any, limits: Any) -> Any:
        self.prompts.append(prompt)
        long = {
            "title": f"Title\x1b[2J {LONG}",
            "author": LONG,
            "document_type": LONG,
            "department": LONG,
            "tags": [f"{number} {LONG}" for number in range(100)],
            "summary_brief": LONG,
            "summary_standard": f"One.\n\nTwo.\x1b[2J {LONG}",
        }
        return output.model_validate(METADATA.model_dump() | long)


def check_limits(row: dict[str, Any]) -> None:
    for field in ("title", "author", "document_type", "department"):
        assert len(row[field] or "") <= 200, field
    assert len(row["tags"]) <= 30
    assert all(len(tag) <= 200 for tag in row["tags"])
    assert len(row["summary_brief"]) <= 2000
    assert len(row["summary_standard"]) <= 2000
    assert not {"\x1b", "\u202e"} & set(str(row["title"]) + str(row["author"]) + row["summary_standard"])


async def test_front_matter_of_460_kilobytes_is_truncated(
    services: Services, name: str, chat_model: CountingChatModel
) -> None:
    # Without the model, the properties of the file are used.
    chat_model.failures += [ModelFixableError("No.", "No.")] * 2
    assert await dropped(services, name, FRONT_MATTER) == "ready"
    (row,) = await documents_of(services, name)
    assert row["author"].startswith("[31mMara x x")
    assert row["title"].startswith("Pump x x")
    check_limits(row)


@pytest.mark.parametrize("chat_model", [TalkativeModel()], ids=["talkative"])
async def test_what_a_model_extracts_is_truncated(services: Services, name: str) -> None:
    assert await dropped(services, name) == "ready"
    (row,) = await documents_of(services, name)
    assert row["title"].startswith("Title[2J x x")
    assert row["summary_standard"].startswith("One.\n\nTwo.")
    check_limits(row)


def test_a_prompt_truncates_metadata_again() -> None:
    row = {
        "doc_id": "d1",
        "filename": "guide.md",
        "upload_date": "2026-01-02T00:00:00Z",
        "title": LONG,
        "author": LONG,
        "tags": [f"{number} {LONG}" for number in range(100)],
    }
    hit = Hit(block_id="b", doc_id="d1", filename="guide.md", content="The pump runs at 16 bar.")
    prompt_text = documents_with_blocks([hit], {"d1": DocumentRecord.of_row(row)})
    assert "The pump runs at 16 bar." in prompt_text
    assert len(prompt_text) < 2000
