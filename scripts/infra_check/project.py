"""The files of a deployment together, and what the rules look up in main.bicep."""

from dataclasses import dataclass
from pathlib import Path

from scripts.infra_check.reader import BicepFile, Declaration, text_of


@dataclass(frozen=True)
class Project:
    """All files by name, and what of the code they are compared with.

    Attributes:
        root: of the repository; host.json, azure.yaml and the parameters are read there.
        trigger: Python name of the function with the blob trigger.
        open_routes: routes that ask for no identity, such as `/api/health`.
    """

    root: Path
    files: dict[str, BicepFile]
    trigger: str
    open_routes: frozenset[str]

    @property
    def variables(self) -> dict[str, str]:
        """The values of main.bicep's variables that are plain strings."""
        return {found.name: text_of(found.value) for found in self.files["main.bicep"].of("var")}

    def module(self, name: str) -> Declaration | None:
        """A module that main.bicep calls."""
        return next((found for found in self.files["main.bicep"].of("module") if found.name == name), None)

    def parameter(self, module: str, name: str) -> str:
        """What main.bicep gives to a module; a variable stands for its value; empty when it gives nothing."""
        declared = self.module(module)
        said = text_of(declared.property("params", name)) if declared is not None else ""
        return self.variables.get(said, said)

    def listed(self, module: str, name: str) -> set[str]:
        """The strings of an array that main.bicep gives to a module."""
        declared = self.module(module)
        node = declared.property("params", name) if declared is not None else None
        items = node.named_children if node is not None else ()
        values = self.variables
        return {values.get(text_of(item), text_of(item)) for item in items}
