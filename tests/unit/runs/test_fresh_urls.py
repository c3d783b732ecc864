"""Tests for signing URLs when a stored answer is read, according to the reader's current rights."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.platform.blobs import SignedUrl
from shared.platform.errors import AuthenticationError, CallTimeoutError
from shared.runs.fresh_urls import refresh_answer, refresh_answers
from shared.runs.models import RunAnswer
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.search_index import InMemorySearchIndex
from tests.unit.answering.pictures import add_pictures, figure
from tests.world import ANNA, BEN, corpus_services, remove_row


def answer(*doc_ids: str) -> RunAnswer:
    return RunAnswer(run_id="r", text="T", figures=tuple(figure(doc_id) for doc_id in doc_ids))


async def test_a_reader_gets_an_address_that_is_good_for_an_hour_from_now() -> None:
    services = await corpus_services()
    await add_pictures(services)
    (picture,) = (await refresh_answer(answer("manual"), ANNA, services)).figures
    assert picture.image_url is not None
    assert f"/manual/v1/figures/{1:064x}.png" in picture.image_url
    assert picture.image_url_expires_at is not None
    assert picture.image_url_expires_at >= datetime.now(UTC) + timedelta(hours=1)
    assert picture.image_url not in repr(picture)


async def test_who_may_not_read_the_document_gets_no_address() -> None:
    services = await corpus_services()
    await add_pictures(services)
    (picture,) = (await refresh_answer(answer("manual"), BEN, services)).figures
    assert (picture.image_url, picture.image_url_expires_at) == (None, None)
    assert picture.path.startswith("/api/documents/manual/figures/")


async def test_rights_that_are_about_to_be_taken_count_already() -> None:
    services = await corpus_services()
    await add_pictures(services, target_acl=("nobody",))
    assert (await refresh_answer(answer("manual"), ANNA, services)).figures[0].image_url is None


async def test_a_whole_thread_costs_one_question_to_the_index() -> None:
    services = await corpus_services()
    await add_pictures(services)
    await add_pictures(services, "report-2023", ("*",))
    assert isinstance(services.documents_index, InMemorySearchIndex)
    before = len(services.documents_index.requests)
    read = await refresh_answers(
        [answer("manual", "report-2023"), answer(), answer("manual")], ANNA, services
    )
    assert [[bool(picture.image_url) for picture in one.figures] for one in read] == [
        [True, True],
        [],
        [True],
    ]
    assert len(services.documents_index.requests) == before + 1


async def test_an_address_of_the_past_is_never_given_again() -> None:
    services = await corpus_services()
    await remove_row(services, "manual")
    old = figure().model_copy(update={"image_url": "https://old", "image_url_expires_at": datetime.now(UTC)})
    read = await refresh_answer(RunAnswer(run_id="r", text="T", figures=(old,)), ANNA, services)
    assert read.figures[0].image_url is None


@pytest.mark.parametrize("failure", [AuthenticationError("no key"), CallTimeoutError("away")])
async def test_an_answer_can_be_read_when_nothing_can_be_signed(failure: Exception) -> None:
    class Unsigned(InMemoryBlobStore):
        async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
            raise failure

    services = await corpus_services(blobs=Unsigned())
    await add_pictures(services)
    assert (await refresh_answer(answer("manual"), ANNA, services)).figures[0].image_url is None
