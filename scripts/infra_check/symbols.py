"""What a compiler would say: undeclared names, parameters that a module has not, outputs that it lacks."""

from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node

from scripts.infra_check.reader import BicepFile, Declaration, properties, text_of

# Functions of the language that these files may use; another one is added here when it is needed, and when
# the parser inside checkov (pycep-parser 0.5.1, the one in the checks) knows it: it does not know cidrSubnet.
FUNCTIONS = frozenset(
    {"array", "concat", "contains", "empty", "environment", "guid", "length", "listKeys"}
    | {
        "loadJsonContent",
        "loadTextContent",
        "replace",
        "resourceGroup",
        "resourceId",
        "string",
        "subscription",
    }
    | {"subscriptionResourceId", "tenant", "toLower", "union", "uniqueString", "utcNow"}
)
_MODULE_PROPERTIES = frozenset({"name", "scope", "params", "dependsOn"})


def symbol_faults(file: BicepFile, folder: dict[Path, BicepFile]) -> Iterator[str]:
    """Faults of one file, each with its line; `folder` holds all files by their resolved path."""
    yield from _doubled(file)
    yield from _unknown_names(file)
    yield from _unused(file)
    yield from _loaded(file)
    for module in file.of("module"):
        yield from _module(file, module, folder)


def _doubled(file: BicepFile) -> Iterator[str]:
    seen: set[str] = set()
    for declaration in file.declarations:
        if declaration.kind == "output":
            continue
        if declaration.name in seen:
            yield f"{file.path.name}:{declaration.line}: {declaration.name} is declared twice"
        seen.add(declaration.name)


def _unknown_names(file: BicepFile) -> Iterator[str]:
    known = {declaration.name for declaration in file.declarations if declaration.kind != "output"}
    for node, name, is_call in _uses(file.root, frozenset()):
        if name not in (FUNCTIONS if is_call else known):
            yield f"{file.path.name}:{node.start_point[0] + 1}: {name} is not declared"


def _unused(file: BicepFile) -> Iterator[str]:
    used = {name for _, name, is_call in _uses(file.root, frozenset()) if not is_call}
    for declaration in (*file.of("param"), *file.of("var")):
        if declaration.name not in used:
            yield f"{file.path.name}:{declaration.line}: {declaration.name} is not used"


def _loaded(file: BicepFile) -> Iterator[str]:
    """Files whose content the compiler takes in."""
    for node in file.nodes:
        name = text_of(node.child_by_field_name("function")) if node.type == "call_expression" else ""
        if name in ("loadTextContent", "loadJsonContent"):
            target = text_of(node.child_by_field_name("arguments")).strip("()'")
            if not (file.path.parent / target).is_file():
                yield f"{file.path.name}:{node.start_point[0] + 1}: there is no file {target}"


def _uses(node: Node, local: frozenset[str]) -> Iterator[tuple[Node, str, bool]]:
    """Every name that is used outside its own declaration, and whether it is called."""
    if node.type == "for_statement":
        # `for item in items` has the bare name first; `for (item, index) in items` has both in brackets.
        local |= {text_of(name) for name in node.named_children[0].named_children or node.named_children[:1]}
    if node.type == "identifier" and text_of(node) not in local and not _is_a_label(node):
        parent = node.parent
        is_call = parent is not None and parent.type == "call_expression"
        function = parent.child_by_field_name("function") if is_call and parent is not None else None
        yield node, text_of(node), function is not None and function.id == node.id
    for child in node.named_children:
        if child.type not in ("decorators", "type", "metadata_declaration", "target_scope_assignment"):
            yield from _uses(child, local)


def _is_a_label(node: Node) -> bool:
    """Whether it names a property or a declaration, and is no use of anything."""
    parent = node.parent
    if parent is None or parent.type == "ERROR":
        return True
    if parent.type.endswith(("_declaration", "object_property")) or parent.type == "for_loop_parameters":
        first = parent.named_children[0]
        return bool(first.id == node.id)
    return parent.type in ("target_scope_assignment", "property_identifier")


def _module(file: BicepFile, module: Declaration, folder: dict[Path, BicepFile]) -> Iterator[str]:
    where = f"{file.path.name}:{module.line}: module {module.name}"
    called = folder.get((file.path.parent / module.target).resolve())
    if called is None:
        yield f"{where}: there is no file {module.target}"
        return
    body = module.body
    given = set(properties(params)) if (params := module.property("params")) is not None else set()
    wanted = {param.name: param for param in called.of("param")}
    for name in sorted(given - set(wanted)):
        yield f"{where}: {called.path.name} has no parameter {name}"
    for name in sorted(set(wanted) - given):
        if wanted[name].value is None:
            yield f"{where}: {called.path.name} wants the parameter {name}"
    for name in sorted((set(properties(body)) if body is not None else set()) - _MODULE_PROPERTIES):
        yield f"{where}: a module has no property {name}"
    outputs = {output.name for output in called.of("output")}
    for name in sorted(_outputs_used(file, module.name) - outputs):
        yield f"{where}: {called.path.name} has no output {name}"


def _outputs_used(file: BicepFile, module: str) -> set[str]:
    found = set()
    for node in file.nodes:
        if node.type != "member_expression":
            continue
        source = node.child_by_field_name("object")
        if source is not None and text_of(source) == f"{module}.outputs":
            found.add(text_of(node.child_by_field_name("property")))
    return found
