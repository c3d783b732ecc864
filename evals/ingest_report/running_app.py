"""Where the app under test is: one that runs already, or a local stack of its own for this report."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from samples.acl import ANNA

URL_SETTING = "GROUNDWORK_URL"
_DEFAULT_INDEX = "content-blocks"


@dataclass(frozen=True)
class RunningApp:
    """What a client of the app and of its storage must know.

    Attributes:
        check: raises when the app is known to be gone.
    """

    base_url: str
    token: str
    storage_connection_string: str
    search_endpoint: str
    search_key: str
    content_index: str = _DEFAULT_INDEX
    check: Callable[[], None] = lambda: None


@contextmanager
def running_app(environment: Mapping[str, str] = os.environ) -> Iterator[RunningApp]:
    """The app at GROUNDWORK_URL, else a local stack on free ports in a folder that is removed afterwards.

    Raises:
        KeyError: GROUNDWORK_URL is set, and one of the others is not.
        StackError: the stack did not start.
    """
    if environment.get(URL_SETTING):
        yield _named(environment)
        return
    with TemporaryDirectory(prefix="groundwork-report-") as folder, own_stack(Path(folder)) as stack:
        yield app_of(stack)


@contextmanager
def own_stack(folder: Path) -> Iterator[LocalStack]:
    """A local stack without any documents."""
    with LocalStack(StackSettings(FREE_PORTS, folder)) as stack:
        yield stack


def app_of(stack: LocalStack) -> RunningApp:
    """A running stack as the report sees it."""
    return RunningApp(
        base_url=stack.base_url,
        token=stack.token(ANNA),
        storage_connection_string=stack.storage_connection_string,
        search_endpoint=stack.search_url,
        search_key=stack.secrets.search_key,
        check=stack.check,
    )


def _named(environment: Mapping[str, str]) -> RunningApp:
    return RunningApp(
        base_url=environment[URL_SETTING].rstrip("/"),
        token=environment["GROUNDWORK_TOKEN"],
        storage_connection_string=environment["DocumentsStorage"],
        search_endpoint=environment["AZURE_SEARCH_ENDPOINT"],
        search_key=environment["AZURE_SEARCH_API_KEY"],
        content_index=environment.get("AZURE_SEARCH_CONTENT_INDEX") or _DEFAULT_INDEX,
    )
