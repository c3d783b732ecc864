"""The semantic ranker through the real SDK: the local server's heuristic, and Azure's model if configured."""

from shared.access.models import UserContext
from shared.platform.language_models.models import CallLimits
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.secured_index import SecuredIndex
from tests.contract.tools.conftest import World
from tests.contract.tools.corpus import ANNA

QUESTION = "How many bar does the pump run at?"


def searching(world: World, user: UserContext, *, semantic_ranker: bool) -> BlockSearch:
    services = world.services()
    documents = SecuredIndex(services.documents_index, user, services.documents)
    blocks = SecuredIndex(services.content_index, user, services.documents)
    limits = CallLimits(timeout_s=30)
    return BlockSearch(blocks, services.embedder, limits, documents, semantic_ranker=semantic_ranker)


async def test_the_ranker_orders_what_was_found_and_adds_nothing(world: World) -> None:
    plain = await searching(world, ANNA, semantic_ranker=False).search([QUESTION], 50, {})
    ranked = await searching(world, ANNA, semantic_ranker=True).search([QUESTION], 50, {})
    assert {hit.block_id for hit in ranked} == {hit.block_id for hit in plain}
    assert ranked[0].block_id == "manual-1"
    assert [hit.block_id for hit in ranked] != [hit.block_id for hit in plain]
    assert [hit.score for hit in ranked] == sorted((hit.score for hit in plain), reverse=True)
