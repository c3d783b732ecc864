"""The operations that the kit needs from the app's platform."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from evals.azure_proof.client import AppClient
from evals.azure_proof.evidence import Facts, Outcome


class NotHereError(RuntimeError):
    """The target doesn't support an operation; the check is skipped with this message."""


class Target(Protocol):
    """A platform on which the app can be deployed, disturbed and deleted."""

    @property
    def kind(self) -> Literal["azure", "local"]: ...

    @property
    def url(self) -> str:
        """The app's URL once it is deployed."""
        ...

    def prerequisites(self) -> Outcome:
        """Check the requirements of a deployment."""
        ...

    def deploy(self) -> Outcome:
        """Deploy or update the app."""
        ...

    def facts(self) -> Facts:
        """Return the deployed version and its environment."""
        ...

    def token(self) -> str:
        """Return a token of the kit's user."""
        ...

    def write_blob(self, name: str, path: Path) -> None:
        """Write a file into the documents container, as an operator would."""
        ...

    def delete_blob(self, name: str) -> None:
        """Delete a file from the documents container."""
        ...

    def slow_model(self) -> Any:
        """Return a context in which answers take long enough to be interrupted."""
        ...

    def restart(self) -> None:
        """Restart the app while a question is in progress."""
        ...

    def cool_down(self) -> None:
        """Wait until the next request causes a cold start."""
        ...

    def functions(self) -> tuple[int, int]:
        """Return the number of functions found by the platform and in the code."""
        ...

    def hybrid_scores(self, index: str, question: str) -> list[dict[str, Any]]:
        """Return the search service's debug information for the hits of a hybrid query.

        Raises:
            NotHereError: this search service has no `debug`.
        """
        ...

    def bill_command(self) -> str:
        """Return the command that reads the bill a day later; "" if there is none."""
        ...

    def teardown(self) -> Outcome:
        """Delete everything that `deploy` created, and verify the deletion."""
        ...


@dataclass
class World:
    """The context of a step.

    Attributes:
        out: folder for evidence and screenshots.
        pause_s: idle time of the app before a cold start.
    """

    target: Target
    out: Path
    pause_s: float

    @contextmanager
    def client(self) -> Iterator[AppClient]:
        """Connect to the app as the kit's user."""
        client = AppClient(self.target.url, self.target.token)
        try:
            yield client
        finally:
            client.close()
