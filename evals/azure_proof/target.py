"""What the kit needs of the platform that the app runs on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from evals.azure_proof.client import AppClient
from evals.azure_proof.evidence import Facts, Outcome


class NotHereError(RuntimeError):
    """This target has no such thing; the text says why. The check is skipped, and the evidence says so."""


class Target(Protocol):
    """A place where the app can be deployed, disturbed and removed."""

    @property
    def kind(self) -> Literal["azure", "local"]: ...

    @property
    def url(self) -> str:
        """The app's address, once it is deployed."""
        ...

    def prerequisites(self) -> Outcome:
        """Check what a deployment needs."""
        ...

    def deploy(self) -> Outcome:
        """Deploy the app, or bring a deployment up to date."""
        ...

    def facts(self) -> Facts:
        """Return what is deployed and where."""
        ...

    def token(self) -> str:
        """Return a token of the person who runs the kit."""
        ...

    def write_blob(self, name: str, path: Path) -> None:
        """Write a file into the container of the documents, as an operator would."""
        ...

    def delete_blob(self, name: str) -> None:
        """Delete a file of that container."""
        ...

    def slow_model(self) -> Any:
        """Return a context in which answers take long enough to be interrupted."""
        ...

    def restart(self) -> None:
        """Restart the app, whatever it is doing."""
        ...

    def cool_down(self) -> None:
        """Let the app go cold, so that the next request waits for a start."""
        ...

    def functions(self) -> tuple[int, int]:
        """Return how many functions the platform has found, and how many the code has."""
        ...

    def hybrid_scores(self, index: str, question: str) -> list[dict[str, Any]]:
        """Return debug information of the hits of a hybrid query, straight from the search service.

        Raises:
            NotHereError: this search service has no `debug`.
        """
        ...

    def bill_command(self) -> str:
        """Return the command that reads the bill a day later; "" if there is none."""
        ...

    def teardown(self) -> Outcome:
        """Remove everything that `deploy` made, and look whether it is gone."""
        ...


@dataclass
class World:
    """What a step works with.

    Attributes:
        out: the folder for evidence and pictures.
        pause_s: how long the app stays idle before a cold start.
    """

    target: Target
    out: Path
    pause_s: float

    @contextmanager
    def client(self) -> Iterator[AppClient]:
        """Connect to the app as the person who runs the kit."""
        client = AppClient(self.target.url, self.target.token)
        try:
            yield client
        finally:
            client.close()
