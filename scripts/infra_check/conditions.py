"""What is only sometimes there, what must be there before, and what the next deployment must still know."""

import json
import re
from collections.abc import Iterator

from tree_sitter import Node

from scripts.infra_check.project import Project
from scripts.infra_check.reader import BicepFile, Declaration, text_of

# A module, and what must be done before it although it takes no output of it.
_AFTER = {
    "functionApp": {"roles", "privateEndpoints"},  # the app reads its package and its keys when it is made
    "deletionSubscription": {"roles"},  # Event Grid tries whether it may write there
    "hostName": {"auth"},  # the platform refuses two changes of one app at the same time
}
_IN_TURN = (("noFtp", "settings"), ("noBasicScm", "noFtp"))
"""The same of resources of function-app.bicep."""
KEPT = {"BUDGET_START_DATE": "budgetStartDate", "CUSTOM_HOST_NAME_BOUND": "boundHostName"}
"""Outputs that azd gives to the parameters of the next deployment."""


def condition_faults(project: Project) -> Iterator[str]:
    """Every fault of conditions, order and memory."""
    for file in project.files.values():
        yield from _empty_names(file)
        yield from _absent_outputs(file)
    yield from _order(project)
    yield from _kept(project)
    yield from _clock(project)


def condition_of(node: Node | None) -> str:
    """The text between the brackets of `if (...)`; empty when there is no condition."""
    if node is None or node.type != "if_statement":
        return ""
    return text_of(node.named_children[0]).removeprefix("(").removesuffix(")")


def _empty_names(file: BicepFile) -> Iterator[str]:
    """A name is evaluated whatever the condition says, and Azure refuses one that is empty."""
    for resource in file.of("resource"):
        name = text_of(resource.property("name"))
        if condition_of(resource.value) == f"!empty({name})":
            yield f"{file.path.name}:{resource.line}: {resource.name} has no name where {name} is empty"


def _absent_outputs(file: BicepFile) -> Iterator[str]:
    """The outputs of a module with a condition are asked for under that condition, or there are none."""
    conditions = {module.name: condition_of(module.value) for module in file.of("module")}
    for node in file.nodes:
        if node.type != "member_expression" or not text_of(node).endswith(".outputs"):
            continue
        module = text_of(node).removesuffix(".outputs")
        wanted = conditions.get(module, "")
        if wanted and wanted not in _conditions_around(node):
            where = f"{file.path.name}:{node.start_point[0] + 1}"
            yield f"{where}: {module} is there only if {wanted}, which is not asked here"


def _conditions_around(node: Node) -> set[str]:
    """Conditions that hold where the node stands: of ternaries whose first branch it is in, and of `if`."""
    found = set()
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "ternary_expression" and parent.named_children[1].id == child.id:
            found.add(text_of(parent.named_children[0]))
        found.add(condition_of(parent))
        child, parent = parent, parent.parent
    return found


def _depends(declaration: Declaration | None) -> set[str]:
    node = declaration.property("dependsOn") if declaration is not None else None
    return {text_of(item) for item in node.named_children} if node is not None else set()


def _order(project: Project) -> Iterator[str]:
    for name, before in _AFTER.items():
        for missing in sorted(before - _depends(project.module(name))):
            yield f"main.bicep: {name} does not wait for {missing} (dependsOn)"
    resources = {found.name: found for found in project.files["function-app.bicep"].of("resource")}
    for name, before_it in _IN_TURN:
        if before_it not in _depends(resources.get(name)):
            yield f"function-app.bicep: {name} does not wait for {before_it} (dependsOn)"


def _kept(project: Project) -> Iterator[str]:
    text = (project.root / "infra/bicep/main.parameters.json").read_text(encoding="utf-8")
    given = json.loads(text)["parameters"]
    outputs = {found.name for found in project.files["main.bicep"].of("output")}
    for output, parameter in KEPT.items():
        if output not in outputs:
            yield f"main.bicep: no output {output}: a second deployment would not know {parameter}"
        if given.get(parameter, {}).get("value") != f"${{{output}=}}":
            yield f"main.parameters.json: {parameter} is not what the deployment before gave out as {output}"


def _clock(project: Project) -> Iterator[str]:
    """The clock says something else each time: it may stand in for what is empty, and nowhere else."""
    main = project.files["main.bicep"]
    for param in main.of("param"):
        if "utcNow(" not in text_of(param.value):
            continue
        uses = len(re.findall(rf"\b{param.name}\b", main.text)) - 1
        guarded = len(re.findall(rf"empty\((\w+)\) \? {param.name} : \1\b", main.text))
        told = len(re.findall(rf"= {param.name}\.'\)", main.text))  # a description of the other parameter
        if uses - told != guarded:
            yield f"main.bicep:{param.line}: {param.name} changes with each deployment, and more hangs on it"
