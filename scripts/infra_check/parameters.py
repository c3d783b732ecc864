"""What is given to a parameter: of its type, among its allowed values, no longer than the service takes."""

import json
import re
from collections.abc import Iterator

from scripts.infra_check.project import Project
from scripts.infra_check.reader import BicepFile, Declaration, properties, text_of

_TYPES = {"string": "string", "number": "int", "boolean": "bool", "array": "array", "object": "object"}
"""What a literal of the grammar is in Bicep."""
_SUFFIX_CHARS = 13  # of uniqueString()
_STORAGE_CHARS = 24
_STORAGE_NAME = re.compile(r"[a-z0-9]{3,24}")


def parameter_faults(project: Project) -> Iterator[str]:
    """Every fault of defaults, of what modules are given, and of names of storage accounts."""
    for file in project.files.values():
        for param in file.of("param"):
            yield from _default(file, param)
        for module in file.of("module"):
            called = project.files.get(module.target.rpartition("/")[2])
            if called is not None:
                yield from _given(file, module, called)
    starts = json.loads((project.root / "infra/bicep/abbreviations.json").read_text(encoding="utf-8"))
    yield from _abbreviations(project, starts)
    yield from _storage_names(project, starts)
    yield from _twice(project)


def allowed(param: Declaration) -> set[str]:
    """The values of `@allowed`; empty when any is taken."""
    return set(re.findall(r"[^\s\[\]',]+", param.decorators.get("allowed", "")))


def _limits(param: Declaration) -> tuple[float, float]:
    said = param.decorators
    return float(said.get("minValue", "-inf")), float(said.get("maxValue", "inf"))


def _default(file: BicepFile, param: Declaration) -> Iterator[str]:
    if param.value is None:
        return
    where, value = f"{file.path.name}:{param.line}: {param.name}", text_of(param.value)
    kind = _TYPES.get(param.value.type)
    if kind and kind != param.target:
        yield f"{where} is a {param.target}, its default a {kind}"
    elif kind in ("string", "int") and (choice := allowed(param)) and value not in choice:
        yield f"{where}: its default {value} is not one of {', '.join(sorted(choice))}"
    elif kind == "int" and not _limits(param)[0] <= int(value) <= _limits(param)[1]:
        yield f"{where}: its default {value} is out of its limits"


def _given(file: BicepFile, module: Declaration, called: BicepFile) -> Iterator[str]:
    node = module.property("params")
    wanted = {param.name: param for param in called.of("param")}
    own = {param.name: param for param in file.of("param")}
    for name, value in properties(node).items() if node is not None else ():
        if name not in wanted:
            continue  # symbols.py says so
        where = f"{file.path.name}:{value.start_point[0] + 1}: {name} of {called.path.name}"
        target, source = wanted[name], own.get(text_of(value)) if value.type == "identifier" else None
        kind = source.target if source is not None else _TYPES.get(value.type, target.target)
        if kind != target.target:
            yield f"{where} is a {target.target}, given is a {kind}"
        elif value.type == "string" and (choice := allowed(target)) and text_of(value) not in choice:
            yield f"{where} is not one of {', '.join(sorted(choice))}"
        elif source is not None:
            yield from _narrower(where, source, target)


def _narrower(where: str, source: Declaration, target: Declaration) -> Iterator[str]:
    """A parameter that is handed on takes nothing that the next one refuses."""
    choice, own = allowed(target), allowed(source)
    if choice and not own:
        yield f"{where} is one of {', '.join(sorted(choice))}; {source.name} may be anything"
    elif choice and own - choice:
        yield f"{where} refuses {', '.join(sorted(own - choice))}, which {source.name} takes"
    (least, most), (least_next, most_next) = _limits(source), _limits(target)
    if least < least_next or most > most_next:
        yield f"{where} has narrower limits than {source.name}, which is handed on"


def _abbreviations(project: Project, starts: dict[str, str]) -> Iterator[str]:
    used = set(re.findall(r"(?<!')\babbreviations\.(\w+)", project.files["main.bicep"].text))
    for name in sorted(used ^ starts.keys()):
        yield f"abbreviations.json: {name} is {'missing' if name in used else 'used by nobody'}"


def _storage_names(project: Project, starts: dict[str, str]) -> Iterator[str]:
    for module in project.files["main.bicep"].of("module"):
        if not module.target.endswith("storage.bicep"):
            continue
        said = text_of(module.property("params", "name"))
        name = re.sub(r"\$\{abbreviations\.(\w+)\}", lambda found: starts.get(found[1], "-"), said)
        name = name.replace("${suffix}", "x" * _SUFFIX_CHARS)
        if not _STORAGE_NAME.fullmatch(name):
            rule = f"at most {_STORAGE_CHARS} lower-case letters and digits"
            yield f"main.bicep:{module.line}: the name of {module.name} ({len(name)}) is not {rule}"


def _twice(project: Project) -> Iterator[str]:
    """A default stands in main.parameters.json, too, for azd to fill in: it is the same."""
    text = (project.root / "infra/bicep/main.parameters.json").read_text(encoding="utf-8")
    params = {param.name: param for param in project.files["main.bicep"].of("param")}
    for name, given in json.loads(text)["parameters"].items():
        filled = re.fullmatch(r"\$\{\w+=(.*)\}", str(given.get("value")))
        default = params[name].value if name in params else None
        if filled and default is not None and filled[1] != text_of(default):
            yield f"main.parameters.json: {name} is {filled[1]!r}, in main.bicep {text_of(default)!r}"
