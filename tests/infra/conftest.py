"""Fixtures with the Bicep compiler's results for infra/bicep. Without the compiler, these tests are skipped,
but in CI they fail.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT
from tests.infra.compiler import NOT_FOUND, Compiler, find_compiler

ROOTS = ("main.bicep", "modules/event-subscriptions.bicep")
BICEP = ROOT / "infra/bicep"
PARAMETERS = ROOT / "tests/infra/parameters"
SETS = sorted(path.stem for path in PARAMETERS.glob("*.bicepparam"))


@dataclass(frozen=True)
class Deployment:
    """The predicted result of a deployment with one set of parameters."""

    resources: list[dict[str, Any]]
    outputs: dict[str, Any]
    diagnostics: list[str]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return all resources of a type, such as `Microsoft.Web/sites`."""
        return [resource for resource in self.resources if resource["type"] == kind]

    def names(self, kind: str, account: str = "") -> set[str]:
        """Return the last parts of the names of all resources of a type. `account` restricts them to the
        account whose name starts with it.
        """
        resource_names = (str(resource["name"]) for resource in self.of(kind))
        return {name.rpartition("/")[2] for name in resource_names if name.startswith(account)}

    def config(self, name: str) -> dict[str, Any]:
        """Return the properties of one of the app's configurations, such as `appsettings` or
        `authsettingsV2`.
        """
        configurations = (
            one for one in self.of("Microsoft.Web/sites/config") if one["name"].endswith(f"/{name}")
        )
        properties: dict[str, Any] = next(configurations)["properties"]
        return properties

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings of the app."""
        return self.config("appsettings")


@pytest.fixture(scope="session")
def compiler() -> Iterator[Compiler]:
    path = find_compiler()
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(NOT_FOUND)
    with Compiler(path) as running:
        yield running


@pytest.fixture(scope="session")
def templates(compiler: Compiler) -> dict[str, dict[str, Any]]:
    """Return the compiler's result for each root template."""
    return {name: compiler.compile(BICEP / name) for name in ROOTS}


@pytest.fixture(scope="session")
def deployments(compiler: Compiler) -> dict[str, Deployment]:
    """Return the predicted deployment for each set of parameters, by name."""
    predicted = {
        name: compiler.predict(
            PARAMETERS / f"{name}.bicepparam", "rg-test" if name == "event_subscriptions" else None
        )
        for name in SETS
    }
    return {
        name: Deployment(one["predictedResources"], one.get("outputs") or {}, one["diagnostics"])
        for name, one in predicted.items()
    }
