"""Fixtures for tests of the API over HTTP in this process, with the samples ingested."""

from collections.abc import Iterator

import pytest

from tests.sample_app import SampleApp, sample_app
from tests.servers import ModelServer


@pytest.fixture(scope="package")
def app(tmp_path_factory: pytest.TempPathFactory, model_server: ModelServer) -> Iterator[SampleApp]:
    """Yield the app with the samples, shared by all files of this package."""
    with sample_app(tmp_path_factory.mktemp("api"), model_server, sharing=True) as app:
        yield app
