"""Traces and metrics that leave a process over OTLP or to Application Insights, or are not exported."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.services import LEAST_ENVIRONMENT
from tests.http_server import Answer, HttpServer, Request, json_answer
from tests.otlp_receiver import otlp_receiver

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.e2e

KEY = "11111111-2222-3333-4444-555555555555"


def export(*arguments: str, **settings: str) -> str:
    """Return the output of a process that exports to the receivers in its settings and then ends."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.telemetry.exporting", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **LEAST_ENVIRONMENT, **settings},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


@contextmanager
def insights() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the URL of a stand-in for Application Insights' ingestion, and the received envelopes."""
    envelopes: list[dict[str, Any]] = []

    def respond(request: Request) -> Answer:
        compressed = request.headers.get("Content-Encoding") == "gzip"
        batch = json.loads(gzip.decompress(request.body) if compressed else request.body)
        envelopes.extend(batch)
        return json_answer({"itemsReceived": len(batch), "itemsAccepted": len(batch), "errors": []})

    with HttpServer(respond) as server:
        yield server.url, envelopes


def test_an_otlp_receiver_gets_spans_metrics_and_its_key() -> None:
    with otlp_receiver() as receiver:
        output = export(
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_EXPORTER_OTLP_HEADERS="X-Api-Key=SECRET",
            OTEL_SERVICE_NAME="groundwork-test",
        )
    assert [span.name for span in receiver.spans] == ["request", "perform_step"]
    assert len({span.trace_id for span in receiver.spans}) == 1
    assert {span.service for span in receiver.spans} == {"groundwork-test"}
    # Values counted just before the end of the process are exported as well.
    assert "groundwork.test" in receiver.metrics
    keys = [{name.lower(): value for name, value in one.items()}["x-api-key"] for one in receiver.headers]
    assert set(keys) == {"SECRET"}
    assert "SECRET" not in output


def test_a_receiver_that_is_down_is_told_of_once_and_harms_nothing() -> None:
    output = export("--twice", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert "WORK DONE" in output
    assert output.count("telemetry.export_failed") == 1
    assert "127.0.0.1" not in output
    assert "Traceback" not in output


def test_application_insights_gets_requests_and_what_they_depend_on() -> None:
    with insights() as (address, envelopes):
        export(APPLICATIONINSIGHTS_CONNECTION_STRING=f"InstrumentationKey={KEY};IngestionEndpoint={address}/")
    kinds = [one["data"]["baseType"] for one in envelopes]
    assert kinds.count("RequestData") == 1
    assert kinds.count("RemoteDependencyData") == 1
    requests = [one for one in envelopes if one["data"]["baseType"] == "RequestData"]
    assert {one["data"]["baseData"]["name"] for one in requests} == {"request"}
    assert {one["iKey"] for one in envelopes} == {KEY}
    assert "groundwork.test" in json.dumps(envelopes)


def test_a_receiver_that_cannot_be_made_is_told_of_and_harms_nothing() -> None:
    output = export(
        APPLICATIONINSIGHTS_CONNECTION_STRING="InstrumentationKey=SECRET;IngestionEndpoint=https://x.example"
    )
    assert "WORK DONE" in output
    assert "telemetry.receiver_invalid" in output
    assert "SECRET" not in output
