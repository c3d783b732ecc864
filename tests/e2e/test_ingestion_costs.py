"""Costs of ingestion, counted by the servers: no cost for known content, and little for small changes."""

import asyncio
import io
import random

import httpx
import pytest
from fpdf import FPDF
from PIL import Image

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from shared.documents.ids import document_id
from shared.documents.state import DocumentState
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.e2e.server_counts import counted
from tests.e2e.stack_client import pdf_of
from tests.e2e.stack_services import (
    HANG_GUARD_S,
    blocks_of,
    drop_file,
    until,
    until_current,
    until_gone,
)
from tests.e2e.sub_agents.hosts import MODEL, configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FOLDER = {
    "costs/a.md": b"# Cranes\n\nThe crane lifts forty tons at most.\n",
    "costs/b.txt": b"The winch is oiled each spring.\n",
    "costs/deep/er/c.pdf": pdf_of("Hoists", "The hoist stands in hall four."),
}
PAGES = 100
CHANGED_PAGE = 57


async def until_etag(services: Services, name: str) -> DocumentState:
    """Return the document's state once no ingestion is active and it has the blob's current version."""
    properties = await services.blobs.properties(DOCUMENTS, name)
    assert properties is not None
    etag = properties.etag
    return await until(
        services, document_id(name), "the etag", lambda one: not one.is_open and one.blob_etag == etag
    )


def manual(changed: str) -> bytes:
    """Return a hundred pages, each with its own heading and words; page 57 contains the given text."""
    pdf = FPDF()
    for page in range(1, PAGES + 1):
        pdf.add_page()
        pdf.set_font("Helvetica", "B", 18)
        pdf.cell(0, 12, f"Station {page}", new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", "", 10)
        text = changed if page == CHANGED_PAGE else f"Station {page} is {page * 7} meters above the sea."
        pdf.multi_cell(0, 6, text, new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


async def test_the_same_folder_dropped_twice_costs_nothing(stack: LocalStack, services: Services) -> None:
    for name, content in FOLDER.items():
        await drop_file(services, name, content)
        await until_current(services, name, content)
    with counted(stack) as counts:
        for name, content in FOLDER.items():
            await drop_file(services, name, content)
        for name in FOLDER:
            assert (await until_etag(services, name)).version == 1
    assert (counts.chats, counts.embeddings, counts.writes) == (0, 0, {})


async def test_a_renamed_copy_costs_no_model_call(stack: LocalStack, services: Services) -> None:
    original, copy = "costs/vessels.pdf", "costs/moved/containers.pdf"
    content = figures_pdf()
    await drop_file(services, original, content)
    await until_current(services, original, content)
    before = await blocks_of(services, original)
    with counted(stack) as counts:
        await drop_file(services, copy, content)
        await until_current(services, copy, content)
        await services.blobs.delete(DOCUMENTS, original)
        await until_gone(services, original)
    after = await blocks_of(services, copy)
    assert (counts.chats, counts.embeddings, counts.texts) == (0, 0, 0)
    assert any(row["block_type"] == "image" for row in after)
    assert [row["content"] for row in after] == [row["content"] for row in before]
    assert await blocks_of(services, original) == []


def figures_pdf() -> bytes:
    """Return a page of text with a picture, captioned by the model server's vision model."""
    picture = Image.frombytes("RGB", (40, 30), random.Random(7).randbytes(3600)).resize((400, 300))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", "", 10)
    pdf.multi_cell(0, 6, "The vessel holds ninety litres and is tested every spring.", new_x="LMARGIN")
    pdf.image(buffer, w=100)
    pdf.cell(0, 8, "Figure 1: The vessel as built")
    return bytes(pdf.output())


async def test_of_a_hundred_pages_only_the_changed_one_is_embedded(
    stack: LocalStack, services: Services
) -> None:
    name = "costs/stations.pdf"
    first, second = manual("This station is closed."), manual("This station has opened again.")
    await drop_file(services, name, first)
    await until_current(services, name, first)
    before = {str(row["block_id"]) for row in await blocks_of(services, name)}
    with counted(stack) as counts:
        await drop_file(services, name, second)
        await until_current(services, name, second)
    rows = await blocks_of(services, name)
    new = [row for row in rows if row["block_id"] not in before]
    assert len(before) >= PAGES
    assert [row["page_number"] for row in new] == [CHANGED_PAGE]
    assert counts.texts == 1
    assert counts.writes == {
        # The other pages are only assigned to the new version, which needs no embedding.
        "content-blocks": {"upload": 1, "merge": PAGES - 1, "delete": 1},
        "documents-metadata": {"upload": 1},
    }


def finds(stack: LocalStack, user: SampleUser, words: str) -> bool:
    """Return whether the user's search finds the words."""
    answer = httpx.post(
        f"{stack.base_url}/api/search",
        json={"query": words, "top_k": 5},
        headers={"Authorization": f"Bearer {stack.token(user)}"},
        timeout=HANG_GUARD_S,
    )
    return words in answer.raise_for_status().text


async def test_a_new_access_list_costs_nothing_and_holds_for_the_next_query(
    stack: LocalStack, services: Services
) -> None:
    name, words = "costs/rights.md", "The gantry is painted violet."
    await drop_file(services, name, words.encode(), acl="*")
    state = await until_current(services, name, words.encode())
    assert await asyncio.to_thread(finds, stack, BEN, words)
    with counted(stack) as counts:
        await services.blobs.write(DOCUMENTS, f"{name}.acl.json", f'["{ANNA.user_id}"]'.encode())
        closed = await until(
            services,
            state.doc_id,
            "the new list, also in the indexes",
            lambda one: one.rights.acl == (ANNA.user_id,) and not one.is_open,
        )
    assert (counts.chats, counts.embeddings) == (0, 0)
    assert counts.writes == {"content-blocks": {"merge": 1}, "documents-metadata": {"merge": 1}}
    assert closed.phases == state.phases, "it was parsed again"
    assert not await asyncio.to_thread(finds, stack, BEN, words)
    assert await asyncio.to_thread(finds, stack, ANNA, words)


async def test_a_busy_model_delays_documents_and_fails_none(stack: LocalStack, services: Services) -> None:
    files = {f"costs/busy-{number}.md": f"Pier {number} is new.".encode() for number in range(6)}
    # The model rejects the first six requests and asks for a pause.
    with configured(stack, CHAT_MODEL=f"{MODEL}@fail=429:6,retry_after=1"), counted(stack) as counts:
        for name, content in files.items():
            await drop_file(services, name, content)
        for name, content in files.items():
            state = await until_current(services, name, content)
            assert (state.status, state.warnings) == ("ready", ())
            assert [phase.model_calls for phase in state.phases if phase.model_calls] == [1, 1]
    assert counts.failures == 6
    assert counts.chats == 6 + len(files)
