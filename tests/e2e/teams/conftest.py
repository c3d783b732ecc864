"""Fixtures for one app, one browser and two people's Playgrounds, shared by all Teams tests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from scripts.teams_tools import install_teams_tools
from tests.e2e.stack_fixture import SharedStack
from tests.e2e.teams.browser import Browser, find_chromium
from tests.e2e.teams.papers import agents_of_anna, bring_papers
from tests.e2e.teams.playground import Chat, Playground

MODEL = "groundwork-extractive"
# Fast enough for a test, and slow enough that answers are updated while they are written.
_USUAL = {"CHAT_MODEL": f"{MODEL}@tps=12,only=answer"}


@dataclass
class App:
    """The session's stack as the Playground uses it, with the settings that a test requests."""

    stack: LocalStack
    base: Mapping[str, str]
    current: Mapping[str, str] = field(default_factory=dict)

    def use(self, **changes: str) -> "App":
        """Return the app with these settings. The host is restarted only if its settings differ."""
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
def prepared(stack: SharedStack, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield the stack with Anna's and Ben's papers and a local bot, and restore it afterwards."""
    bring_papers(stack, tmp_path_factory.mktemp("papers"))
    before = dict(stack.app_settings)
    agents = {"AGENTS_FOLDER": str(agents_of_anna(tmp_path_factory.mktemp("agents")))}
    with stack.restored():
        yield App(stack, {**before, **agents, "BOT_LOCAL_ANONYMOUS": "true", "PUBLIC_URL": stack.base_url})


@pytest.fixture
def app(prepared: App) -> App:
    """Return the app with default settings. Tests must request this fixture, or a similar one, before a
    person's.
    """
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
def anna(prepared: App, browser: Browser, annas_playground: Playground) -> Chat:
    return Chat.open(browser, annas_playground)


@pytest.fixture
def ben(prepared: App, browser: Browser, bens_playground: Playground) -> Chat:
    return Chat.open(browser, bens_playground)
