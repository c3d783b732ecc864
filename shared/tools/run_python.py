"""The tool `python`, which calculates, counts and rearranges the results of other tools."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import Field, JsonValue

from shared.platform.errors import ConfigurationError
from shared.platform.settings import Settings
from shared.tools.base import Parameters, Tool, ToolResult
from shared.tools.binding import Binding
from shared.tools.python_sandbox import PythonSandbox
from shared.tools.workspace import Workspace
from shared.tools.workspace_tools import FileRead

MAX_CODE_CHARS = 20_000


class RunPythonParameters(Parameters):
    """Arguments of `python`."""

    code: str = Field(
        description="The program. The value of its last expression is the result.",
        min_length=1,
        max_length=MAX_CODE_CHARS,
        pattern=r"\S",
    )
    inputs: dict[str, JsonValue] = Field(
        default_factory=dict, description="The program's inputs by name, as JSON.", max_length=20
    )
    files: tuple[str, ...] = Field(
        default=(),
        description="Files written by file_write; `files` maps their names to their texts.",
        max_length=10,
    )


@dataclass(frozen=True)
class RunPython(Tool):
    """Runs a program that can access only its inputs and the named files, but no documents or services.

    Attributes:
        sandbox: None = disabled.
        workspace: the workspace that contains the input files; None = files cannot be read.
    """

    sandbox: PythonSandbox | None
    workspace: Workspace | None = None

    name = "python"
    description = (
        "Run a short Python program, to calculate, count or compare exactly. It sees `inputs` and `files` "
        "only: no disk, no network, no `yield`; of modules json, re, math, datetime, decimal, collections. "
        "At most 2 s and 64 MB. There is no citation for it: say what was calculated from which values."
    )
    parameters = RunPythonParameters
    documentation = (
        "Runs a program in an isolated process ([Monty](https://github.com/pydantic/monty): no "
        "generators, no third-party modules): `result`, `stdout`, `engine`, `duration_ms`. At "
        "most 2 s, 64 MB, 20,000 bytes of output."
    )
    example = '{"code": "1 + 1"}'
    is_optional = True
    reads_documents = False
    reports_documents = True

    @classmethod
    def connect(cls, settings: Settings) -> PythonSandbox:
        return PythonSandbox()

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        sandbox = binding.client(cls.name, PythonSandbox)
        return cls(sandbox, binding.workspace_of(FileRead.name))

    async def _run(self, arguments: RunPythonParameters) -> ToolResult:
        if self.sandbox is None:
            raise ConfigurationError("Python is disabled.", "Add python to AGENT_TOOLS.")
        inputs = dict(arguments.inputs)
        if arguments.files:
            inputs["files"] = await self._texts(arguments.files)
        began = time.perf_counter()
        ran = await self.sandbox.run(arguments.code, inputs)
        duration_ms = round((time.perf_counter() - began) * 1000)
        return {**ran.model_dump(), "engine": "monty", "duration_ms": duration_ms}

    async def _texts(self, names: Sequence[str]) -> dict[str, JsonValue]:
        if self.workspace is None:
            raise ConfigurationError("Workspace files cannot be read.", "Add file_read to AGENT_TOOLS.")
        return {name: await self.workspace.read(name) for name in names}
