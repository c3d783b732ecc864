"""Interface of the platforms that the proof kit can test: the operations that differ between Azure and a
local stack.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from evals.azure_proof.client import AppClient
from evals.azure_proof.evidence import Facts, Outcome


class NotHereError(RuntimeError):
    """Error raised if the target doesn't support an operation. The check that needs it is skipped, with this
    message as the reason.
    """


class Target(Protocol):
    """A platform on which the kit can deploy, restart and delete the app."""

    @property
    def kind(self) -> Literal["azure", "local"]: ...

    @property
    def url(self) -> str:
        """The URL of the deployed app."""
        ...

    def prerequisites(self) -> Outcome:
        """Check the requirements of a deployment, without changing anything."""
        ...

    def deploy(self) -> Outcome:
        """Deploy the app, or update an earlier deployment."""
        ...

    def facts(self) -> Facts:
        """Return the versions and the environment of the deployment."""
        ...

    def token(self) -> str:
        """Return a token with which the kit's user calls the app."""
        ...

    def write_blob(self, name: str, path: Path) -> None:
        """Write a file to the documents container, as an operator would."""
        ...

    def delete_blob(self, name: str) -> None:
        """Delete a file from the documents container."""
        ...

    def slow_model(self) -> Any:
        """Return a context manager that makes answers take long enough to be interrupted."""
        ...

    def restart(self) -> None:
        """Restart the app while a question is in progress."""
        ...

    def cool_down(self) -> None:
        """Make sure that the next request, sent after a pause, causes a cold start."""
        ...

    def functions(self) -> tuple[int, int]:
        """Return the number of functions that the platform found in the deployment, and the number in this
        checkout.
        """
        ...

    def hybrid_scores(self, index: str, question: str) -> list[dict[str, Any]]:
        """Return the search service's debug information about the hits of a hybrid query.

        Raises:
            NotHereError: if the search service doesn't support `debug`.
        """
        ...

    def bill_command(self) -> str:
        """Return the command that queries the bill a day later, or "" if there is no bill."""
        ...

    def teardown(self) -> Outcome:
        """Delete everything that `deploy` created, and check that it is gone."""
        ...


@dataclass
class World:
    """The context of all steps: the target, and the options of the kit.

    Attributes:
        out: folder for evidence and screenshots.
        pause_s: idle time of the app before a cold start.
    """

    target: Target
    out: Path
    pause_s: float

    @contextmanager
    def client(self) -> Iterator[AppClient]:
        """Yield a client of the app that acts as the kit's user."""
        client = AppClient(self.target.url, self.target.token)
        try:
            yield client
        finally:
            client.close()
