"""Traces go only where a setting says so, and a receiver's key never goes there in the clear."""

import pytest
from pydantic import ValidationError

from tests.fakes.services import fake_settings

INSIGHTS = "InstrumentationKey=00000000-0000-0000-0000-000000000000;IngestionEndpoint=https://x.example"


def test_nothing_is_sent_unless_a_receiver_is_named() -> None:
    settings = fake_settings()
    assert not settings.telemetry.is_on
    assert not settings.telemetry.trace_content
    assert settings.telemetry.trace_sample_ratio == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"otel_exporter_otlp_endpoint": "http://jaeger:4318"},
        {
            "otel_exporter_otlp_endpoint": "https://collector.example/otlp",
            "otel_exporter_otlp_headers": "a=b",
        },
        {"otel_exporter_otlp_endpoint": "http://127.0.0.1:4318", "otel_exporter_otlp_headers": "a=b"},
        {"applicationinsights_connection_string": INSIGHTS},
    ],
)
def test_a_receiver_may_be(changes: dict[str, str]) -> None:
    assert fake_settings(**changes).telemetry.is_on


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"otel_exporter_otlp_endpoint": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"otel_exporter_otlp_endpoint": "grpc://collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"otel_exporter_otlp_endpoint": "https://me:it@x.example"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"otel_exporter_otlp_endpoint": "https://x.example?key=1"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (
            {"otel_exporter_otlp_endpoint": "http://x.example", "otel_exporter_otlp_headers": "a=SECRET"},
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ),
        ({"otel_exporter_otlp_headers": "SECRET"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"otel_exporter_otlp_headers": "a=SECRET\r\nb: c"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"applicationinsights_connection_string": "SECRET"}, "APPLICATIONINSIGHTS_CONNECTION_STRING"),
        ({"trace_sample_ratio": "1.5"}, "TRACE_SAMPLE_RATIO"),
        ({"otel_service_name": "x" * 101}, "OTEL_SERVICE_NAME"),
    ],
)
def test_any_other_stops_the_start_by_name_and_without_its_key(changes: dict[str, str], named: str) -> None:
    with pytest.raises(ValidationError, match=named) as refused:
        fake_settings(**changes)
    assert "SECRET" not in str(refused.value)


def test_headers_are_read_and_never_shown() -> None:
    settings = fake_settings(
        otel_exporter_otlp_endpoint="https://x.example",
        otel_exporter_otlp_headers="X-Api-Key=SECRET=1, project=p,",
    )
    assert settings.telemetry.otlp_headers == {"x-api-key": "SECRET=1", "project": "p"}
    assert "SECRET" not in repr(settings)
    assert "00000000-" not in repr(fake_settings(applicationinsights_connection_string=INSIGHTS))
