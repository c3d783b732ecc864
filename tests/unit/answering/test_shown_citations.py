"""Tests for opening a citation of a run without an answer, which leads to the passage shown to the reader."""

from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.answering.cited_pages import own_citation
from shared.evidence.models import Citation
from shared.runs.event_log import open_event_log
from shared.runs.models import RunRecord
from tests.fakes.run_log import run_event
from tests.fakes.services import fake_services
from tests.world import World

ANNA = UserContext(user_id="anna")


def cited(quote: str) -> dict[str, object]:
    citation = Citation(
        n=1,
        doc_id="d1",
        block_id=quote,
        filename="m.pdf",
        page_number=1,
        quote=quote,
        verified=True,
        url="/x",
    )
    return citation.model_dump(mode="json")


async def test_of_an_attempt_that_was_withdrawn_nothing_is_marked() -> None:
    services = fake_services()
    record = RunRecord(
        run_id="r1", thread_id="t1", owner_id="anna", question="Why?", created_at=datetime.now(UTC)
    )
    await services.runs.create(record)
    await services.run_log.create("r1")
    for quote in ("first", "second"):  # the second attempt discards the text of the first
        event_log = await open_event_log(services.run_log, "r1", 4)
        await event_log.write(run_event("CITATION", **cited(quote)))
    citation = await own_citation("r1", 1, "d1", ANNA, services)
    assert citation is not None
    assert citation.quote == "second"
    await event_log.write(run_event("STATUS", state="discarded", error_type="NetworkError"))
    assert await own_citation("r1", 1, "d1", ANNA, services) is None


async def test_the_answer_links_its_citation_to_the_document_in_sharepoint() -> None:
    world = World()
    address = "https://contoso.sharepoint.com/sites/hr/Documents/manual.pdf"
    await world.add("manual", "The pump runs at 15 bar.", source_url=address)
    view, _ = await world.ask()
    assert view.answer is not None
    (citation,) = view.answer.citations
    assert citation.source_url == f"{address}#page=1"
    assert citation.url.startswith("/api/documents/manual/pages/1")
