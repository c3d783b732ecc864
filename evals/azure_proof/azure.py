"""The Azure target of the proof kit, controlled through azd and the Azure CLI. It changes nothing outside its
azd environment.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import httpx

from evals.azure_proof.code import count_functions
from evals.azure_proof.evidence import Check, Facts, Outcome, check
from evals.azure_proof.shell import CommandFailedError, Shell

# Preview version of the API, because no stable version supports the `debug` option yet.
_SEARCH_API = "2025-03-01-preview"
_SEARCH_RESOURCE = "https://search.azure.com"
# Timeout of `azd up` in seconds. It usually takes half an hour, ten minutes of which are the remote build.
_UP_TIMEOUT_S = 3600.0
# Time limit for a role assignment to take effect. According to the documentation, this takes at most ten
# minutes.
_ROLE_TIMEOUT_S = 900.0
# A token is renewed after this time. Entra ID tokens are valid for at least an hour.
_TOKEN_LIFE = timedelta(minutes=30)
_OLDEST_AZD = (1, 26)
# Quotas in thousands of tokens per minute, as in main.bicep.
_CHAT_QUOTA, _EMBEDDING_QUOTA = 30, 120
_EXAMPLE_ENV = {
    "AZURE_RESOURCE_GROUP": "rg-ENVIRONMENT",
    "AZURE_FUNCTION_APP_NAME": "func-NAME",
    "GROUNDWORK_URL": "https://func-NAME.azurewebsites.net",
    "GROUNDWORK_SCOPE": "api://APP-ID/.default",
    "AUTH_CLIENT_ID": "APP-ID",
    "AUTH_TENANT_ID": "TENANT",
    "AZURE_SEARCH_ENDPOINT": "https://srch-NAME.search.windows.net",
    "CONTENT_STORAGE_NAME": "stdocsNAME",
    "EMBEDDING_DIMENSIONS": "1024",
    "AZURE_PRINCIPAL_ID": "OBJECT-ID",
    "AZURE_PRINCIPAL_TYPE": "User",
}


@dataclass(frozen=True)
class Place:
    """Subscription, regions and environment of the deployment, as chosen on the command line."""

    environment: str
    subscription: str
    location: str
    openai_location: str
    # Sign in as an application instead of a user, for pipelines.
    as_application: bool = False


def first_health(url: str) -> str:
    """Wait until the app responds, and return its health report. The first start takes a while."""
    until = time.monotonic() + 300
    while True:
        try:
            answer = httpx.get(f"{url}/api/health", timeout=60)
            if answer.is_success or time.monotonic() > until:
                return f"{answer.status_code} {answer.text[:100]}"
        except httpx.TransportError as failed:
            if time.monotonic() > until:
                return f"no answer: {type(failed).__name__}"
        time.sleep(5)


@dataclass
class AzureTarget:
    """The app in an Azure subscription. See `Target` for the operations.

    Attributes:
        root: of the repository.
        sleep: waits; a no-op in a dry run.
        health: requests the app's health; a no-op in a dry run.
    """

    place: Place
    shell: Shell
    root: Path
    sleep: Callable[[float], object] = time.sleep
    health: Callable[[str], str] = first_health
    _token: tuple[str, datetime] | None = field(default=None, init=False)
    _has_role: bool = field(default=False, init=False)
    kind: Literal["azure"] = field(default="azure", init=False)

    @property
    def url(self) -> str:
        return self._value("GROUNDWORK_URL")

    def prerequisites(self) -> Outcome:
        """Check programs, sign-in, region and quota, without changing anything."""
        checks = [
            self._succeeds("azd 1.26 or newer", self._azd_version),
            self._succeeds("the Azure CLI is signed in to the subscription", self._account),
            self._succeeds("azd is signed in", lambda: self._run("azd", "auth", "login", "--check-status")),
            self._succeeds("Node 20 or newer, which builds the page", self._node_version),
            self._succeeds(f"Flex Consumption in {self.place.location}", self._region),
            self._succeeds("quota for the chat model", lambda: self._quota("gpt-5.4-mini", _CHAT_QUOTA)),
            self._succeeds(
                "quota for the embedding model",
                lambda: self._quota("text-embedding-3-large", _EMBEDDING_QUOTA),
            ),
        ]
        return Outcome(checks=tuple(checks))

    def deploy(self) -> Outcome:
        """Create the azd environment, register the app, show the planned changes and run `azd up`."""
        began = time.monotonic()
        name = self.place.environment
        environments = self._run("azd", "env", "list", "--output", "json", example="[]")
        if name not in [one.get("Name") for one in json.loads(environments or "[]")]:
            self._run(
                *("azd", "env", "new", name, "--subscription", self.place.subscription),
                *("--location", self.place.location, "--no-prompt"),
            )
        self._azd("env", "set", "AZURE_OPENAI_LOCATION", self.place.openai_location)
        # Skip the smoke test of the azd hook, which the steps of this kit replace.
        self._azd("env", "set", "GROUNDWORK_SMOKE_TEST", "skip")
        if self.place.as_application:
            self._azd("env", "set", "GROUNDWORK_SETTINGS", json.dumps({"ALLOW_APPLICATIONS": "true"}))
        # With an instance that is always ready, there would be no cold start to measure.
        self._azd("env", "set", "ALWAYS_READY_HTTP", "0")
        self._azd("env", "set", "ALWAYS_READY_DURABLE", "0")
        self._register()
        preview = self._azd("provision", "--preview", "--no-prompt", timeout_s=_UP_TIMEOUT_S)
        self._azd("up", "--no-prompt", timeout_s=_UP_TIMEOUT_S)
        self._register()
        self.__dict__.pop("_values", None)
        health = self.health(self.url)
        seconds = round(time.monotonic() - began)
        return Outcome(
            checks=(check("the app answers on /api/health", health, passed="ok" in health),),
            figures={"seconds of azd up and registration": seconds},
            notes=(f"Planned changes according to what-if: {' '.join(preview.split())[:2000]}",),
        )

    def facts(self) -> Facts:
        """Return the region, the deployed models, and the versions of azd and Python."""
        deployments = self._run(
            *("az", "cognitiveservices", "account", "deployment", "list"),
            *("--resource-group", self._value("AZURE_RESOURCE_GROUP"), "--name", self._account_name),
            *("--query", "[].{model: properties.model.name, version: properties.model.version}"),
            *("--output", "json"),
            example="[]",
        )
        models = [f"{one['model']} {one['version']}" for one in json.loads(deployments or "[]")]
        return Facts(
            target="azure",
            url=self.url,
            region=f"{self.place.location} (models: {self.place.openai_location})",
            models=", ".join(models),
            versions={"azd": self._azd_version(), "Python of the kit": sys.version.split()[0]},
        )

    def token(self) -> str:
        """Return an Azure CLI token for the app. It is renewed after half an hour."""
        now = datetime.now(UTC)
        if self._token is None or self._token[1] < now:
            token = self._run(
                *("az", "account", "get-access-token", "--tenant", self._value("AUTH_TENANT_ID")),
                *("--scope", self._value("GROUNDWORK_SCOPE"), "--query", "accessToken", "--output", "tsv"),
                example="TOKEN",
            )
            self._token = (token, now + _TOKEN_LIFE)
        return self._token[0]

    def write_blob(self, name: str, path: Path) -> None:
        """Write a file to the documents container. The first call grants the required role to the kit's
        user.
        """
        until = time.monotonic() + _ROLE_TIMEOUT_S
        if not self._has_role:
            self._grant_storage()
            self._has_role = True
        while True:
            try:
                self._blob("upload", name, "--file", str(path), "--overwrite")
                return
            except CommandFailedError:
                if time.monotonic() > until:
                    raise
                # Wait until the role assignment has taken effect.
                self.sleep(30)

    def delete_blob(self, name: str) -> None:
        """Delete a file from the documents container."""
        self._blob("delete", name)

    @contextmanager
    def slow_model(self) -> Iterator[None]:
        """Do nothing, because hosted models are slow enough."""
        yield

    def restart(self) -> None:
        """Restart all instances of the app."""
        self._functionapp("restart")

    def cool_down(self) -> None:
        """Wait a second. Without always-ready instances, the app goes idle by itself during the pause of the
        cold-start step.
        """
        self.sleep(1)

    def functions(self) -> tuple[int, int]:
        """Return the number of functions that Azure found in the deployment, and the number in this
        checkout.
        """
        count = self._run(
            *("az", "functionapp", "function", "list", *self._app_arguments),
            *("--query", "length(@)", "--output", "tsv"),
            example="0",
        )
        return int(count or 0), count_functions(self.root)

    def hybrid_scores(self, index: str, question: str) -> list[dict[str, Any]]:
        """Send a hybrid query directly to the search service, with the kit's identity and a constant vector.
        Return the debug information about each hit.
        """
        token = self._run(
            *("az", "account", "get-access-token", "--resource", _SEARCH_RESOURCE),
            *("--query", "accessToken", "--output", "tsv"),
            example="",
        )
        if not token:
            return []
        dimensions = int(self._value("EMBEDDING_DIMENSIONS"))
        values = [1 / dimensions] * dimensions
        vector = {"kind": "vector", "vector": values, "fields": "content_vector", "k": 10}
        body = {"search": question, "vectorQueries": [vector], "debug": "all", "top": 3}
        answer = httpx.post(
            f"{self._value('AZURE_SEARCH_ENDPOINT')}/indexes/{index}/docs/search",
            params={"api-version": _SEARCH_API},
            headers={"Authorization": f"Bearer {token}"},
            json=body,
            timeout=60,
        )
        rows: list[dict[str, Any]] = answer.raise_for_status().json()["value"]
        return [row.get("@search.documentDebugInfo") or {} for row in rows]

    def bill_command(self) -> str:
        """Return an Azure CLI command that queries the costs of the resource group. It also works after the
        group was deleted.
        """
        today = datetime.now(UTC).date()
        query = {
            "type": "ActualCost",
            "timeframe": "Custom",
            "timePeriod": {"from": f"{today}T00:00:00Z", "to": f"{today + timedelta(days=1)}T23:59:59Z"},
            "dataset": {
                "granularity": "None",
                "aggregation": {"total": {"name": "Cost", "function": "Sum"}},
                "grouping": [{"type": "Dimension", "name": "MeterCategory"}],
                "filter": {
                    "dimensions": {
                        "name": "ResourceGroupName",
                        "operator": "In",
                        "values": [self._value("AZURE_RESOURCE_GROUP")],
                    }
                },
            },
        }
        address = (
            f"https://management.azure.com/subscriptions/{self.place.subscription}"
            "/providers/Microsoft.CostManagement/query?api-version=2023-11-01"
        )
        return f"az rest --method post --url '{address}' --body '{json.dumps(query)}'"

    def teardown(self) -> Outcome:
        """Permanently delete the resource group and the app registration, and check that both are gone."""
        group, app_id = self._value("AZURE_RESOURCE_GROUP"), self._value("AUTH_CLIENT_ID")
        self._azd("down", "--purge", "--force", "--no-prompt", timeout_s=_UP_TIMEOUT_S)
        if app_id:
            self._run("az", "ad", "app", "delete", "--id", app_id)
        left = self._run("az", "group", "exists", "--name", group, example="false") if group else "false"
        return Outcome(
            checks=(check(f"the resource group {group} is gone", f"exists: {left}", passed=left == "false"),),
            notes=(f"The app registration {app_id} was deleted.",) if app_id else (),
        )

    @cached_property
    def _values(self) -> dict[str, str]:
        text = self._azd("env", "get-values", "--output", "json", example=json.dumps(_EXAMPLE_ENV))
        values: dict[str, str] = json.loads(text or "{}")
        return values

    def _value(self, name: str) -> str:
        return self._values.get(name, "")

    @cached_property
    def _account_name(self) -> str:
        return self._run(
            *("az", "cognitiveservices", "account", "list"),
            *("--resource-group", self._value("AZURE_RESOURCE_GROUP")),
            *("--query", "[?contains(name, 'openai')].name | [0]", "--output", "tsv"),
            example="cog-openai-NAME",
        )

    @property
    def _app_arguments(self) -> tuple[str, ...]:
        group, name = self._value("AZURE_RESOURCE_GROUP"), self._value("AZURE_FUNCTION_APP_NAME")
        return ("--resource-group", group, "--name", name)

    def _register(self) -> None:
        """Run the registration script of docs/deploy.md for this environment, even if azd has another default
        environment.
        """
        self._run("env", f"AZURE_ENV_NAME={self.place.environment}", "sh", "infra/registration.sh")

    def _functionapp(self, verb: str) -> str:
        return self._run("az", "functionapp", verb, *self._app_arguments)

    def _grant_storage(self) -> None:
        account = self._run(
            *("az", "storage", "account", "show", "--name", self._value("CONTENT_STORAGE_NAME")),
            *("--query", "id", "--output", "tsv"),
            example="STORAGE-ID",
        )
        self._run(
            *("az", "role", "assignment", "create", "--role", "Storage Blob Data Contributor"),
            *("--assignee-object-id", self._value("AZURE_PRINCIPAL_ID")),
            *("--assignee-principal-type", self._value("AZURE_PRINCIPAL_TYPE") or "User"),
            *("--scope", account, "--output", "none"),
        )

    def _blob(self, verb: str, name: str, *more: str) -> None:
        self._run(
            *("az", "storage", "blob", verb, "--auth-mode", "login", "--only-show-errors"),
            *("--account-name", self._value("CONTENT_STORAGE_NAME"), "--container-name", "documents"),
            *("--name", name, *more),
        )

    def _azd(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        verb, environment = list(command), ["--environment", self.place.environment]
        return self.shell.run("azd", *verb, *environment, example=example, timeout_s=timeout_s)

    def _run(self, *command: str, example: str = "") -> str:
        return self.shell.run(*command, example=example)

    def _succeeds(self, expected: str, look: Any) -> Check:
        try:
            return check(expected, look() or "yes", passed=True)
        except (CommandFailedError, ValueError) as failed:
            return check(expected, failed, passed=False)

    def _azd_version(self) -> str:
        text = self._run("azd", "version", "--output", "json", example='{"azd": {"version": "1.26.0"}}')
        version = str(json.loads(text)["azd"]["version"])
        if tuple(map(int, version.split("-")[0].split(".")[:2])) < _OLDEST_AZD:
            raise ValueError(f"azd {version} is too old; install a newer version")
        return version

    def _node_version(self) -> str:
        version = self._run("node", "--version", example="v20.0.0")
        if int(version.removeprefix("v").partition(".")[0]) < 20:
            raise ValueError(f"Node {version} is too old; install a newer version")
        return version

    def _account(self) -> str:
        return self._run(
            *("az", "account", "show", "--subscription", self.place.subscription),
            *("--query", "name", "--output", "tsv"),
            example="a subscription",
        )

    def _region(self) -> str:
        names = self._run(
            *("az", "functionapp", "list-flexconsumption-locations", "--query", "[].name"),
            *("--output", "tsv"),
            example=self.place.location,
        )
        if self.place.location not in {name.replace(" ", "").lower() for name in names.splitlines()}:
            raise ValueError(f"{self.place.location} is not a region of this service")
        return self.place.location

    def _quota(self, model: str, needed: int) -> str:
        text = self._run(
            *("az", "cognitiveservices", "usage", "list", "--location", self.place.openai_location),
            *("--query", f"[?name.value=='OpenAI.GlobalStandard.{model}'].[limit, currentValue] | [0]"),
            *("--output", "json"),
            example=f"[{needed}, 0]",
        )
        limit, used = json.loads(text) if text not in ("", "null") else (0, 0)
        if limit - used < needed:
            raise ValueError(
                f"{limit - used:.0f} thousand tokens per minute are available, {needed} are needed"
            )
        return f"{limit - used:.0f} thousand tokens per minute are available"
