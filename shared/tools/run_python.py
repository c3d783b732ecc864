"""The tool `python`: calculates, counts and rearranges what other tools found."""

import time
from dataclasses import dataclass

from pydantic import Field, JsonValue

from shared.platform.errors import ConfigurationError
from shared.tools.base import Parameters, Tool, ToolResult
from shared.tools.python_sandbox import PythonSandbox

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
        default_factory=dict, description="Values that the program uses, by name; JSON.", max_length=20
    )


@dataclass(frozen=True)
class RunPython(Tool):
    """Runs a program that knows nothing but its inputs: no user, no document, no service."""

    sandbox: PythonSandbox | None

    name = "python"
    description = (
        "Run a short Python program, to calculate, count or compare exactly. It sees its inputs only: no "
        "files, no network, no third-party modules, no generators; json, re, math, datetime, decimal and "
        "collections are there. At most 2 s and 64 MB."
    )
    parameters = RunPythonParameters

    async def _run(self, arguments: RunPythonParameters) -> ToolResult:
        if self.sandbox is None:
            raise ConfigurationError("Python is switched off.", "Add python to AGENT_TOOLS.")
        began = time.perf_counter()
        ran = await self.sandbox.run(arguments.code, arguments.inputs)
        duration_ms = round((time.perf_counter() - began) * 1000)
        return {**ran.model_dump(), "engine": "monty", "duration_ms": duration_ms}
