"""Answers of the health endpoints."""

from typing import Literal

from pydantic import Field

from shared.models.base import Model


class HealthView(Model):
    """The process answers."""

    status: Literal["ok"] = "ok"


class ReadinessView(Model):
    """Whether every store is in reach."""

    status: Literal["ok", "unavailable"]
    failed: dict[str, str] = Field(description="Which is not (search, storage, tables), with an error code.")
