"""What a tool is. A tool is made for one user; nothing in its parameters can name another."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from shared.errors import GroundworkError, InvalidQueryError

ToolResult = dict[str, Any]
"""`{"success": true, …}` or `{"success": false, "error", "type", "hints"}` (contracts.md, section 2)."""


class Parameters(BaseModel):
    """Arguments of a tool call, as a model writes them."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Tool(ABC):
    """One capability of an agent."""

    name: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[type[Parameters]]

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return self.parameters.model_json_schema()

    @property
    def function_tool_schema(self) -> dict[str, Any]:
        """The tool in OpenAI's function-calling form."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters_schema,
            },
        }

    async def execute(self, **kwargs: Any) -> ToolResult:
        """Run the tool. Never raises for what can be expected: the loop gets a failure it can act on."""
        try:
            return {"success": True, **await self._run(self._validated(kwargs))}
        except GroundworkError as failed:
            return failure(failed)

    def _validated(self, kwargs: dict[str, Any]) -> Any:
        try:
            return self.parameters.model_validate(kwargs)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "arguments"
            known = ", ".join(self.parameters.model_fields)
            raise InvalidQueryError(f"{place}: {first['msg']}", f"{self.name} takes: {known}.") from None

    @abstractmethod
    async def _run(self, arguments: Any) -> ToolResult:
        """Do the work with validated arguments; returns the fields beside `success`."""


def failure(error: GroundworkError) -> ToolResult:
    """The result of a failed tool."""
    return {"success": False, "error": error.detail, "type": error.code, "hints": list(error.hints)}
