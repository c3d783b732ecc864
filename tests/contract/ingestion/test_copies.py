"""Copied files become separate documents without model calls, and renamed files keep their corrections."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.documents.figure_store import picture_blob
from shared.documents.ids import document_id
from shared.documents.requests import AccessChange
from shared.ingestion.changes import change_access, correct
from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import SearchPage, SearchRequest, VectorQuery
from shared.wiring import Services
from tests.contract.ingestion.driving import (
    GUIDE,
    blocks_of,
    documents_of,
    dropped,
    ingest,
    removed,
    state_of,
    unique,
)
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder, CountingVisionModel
from tests.contract.ingestion.test_figures import report
from tests.fakes.replaced import Replaced

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # runs long, so it is part of `make e2e`
BOARD = {"owner_id": "anna", "acl": "board", "project_id": "p1"}


@pytest.fixture
def calls(
    chat_model: CountingChatModel, vision_model: CountingVisionModel, embedder: CountingEmbedder
) -> "Calls":
    return Calls(chat_model, vision_model, embedder)


class Calls:
    """The number of calls to each model since the last query."""

    def __init__(
        self, chat: CountingChatModel, vision: CountingVisionModel, embedder: CountingEmbedder
    ) -> None:
        self.chat, self.vision, self.embedder = chat, vision, embedder

    def pop_counts(self) -> tuple[int, int, int]:
        counts = (len(self.chat.prompts), len(self.vision.prompts), len(self.embedder.texts))
        for inputs in (self.chat.prompts, self.vision.prompts, self.embedder.texts):
            inputs.clear()
        return counts


async def stored(
    services: Services, content: str | bytes, metadata: dict[str, str], suffix: str = ".md"
) -> str:
    name = unique(suffix)
    assert await dropped(services, name, content, metadata) == "ready"
    return name


async def test_a_renamed_copy_costs_no_model_call_and_is_found_like_any_other(
    services: Services, calls: Calls, tmp_path: Path
) -> None:
    content = report(tmp_path, 4)
    first = await stored(services, content, BOARD, ".pdf")
    chats, visions, texts = calls.pop_counts()
    assert (chats, visions) == (1, 2)
    assert texts > 2
    second = await stored(services, content, BOARD, ".pdf")
    assert calls.pop_counts() == (0, 0, 0)

    originals, copies = await blocks_of(services, first), await blocks_of(services, second)
    assert len(copies) == len(originals)
    for original, copy in zip(originals, copies, strict=True):
        own = {"block_id", "doc_id", "filename", "image_url", "@search.score"}
        assert {field: copy[field] for field in copy if field not in own} == {
            field: original[field] for field in original if field not in own
        }
        assert copy.get("content_vector") or copy.get("image_caption_vector")
        assert copy["filename"] == second.rpartition("/")[2]
    (document,) = await documents_of(services, second)
    assert (document["title"], document["doc_id"]) == ("Pump manual", document_id(second))
    state = await state_of(services, second)
    assert sum(phase.model_calls for phase in state.phases) == 0
    assert state.warnings == ()

    await removed(services, first)
    assert await blocks_of(services, second) == copies
    folder = (await state_of(services, second)).folder
    names = [row["image_url"].rpartition("/")[2] for row in copies if row.get("image_url")]
    pictures = [picture_blob(folder, name) for name in names]
    assert len(pictures) == 2
    for picture in pictures:
        assert (await services.blobs.read(WORK, picture)).startswith(b"\x89PNG")
    vector = VectorQuery(vector=(0.5,) * 8, field="content_vector", k=50)
    request = SearchRequest(vectors=(vector,), filter="access_control_list/any(a: a eq 'board')", top=50)
    doc_ids = {row["doc_id"] for row in (await services.content_index.search(request)).rows}
    assert doc_ids == {document_id(second)}


@pytest.mark.parametrize(
    "metadata",
    [{**BOARD, "project_id": "p2"}, {**BOARD, "acl": "board,sales"}],
    ids=["other project", "one reader more"],
)
async def test_who_may_not_read_the_one_does_not_profit_from_it(
    services: Services, calls: Calls, metadata: dict[str, str]
) -> None:
    await stored(services, GUIDE, BOARD)
    first_cost = calls.pop_counts()
    second = await stored(services, GUIDE, metadata)
    # The cost must be the same as without a copy, because a lower cost would reveal that a copy exists.
    assert calls.pop_counts() == first_cost == (1, 0, 3)
    state = await state_of(services, second)
    assert [phase.model_calls for phase in state.phases if phase.model_calls] == [1, 1]


async def test_rights_are_the_copys_own(services: Services, calls: Calls) -> None:
    first = await stored(services, GUIDE, {**BOARD, "acl": "*"})
    second = await stored(services, GUIDE, {**BOARD, "owner_id": "ben", "acl": "hr"})
    assert calls.pop_counts()[0] == 1
    assert {tuple(row["access_control_list"]) for row in await blocks_of(services, second)} == {("ben", "hr")}
    await change_access(await state_of(services, first), AccessChange(acl=("sales",)), services)
    assert {tuple(row["access_control_list"]) for row in await blocks_of(services, second)} == {("ben", "hr")}
    (document,) = await documents_of(services, second)
    assert (document["owner_id"], document["access_control_list"]) == ("ben", ["ben", "hr"])


async def test_a_copy_gets_what_the_model_said_and_not_what_people_corrected(
    services: Services, calls: Calls
) -> None:
    first = await stored(services, GUIDE, BOARD)
    await correct(await state_of(services, first), {"title": "Anna's title"}, services)
    second = await stored(services, GUIDE, BOARD)
    (document,) = await documents_of(services, second)
    assert (document["title"], document.get("edited_fields") or []) == ("Pump manual", [])
    calls.pop_counts()


async def test_what_a_rule_described_is_no_reason_not_to_ask_the_model(
    services: Services, calls: Calls, chat_model: CountingChatModel
) -> None:
    chat_model.failures = [ModelFixableError("bad"), ModelFixableError("bad again")]
    await stored(services, GUIDE, BOARD)
    calls.pop_counts()
    second = await stored(services, GUIDE, BOARD)
    assert calls.pop_counts() == (1, 0, 0)
    assert (await state_of(services, second)).warnings == ()


async def test_blocks_that_the_other_one_lost_are_embedded(services: Services, calls: Calls) -> None:
    first = await stored(services, GUIDE, BOARD)
    await services.content_index.delete([(await blocks_of(services, first))[0]["block_id"]])
    calls.pop_counts()
    second = await stored(services, GUIDE, BOARD)
    assert calls.pop_counts() == (0, 0, 1)
    assert len(await blocks_of(services, second)) == 3


async def test_corrections_follow_a_file_that_was_moved(services: Services, calls: Calls) -> None:
    first = await stored(services, GUIDE, BOARD)
    await correct(await state_of(services, first), {"title": "Anna's title"}, services)
    second = await stored(services, GUIDE, BOARD)
    calls.pop_counts()
    await removed(services, first)
    (document,) = await documents_of(services, second)
    assert (document["title"], document["edited_fields"]) == ("Anna's title", ["title"])
    assert calls.pop_counts() == (0, 0, 0)


async def test_corrections_follow_a_file_that_went_before_its_copy_was_ready(services: Services) -> None:
    first = await stored(services, GUIDE, BOARD)
    await correct(await state_of(services, first), {"department": "Kitchen"}, services)
    await services.blobs.delete(DOCUMENTS, first)  # the event for this deletion is processed later
    second = await stored(services, GUIDE, BOARD)
    (document,) = await documents_of(services, second)
    assert (document["department"], document["edited_fields"]) == ("Kitchen", ["department"])
    assert {row["department"] for row in await blocks_of(services, second)} == {"Kitchen"}
    assert (await ingest(services, first, "late")).outcome == "removed"
    assert await blocks_of(services, first) == []


async def test_a_copy_that_cannot_be_looked_up_is_tried_again_and_not_leaked(services: Services) -> None:
    first = await stored(services, GUIDE, BOARD)
    failures = [DependencyError("Down.")] * 2

    async def search(request: SearchRequest) -> SearchPage:
        if failures and request.filter and "content_hash" in request.filter:
            raise failures.pop()
        return await services.documents_index.search(request)

    index: Any = Replaced(services.documents_index, search=search)
    stumbling = replace(services, documents_index=index)
    second = await stored(stumbling, GUIDE, BOARD)
    assert failures == []
    assert len(await blocks_of(services, second)) == len(await blocks_of(services, first))
