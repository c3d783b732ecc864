"""The operator's command as called from a shell, up to the point where it would wait for minutes."""

import pytest

from scripts.index_migration import main
from shared.retrieval.schema import content_index
from tests.contract.clients.conftest import Connect, connect_search
from tests.contract.clients.migrating import World
from tests.fakes.services import LEAST_ENVIRONMENT
from tests.servers import SearchServer

pytestmark = pytest.mark.contract


@pytest.fixture
async def world(search_server: SearchServer, connect: Connect) -> World:
    """Create an index as this version does, except for one analyzer."""
    world = World(connect_search(search_server, connect))
    definition = content_index(world.old, 64)
    heading = next(field for field in definition["fields"] if field["name"] == "heading_path")
    await world.admin().ensure_index(
        {
            **definition,
            "fields": [
                {**field, **_KEYWORD} if field is heading else field for field in definition["fields"]
            ],
        }
    )
    return world


_KEYWORD = {"analyzer": "keyword"}


@pytest.fixture
def environment(world: World, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        **LEAST_ENVIRONMENT,
        "AZURE_SEARCH_ENDPOINT": search_server.endpoint,
        "AZURE_SEARCH_API_KEY": search_server.api_key,
        "AZURE_SEARCH_CONTENT_INDEX": world.alias,
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("environment")
def test_an_index_is_adopted_and_what_it_lacks_is_told(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "content"]) == 1
    assert "is not an alias" in capsys.readouterr().err
    assert main(["adopt", "content", "--index", world.old]) == 0
    assert main(["adopt", "content", "--index", world.old]) == 1
    assert main(["plan", "content"]) == 0
    output = capsys.readouterr().out
    assert "heading_path: analyzer keyword, not standard.lucene" in output
    assert f"`run` copies its rows to {world.alias}-v1." in output
    assert main(["drop", "content"]) == 1
    assert "under way" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["adopt", "content"], ["run", "content", "--index", "x"], ["run", "x"]]
)
def test_calls_that_mean_nothing_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
