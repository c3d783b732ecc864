"""Reads Bicep files into what the rules ask of: declarations, their types, and every name that is used.

By the grammar of tree-sitter-bicep; no package that this project can install holds a compiler of Bicep. So
the files keep to a common subset: no user-defined types, lambdas, spreads or modules of registries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

_KINDS = {
    "parameter_declaration": "param",
    "variable_declaration": "var",
    "resource_declaration": "resource",
    "module_declaration": "module",
    "output_declaration": "output",
}


@dataclass(frozen=True)
class Declaration:
    """One `param`, `var`, `resource`, `module` or `output`.

    Attributes:
        kind: which of them.
        target: `type@version` of a resource, the file of a module, the type of a parameter or output.
        value: its body, default or value; None for a parameter without a default.
        decorators: their text by their name, such as `{"description": "'Required. …'"}`.
    """

    kind: str
    name: str
    target: str
    value: Node | None
    line: int
    decorators: dict[str, str] = field(default_factory=dict)
    is_existing: bool = False
    is_loop: bool = False

    @property
    def body(self) -> Node | None:
        """The object of a resource or module, without its condition or loop."""
        node = self.value
        while node is not None and node.type in ("if_statement", "for_statement"):
            node = next((child for child in reversed(node.named_children) if child.type in _BODIES), None)
        return node if node is not None and node.type == "object" else None

    def property(self, *path: str) -> Node | None:
        """The value at a path of property names below the body."""
        node = self.body
        for name in path:
            node = properties(node).get(name) if node is not None else None
        return node


_BODIES = ("object", "if_statement", "for_statement")


@dataclass(frozen=True)
class BicepFile:
    """A file, parsed; `nodes` are the root and all below it."""

    path: Path
    text: str
    root: Node
    nodes: tuple[Node, ...]
    declarations: tuple[Declaration, ...]

    def of(self, kind: str) -> list[Declaration]:
        """The declarations of a kind, in their order."""
        return [declaration for declaration in self.declarations if declaration.kind == kind]

    def errors(self) -> list[int]:
        """Lines that the grammar does not understand."""
        wrong = (node for node in self.nodes if node.type == "ERROR" or node.is_missing)
        return sorted({node.start_point[0] + 1 for node in (*wrong, *_unseparated(self.nodes))})


def read(path: Path) -> BicepFile:
    """Parse a file; what it does not understand is in `errors`."""
    content = path.read_bytes()
    return BicepFile(path, content.decode(), *_parsed(content))


@cache
def _parsed(content: bytes) -> tuple[Node, tuple[Node, ...], tuple[Declaration, ...]]:
    """Once for each content: tests read the same files a hundred times, with one of them changed."""
    root = _parser().parse(content).root_node
    return root, tuple(walk(root)), tuple(_declarations(root))


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def text_of(node: Node | None) -> str:
    """Its source; of a string what stands between the quotes; empty for None."""
    if node is None or node.text is None:
        return ""
    text = node.text.decode()
    return text[1:-1] if node.type == "string" else text


def properties(node: Node) -> dict[str, Node]:
    """The properties of an object by their names; of anything else none."""
    found = {}
    for child in node.named_children if node.type == "object" else ():
        if child.type == "object_property" and len(child.named_children) == 2:
            found[text_of(child.named_children[0])] = child.named_children[1]
    return found


def _unseparated(nodes: Sequence[Node]) -> Iterator[Node]:
    """Items on one line without a comma between them: the grammar lets them pass, Bicep does not."""
    for node in nodes:
        for before, item in pairwise(node.children if node.type in ("object", "array") else ()):
            are_items = before.is_named and item.is_named and item.type != "comment"
            if are_items and before.end_point[0] == item.start_point[0]:
                yield item


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bicep.language()))


def _declarations(root: Node) -> Iterator[Declaration]:
    decorators: dict[str, str] = {}
    for node in root.named_children:
        if node.type == "decorators":
            decorators |= dict(_decorator(found) for found in node.named_children)
        elif node.type in _KINDS:
            yield _declaration(node, decorators)
            decorators = {}


def _decorator(node: Node) -> tuple[str, str]:
    call = node.named_children[0]
    arguments = call.child_by_field_name("arguments")
    return text_of(call.child_by_field_name("function")), text_of(arguments)[1:-1]


def _declaration(node: Node, decorators: dict[str, str]) -> Declaration:
    kind = _KINDS[node.type]
    named = [child for child in node.named_children if child.type != "decorators"]
    rest = named[1:]
    target = ""
    if kind != "var" and rest:
        target, rest = text_of(rest[0]), rest[1:]
    value = rest[-1] if rest else None
    return Declaration(
        kind=kind,
        name=text_of(named[0]),
        target=target,
        value=value,
        line=node.start_point[0] + 1,
        decorators=decorators,
        is_existing=any(child.type == "existing" for child in node.children),
        is_loop=value is not None and value.type == "for_statement",
    )
