"""Tests for image URLs in search results. If signing fails, results are returned without them."""

from shared.documents.figures import image_urls
from shared.platform.blobs import SignedUrl
from shared.platform.errors import CallTimeoutError
from shared.platform.language_models.models import CallLimits
from shared.platform.names import WORK
from shared.retrieval.models import Hit
from shared.tools.registry import bound_tool
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.unit.answering.pictures import add_pictures, picture
from tests.world import ANNA, corpus_services

LIMITS = CallLimits(timeout_s=1)
QUESTION = "pump curve"
TEXT = Hit(block_id="manual-1", doc_id="manual", filename="manual.pdf", page_number=1, content="x")


class Unsigned(InMemoryBlobStore):
    """A blob store that cannot sign URLs."""

    async def read_url(self, container: str, name: str, lifetime_s: float) -> SignedUrl:
        raise CallTimeoutError("no answer")


async def with_pictures(*pictures: Hit, blobs: InMemoryBlobStore | None = None) -> Services:
    services = await corpus_services(blobs=blobs or InMemoryBlobStore())
    await add_pictures(services)
    for hit in pictures:
        (vector,) = await services.embedder.embed([hit.image_caption or ""], LIMITS)
        row = hit.model_dump(exclude={"score", "content"})
        readers = {"access_control_list": ["engineering"], "image_caption_vector": list(vector)}
        await services.content_index.upload([{**row, **readers}])
    return services


async def pictures_of(services: Services) -> list[dict[str, object]]:
    response = await bound_tool("rag_semantic_search", services, ANNA).execute(query=QUESTION)
    assert response["success"] is True
    return [result for result in response["results"] if result["block_type"] == "image"]


async def test_a_picture_comes_with_a_signed_address_and_its_caption_and_no_content() -> None:
    (figure,) = await pictures_of(await with_pictures(picture()))
    assert str(figure["image_url"]).startswith(f"memory://{WORK}/versions/manual/v1/figures/{1:064x}.png?")
    assert figure["image_caption"] == "Figure 1: Pump curve of the pump"
    assert "content" not in figure


async def test_a_search_succeeds_when_nothing_can_be_signed() -> None:
    (figure,) = await pictures_of(await with_pictures(picture(), blobs=Unsigned()))
    assert figure["image_url"] == f"/api/documents/manual/figures/{1:064x}.png"


async def test_only_pictures_that_are_ours_get_an_address() -> None:
    services = await corpus_services()
    strange = picture(image_url="https://elsewhere/x.png")
    assert await image_urls([TEXT, strange], services) == {}
