"""Settings of traces and metrics, for `Settings`. Nothing is sent, nor any SDK imported, unless asked."""

import re
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from shared.settings_base import EnvironmentModel

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HEADER = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9_-]{0,99}\s*=[\x20-\x2b\x2d-\x7e]*")


class TelemetrySettings(EnvironmentModel):
    """Where traces and metrics go. The names that OpenTelemetry and Azure have for them are kept."""

    otel_exporter_otlp_endpoint: str | None = Field(
        default=None,
        description="Receiver of traces and metrics by OTLP over HTTP, without /v1/traces; unset = none. "
        "https, or http without headers.",
        examples=["http://localhost:4318"],
    )
    otel_exporter_otlp_headers: str | None = Field(
        default=None,
        description="Headers for that receiver, such as its key: name=value, comma separated.",
        repr=False,
    )
    otel_service_name: str = Field(
        default="groundwork", min_length=1, max_length=100, description="Name of the app in traces."
    )
    applicationinsights_connection_string: str | None = Field(
        default=None,
        description="Application Insights resource that gets traces and metrics; unset = none.",
        repr=False,
    )
    applicationinsights_authentication_string: str | None = Field(
        default=None,
        description="As the platform has it: with Authorization=AAD the managed identity signs in there; "
        "ClientId= names it.",
        examples=["Authorization=AAD"],
    )
    trace_sample_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of the traces that begin here which is recorded; one that comes with a request is "
        "recorded if its caller records it.",
    )
    trace_content: bool = Field(
        default=False,
        description="Put what models are told and what they say into traces: questions, documents, answers.",
    )

    @property
    def has_telemetry(self) -> bool:
        """Whether traces and metrics go anywhere."""
        return bool(self.otel_exporter_otlp_endpoint or self.applicationinsights_connection_string)

    @property
    def otlp_headers(self) -> dict[str, str]:
        """OTEL_EXPORTER_OTLP_HEADERS as names and values."""
        pairs = (pair.partition("=") for pair in (self.otel_exporter_otlp_headers or "").split(",") if pair)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    @model_validator(mode="after")
    def _check_telemetry(self) -> Self:
        if self.otel_exporter_otlp_endpoint is not None:
            _check_receiver(self.otel_exporter_otlp_endpoint, bool(self.otel_exporter_otlp_headers))
        headers = (self.otel_exporter_otlp_headers or "").split(",")
        if not all(_HEADER.fullmatch(header) for header in headers if header):
            raise ValueError(
                "OTEL_EXPORTER_OTLP_HEADERS is not name=value, comma separated: headers for the receiver of "
                "traces. Example: OTEL_EXPORTER_OTLP_HEADERS=x-api-key=KEY"
            )
        insights = self.applicationinsights_connection_string
        if insights is not None and "instrumentationkey=" not in insights.lower():
            raise ValueError(
                "APPLICATIONINSIGHTS_CONNECTION_STRING is no connection string: the resource that gets "
                "traces. Example: APPLICATIONINSIGHTS_CONNECTION_STRING=InstrumentationKey=…"
            )
        return self


def _check_receiver(address: str, has_headers: bool) -> None:
    parts = urlsplit(address)
    example = "Example: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise ValueError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT is not an http address: the receiver of traces. {example}"
        )
    if has_headers and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError(
            "OTEL_EXPORTER_OTLP_ENDPOINT must be https: OTEL_EXPORTER_OTLP_HEADERS go with each request. "
            "Example: OTEL_EXPORTER_OTLP_ENDPOINT=https://NAME/otlp"
        )
