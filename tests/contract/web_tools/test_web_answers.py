"""Answers from the web: found, read, quoted, and proved with the snapshot stored with the run."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.answering.models import TurnResults
from shared.answering.retention import purge_old_runs
from shared.evidence.models import WebPage
from shared.evidence.repairs import RepairedQuotations
from shared.platform.errors import NotFoundError
from shared.platform.names import WORK
from shared.runs.journal import read_journal
from shared.runs.models import RunView
from tests.contract.web_tools.conftest import MakeWeb, Web, calls
from tests.fakes.blob_store import InMemoryBlobStore

pytestmark = pytest.mark.contract

URL = "http://www.pumps.example/pumps"
SAID = "The standard of 2026 allows pumps to run at 16 bar at most."
SEARCH = calls(("web_search", {"query": "pump pressure standard"}))
FETCH = calls(("web_fetch", {"url": URL}))


DOC_ID = WebPage(
    final_url=URL, title="", text="", fetched_at=datetime.now(UTC), sha256="", content_type="text/html"
).doc_id
NO_REPAIR = RepairedQuotations(quotations=())


async def answered(make: MakeWeb, quote: str = SAID) -> tuple[Web, RunView]:
    """Run a question whose model searches, reads the page found, and quotes it."""
    claim = f'<answer>The web says 16 bar. <cite doc_id="{DOC_ID}" quote="{quote}"/>'
    web: Web = await make(SEARCH, FETCH, claim, page_urls=(URL,))
    return web, await web.ask()


async def test_a_page_that_a_search_found_is_read_and_its_words_are_proved(web: MakeWeb) -> None:
    world, view = await answered(web)
    assert world.search.queries == ["pump pressure standard"]
    assert world.site.requests == ["www.pumps.example/pumps"], world.results()
    read = world.results()[-1]
    assert (read["title"], read["published_at"]) == ("Pump pressures", "2026-03-01")
    assert "Imprint" not in read["text"]
    assert view.answer is not None
    (cited,) = view.answer.citations
    assert (cited.kind, cited.verified, cited.quote) == ("web", True, SAID)
    assert (cited.doc_id, cited.block_id, cited.filename) == ("", "", "pumps.example")
    assert cited.final_url == cited.url == URL
    assert "Older standards" in (cited.context or "").partition(SAID)[2]
    assert cited.fetched_at is not None
    assert datetime.now(UTC) - cited.fetched_at < timedelta(hours=1)
    assert " (Source: pumps.example, web)[1]" in view.answer.text
    assert view.answer.unsupported_claims == 0


async def test_words_that_the_page_does_not_hold_are_marked(web: MakeWeb) -> None:
    _, view = await answered(web, "The standard of 2026 allows pumps to run at 61 bar at most.")
    assert view.answer is not None
    assert view.answer.citations == ()
    assert view.answer.unsupported_claims == 1


async def test_words_of_a_page_pass_for_no_document(web: MakeWeb) -> None:
    claim = f'<answer>The manual says 16 bar. <cite doc_id="manual" quote="{SAID}"/>'
    world: Web = await web(SEARCH, FETCH, claim, NO_REPAIR, page_urls=(URL,))
    view = await world.ask()
    assert view.answer is not None
    assert [cited.quote for cited in view.answer.citations if cited.verified] == []


async def test_the_snapshot_goes_with_the_run(web: MakeWeb) -> None:
    world, view = await answered(web)
    blobs, run_log = world.services.blobs, world.services.run_log
    assert isinstance(blobs, InMemoryBlobStore)
    stored = blobs.containers[WORK]
    journal = await read_journal(run_log, blobs, view.run_id)
    results = [await journal.value(line, TurnResults) for line in journal.value_lines("results")]
    assert any("Older standards" in page.text for result in results for page in result.pages)
    holding = [path for path, blob in stored.items() if b"Older standards" in blob.content]
    assert all(path.startswith(f"runs/{view.run_id}/") for path in holding)

    async def forget(_: str) -> None:
        return

    assert await purge_old_runs(datetime.now(UTC) + timedelta(days=400), world.services, forget) == 1
    assert not any(path.startswith("runs/") for path in stored)
    with pytest.raises(NotFoundError):
        await run_log.read(view.run_id)


async def test_without_documents_the_web_is_still_asked(web: MakeWeb) -> None:
    world: Web = await web(SEARCH, "<answer>Nobody knows.", page_urls=())
    world.blocks.clear()
    world.documents.clear()
    await world.ask()
    assert world.search.queries == ["pump pressure standard"]


async def test_the_web_is_off_by_default(web: MakeWeb) -> None:
    world: Web = await web(SEARCH, "<answer>Nothing.", agent_tools="")
    await world.ask()
    assert world.search.queries == []
    assert not {"web_search", "web_fetch"} & {tool.name for tool in world.model.tools[0]}
