"""One app, one browser and two people's Playgrounds for all tests of Teams here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from scripts.teams_tools import install_teams_tools
from tests.e2e.teams.browser import Browser, find_chromium
from tests.e2e.teams.playground import Chat, Playground
from tests.fakes.graph_server import GraphServer

MODEL = "groundwork-extractive"
# Fast enough for a test, slow enough that an answer is seen to grow.
_USUAL = {"CHAT_MODEL": f"{MODEL}@tps=40", "MAX_TOTAL_LATENCY_MS": "60000"}
_GROUPS = {ANNA.user_id: [ANNA.department, *ANNA.groups], BEN.user_id: [BEN.department, *BEN.groups]}


@dataclass
class App:
    """The session's stack as the Playground meets it, with settings that a test asks for."""

    stack: LocalStack
    base: Mapping[str, str]
    current: Mapping[str, str] = field(default_factory=dict)

    def use(self, **changes: str) -> "App":
        """The app with these settings; started anew only if it has others."""
        if changes != self.current or not self.current:
            self.stack.kill_host()
            self.stack.app_settings = {**self.base, **changes}
            self.stack.start_host()
            self.current = changes
        return self


@pytest.fixture(scope="package")
def tools() -> Path:
    return install_teams_tools()


@pytest.fixture(scope="package")
def browser(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("there is no Chromium on this machine (apt-get install chromium)")
    with Browser(tools, executable, tmp_path_factory.mktemp("browser") / "browser.log") as running:
        yield running


@pytest.fixture(scope="package")
def prepared(stack: LocalStack, browser: Browser) -> Iterator[App]:
    """The stack with a bot of its own and a directory of people; as it was, afterwards."""
    before = dict(stack.app_settings)
    with GraphServer(_GROUPS) as graph:
        bot = {"BOT_LOCAL_ANONYMOUS": "true", "PUBLIC_URL": stack.base_url}
        yield App(stack, {**before, **bot, **graph.settings})
        stack.kill_host()
        stack.app_settings = before
        stack.start_host()


@pytest.fixture
def app(prepared: App) -> App:
    return prepared.use(**_USUAL)


def _playground(
    user: SampleUser, prepared: App, tools: Path, folders: pytest.TempPathFactory
) -> Iterator[Playground]:
    folder = folders.mktemp("playground")
    with Playground(user, prepared.stack.base_url, tools, folder) as running:
        yield running


@pytest.fixture(scope="package")
def annas_playground(
    prepared: App, tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Playground]:
    yield from _playground(ANNA, prepared, tools, tmp_path_factory)


@pytest.fixture(scope="package")
def bens_playground(
    prepared: App, tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Playground]:
    yield from _playground(BEN, prepared, tools, tmp_path_factory)


@pytest.fixture
def anna(app: App, browser: Browser, annas_playground: Playground) -> Chat:
    return Chat.open(browser, annas_playground)


@pytest.fixture
def ben(app: App, browser: Browser, bens_playground: Playground) -> Chat:
    return Chat.open(browser, bens_playground)
