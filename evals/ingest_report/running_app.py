"""The app under test: a running deployment, or a local stack started for the report."""

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
    """The addresses and credentials of the app, its storage and its index.

    Attributes:
        check: raises if the app is known to have died.
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
    """Yield the app at GROUNDWORK_URL. Without this variable, start a local stack on free ports in a
    temporary folder.

    Raises:
        KeyError: GROUNDWORK_URL is set, but another variable is missing.
        StackError: the stack didn't start.
    """
    if environment.get(URL_SETTING):
        yield _from_environment(environment)
        return
    with TemporaryDirectory(prefix="groundwork-report-") as folder, own_stack(Path(folder)) as stack:
        yield app_of(stack)


@contextmanager
def own_stack(folder: Path) -> Iterator[LocalStack]:
    """Yield a running local stack without documents."""
    with LocalStack(StackSettings(FREE_PORTS, folder)) as stack:
        yield stack


def app_of(stack: LocalStack) -> RunningApp:
    """Return the addresses and credentials of a running local stack."""
    return RunningApp(
        base_url=stack.base_url,
        token=stack.token(ANNA),
        storage_connection_string=stack.storage_connection_string,
        search_endpoint=stack.search_url,
        search_key=stack.secrets.search_key,
        check=stack.check,
    )


def _from_environment(environment: Mapping[str, str]) -> RunningApp:
    return RunningApp(
        base_url=environment[URL_SETTING].rstrip("/"),
        token=environment["GROUNDWORK_TOKEN"],
        storage_connection_string=environment["DocumentsStorage"],
        search_endpoint=environment["AZURE_SEARCH_ENDPOINT"],
        search_key=environment["AZURE_SEARCH_API_KEY"],
        content_index=environment.get("AZURE_SEARCH_CONTENT_INDEX") or _DEFAULT_INDEX,
    )
