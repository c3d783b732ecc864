"""How it is deployed: who is let in without signing in, the parameters, and azure.yaml."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from scripts.infra_check.project import Project
from scripts.infra_check.reader import text_of

GUARDED_BY_ITSELF = frozenset({"/api/messages", "/runtime/webhooks/blobs"})
"""The bot's channel proves itself by its token, Event Grid by the key in the address."""


def deployment_faults(project: Project) -> Iterator[str]:
    """Every fault of the sign-in, the parameters and azure.yaml."""
    yield from _authentication(project)
    yield from _parameters(project)
    yield from _azd(project)


def _authentication(project: Project) -> Iterator[str]:
    auth = project.files["auth.bicep"]
    paths = next((param.value for param in auth.of("param") if param.name == "excludedPaths"), None)
    found = {text_of(item) for item in paths.named_children} if paths is not None else set()
    for path in sorted(found ^ (project.open_routes | GUARDED_BY_ITSELF)):
        yield f"auth.bicep: {path} is {'open to everybody' if path in found else 'behind the sign-in'}"
    wanted = {
        "requireAuthentication": "true",
        "unauthenticatedClientAction": "Return401",
        "excludedPaths": "excludedPaths",
    }
    resource = next(iter(one for one in auth.of("resource") if not one.is_existing), None)
    for name, value in wanted.items():
        node = resource.property("properties", "globalValidation", name) if resource is not None else None
        if text_of(node) != value:
            yield f"auth.bicep: {name} is not {value}"
    if resource is None or text_of(resource.property("properties", "platform", "enabled")) != "true":
        yield "auth.bicep: authentication is not switched on"


def _parameters(project: Project) -> Iterator[str]:
    given = json.loads((project.root / "infra/bicep/main.parameters.json").read_text(encoding="utf-8"))[
        "parameters"
    ]
    params = {param.name: param for param in project.files["main.bicep"].of("param")}
    for name in sorted(set(given) - set(params)):
        yield f"main.parameters.json: main.bicep has no parameter {name}"
    for name, param in sorted(params.items()):
        if param.value is None and name not in given:
            yield f"main.parameters.json: main.bicep wants {name}"


def _azd(project: Project) -> Iterator[str]:
    azure: dict[str, Any] = yaml.safe_load((project.root / "azure.yaml").read_text(encoding="utf-8"))
    if azure.get("infra") != {"provider": "bicep", "path": "infra/bicep", "module": "main"}:
        yield "azure.yaml: infra is not bicep, infra/bicep, main"
    services = azure.get("services", {})
    tagged = re.findall(r"'azd-service-name': '([\w-]+)'", project.files["function-app.bicep"].text)
    if sorted(services) != sorted(tagged):
        yield f"azure.yaml: services {sorted(services)}, tags {sorted(tagged)}"
    for name, service in services.items():
        if (service.get("host"), service.get("language")) != ("function", "python"):
            yield f"azure.yaml: {name} is no function in Python"
    if "'azd-env-name': environmentName" not in project.files["main.bicep"].text:
        yield "main.bicep: azd finds its resources by the tag azd-env-name"
    yield from _hooks(project, azure.get("hooks", {}))


def _hooks(project: Project, hooks: dict[str, Any]) -> Iterator[str]:
    if "postdeploy" not in hooks:
        yield "azure.yaml: nothing makes the subscription to creations after a deployment"
    for hook, steps in hooks.items():
        for step in [steps] if "run" in steps else steps.values():
            if not (project.root / str(step["run"]).split()[0]).is_file():
                yield f"azure.yaml: {hook} runs {step['run']}, which is not there"
