"""The base class of tools: a name, typed arguments, and an `execute` method that never raises."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from shared.evidence.models import TableResult, WebPage
from shared.platform.errors import DefectError, GroundworkError, InvalidQueryError
from shared.platform.language_models.models import ToolDefinition
from shared.platform.settings import Settings
from shared.platform.settings_groups.base import SettingsGroup
from shared.platform.telemetry import get_logger, log_scope
from shared.platform.tracing import fail, span
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.provenance import Obstacle, Provenance, UsedDocument
from shared.tools.models import WebHit

if TYPE_CHECKING:
    from shared.tools.binding import Binding  # for type checking only: a circular import

ToolResult = dict[str, Any]
"""`{"success": true, …}` or `{"success": false, "error", "type", "hints"}` (docs/events-and-errors.md)."""


_MAX_NAMES, _MAX_NAME_CHARS = 5, 64  # limits on the unknown arguments listed in a hint


HINTS: Mapping[str, tuple[str, ...]] = {
    "AuthenticationError": ("Check the key, or the role of the app's identity, of the service named above.",),
    "IndexNotFoundError": (
        "Check the name of the index and AZURE_SEARCH_ENDPOINT; ingest a document first.",
    ),
    "InvalidQueryError": ("Correct the arguments as the error says, and call again.",),
    "RateLimitError": ("Try again in a moment.", "Ask for less at once."),
    "NetworkError": ("Try again; if it keeps failing, check that the service named above can be reached.",),
    "TimeoutError": ("Ask for less at once, or try again.",),
    "DocumentNotFoundError": ("List the documents to see which exist.",),
    "AccessDeniedError": ("Bind the tools to a user who may read documents.",),
    "ConfigurationError": ("Correct the setting that the error names, then start the app again.",),
    "BudgetExceededError": ("Answer from the existing evidence.",),
    "ToolError": (
        "Continue without this tool, or try another one.",
        "The failure is in the app log, under the name of the tool.",
    ),
}
"""Default hints for each `type` of failure (docs/events-and-errors.md), used if the error has none."""


class _PlainSchema(GenerateJsonSchema):
    """Generator of JSON schemas without titles, which only repeat names and cost tokens in every call."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        plain = super().model_schema(schema)
        plain.pop("title", None)
        return plain


class Parameters(BaseModel):
    """Base class for the arguments of a tool call, as written by a model."""

    # `defer_build` postpones building the validators until their first use, because a cold start needs only a
    # few tools.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    @classmethod
    def plain_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the arguments as shown to a model."""
        schema = cls.model_json_schema(schema_generator=_PlainSchema)
        schema.pop("description", None)  # the docstring is written for developers, not for the model
        return schema


class ToolClient(Protocol):
    """Connection of a tool to an external service, opened on the first call."""

    async def check(self) -> None:
        """Raise `GroundworkError` if the service does not respond."""

    async def close(self) -> None:
        """Close the connection."""


class Tool(ABC):
    """Base class of the tools that agents can call by name."""

    name: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[type[Parameters]]
    documentation: ClassVar[str]
    """What the tool returns, for the generated docs/extend.md."""
    example: ClassVar[str]
    """An example of valid arguments, as JSON."""
    settings: ClassVar[type[SettingsGroup] | None] = None
    """The tool's setting group, read with `Settings.group`."""
    is_optional: ClassVar[bool] = False
    """Whether the tool is disabled unless AGENT_TOOLS contains its name."""
    reads_documents: ClassVar[bool] = True
    """Whether results depend on documents. If so, tests/e2e/access/tools.py needs a probe of the tool."""
    sends_outside: ClassVar[bool] = False
    """Whether the arguments are sent outside the organisation."""
    reports_documents: ClassVar[bool] = False
    """Whether the tool adds every document in its results, errors and model calls to its `ToolEvidence`.
    Otherwise, answers that used the tool can't be shared."""
    waits_for_user: ClassVar[bool] = False
    """Whether a call ends the agent's turn, because the user's next message is the answer."""

    @classmethod
    def connect(cls, settings: Settings) -> "ToolClient | None":
        """Return the connection that all calls in this process share, or None if the tool needs none."""
        return None

    @classmethod
    def bind(cls, binding: "Binding") -> Self:
        """Create the tool for one call by one user."""
        return cls()

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON schema of the tool's arguments."""
        return self.parameters.plain_schema()

    @property
    def function_tool_schema(self) -> dict[str, Any]:
        """The tool definition in OpenAI's function-calling format."""
        return {"type": "function", "function": self.definition.model_dump()}

    @property
    def definition(self) -> ToolDefinition:
        """The definition of the tool as passed to a `ChatModel`: name, description and parameters."""
        return ToolDefinition(name=self.name, description=self.description, parameters=self.parameters_schema)

    async def execute(self, /, **kwargs: Any) -> ToolResult:
        """Validate the arguments and run the tool. Errors are returned as failed results with hints for the
        model, never raised.
        """
        traced = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": self.name, "tool": self.name}
        with log_scope(tool=self.name), span(f"execute_tool {self.name}", traced) as executed:
            result = await self._result(kwargs)
            if not result["success"]:
                fail(executed, result["type"])
            return result

    async def _result(self, kwargs: dict[str, Any]) -> ToolResult:
        unknown = kwargs.keys() - self.parameters.model_fields.keys()
        accepted = {name: value for name, value in kwargs.items() if name not in unknown}
        try:
            result = {"success": True, **await self._run(self._validate(accepted))}
        except Exception as failed:  # noqa: BLE001 - one tool's bug must not cost the whole answer
            result = self._failure(self._as_expected_error(failed))
        if unknown:
            result["hints"] = [*result.get("hints", ()), self._ignored_note(unknown)]
        return result

    def _as_expected_error(self, failed: Exception) -> GroundworkError:
        """Log an exception and convert it to an error whose message may be shown to a model."""
        if isinstance(failed, GroundworkError) and not isinstance(failed, DefectError):
            get_logger().info("tool.failed", tool=self.name, error_type=failed.code)
            return failed
        # Log only the type, because an exception's message may contain document text.
        code = failed.code if isinstance(failed, DefectError) else type(failed).__name__
        get_logger().error("tool.defect", tool=self.name, error_type=code)
        return GroundworkError(f"{self.name} failed because of a bug in the app.")

    def _failure(self, error: GroundworkError) -> ToolResult:
        return failure(error)

    def _validate(self, kwargs: dict[str, Any]) -> Any:
        try:
            return self.parameters.model_validate(kwargs)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "arguments"
            raise InvalidQueryError(f"{place}: {first['msg']}", self._takes) from None

    def _ignored_note(self, unknown: Collection[str]) -> str:
        """Return a hint that lists the unknown arguments, which are ignored instead of failing the call."""
        names = ", ".join(name[:_MAX_NAME_CHARS] for name in sorted(unknown)[:_MAX_NAMES])
        return f"Ignored, because there are no such arguments: {names}. {self._takes}"

    @property
    def _takes(self) -> str:
        return f"{self.name} takes: {', '.join(self.parameters.model_fields)}."

    @abstractmethod
    async def _run(self, arguments: Any) -> ToolResult:
        """Run the tool with validated arguments and return the result fields, without `success`."""


@dataclass
class ToolEvidence:
    """Evidence collected by a tool call, from which citations are made. Unlike the JSON result, it is not
    shown to the model.

    Attributes:
        known_blocks: ids of blocks that the model has seen, so that a search looks for others.
        figures: image blocks whose pictures the model should see.
        pages: web pages found by a search.
        snapshots: web pages that were read, with their text.
        documents: documents used in addition to those of hits, figures and records.
        run_ids: earlier runs whose answers are in the result.
        obstacles: reasons why an answer based on the result cannot be shared.
    """

    known_blocks: Collection[str] = ()
    hits: list[Hit] = field(default_factory=list)
    figures: list[Hit] = field(default_factory=list)
    records: list[DocumentRecord] = field(default_factory=list)
    pages: list[WebHit] = field(default_factory=list)
    results: list[TableResult] = field(default_factory=list)
    snapshots: list[WebPage] = field(default_factory=list)
    documents: list[UsedDocument] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)

    @property
    def provenance(self) -> Provenance:
        """The provenance of the evidence: the documents and runs that were used, and obstacles to sharing the
        answer.
        """
        own = Provenance(run_ids=tuple(self.run_ids), obstacles=tuple(self.obstacles))
        used = Provenance.of(*self.hits, *self.figures, *self.records, *self.documents)
        return Provenance.joined((own, used))


def failure(error: GroundworkError) -> ToolResult:
    """Convert an error to a failed tool result. Its `type` is always a key of `HINTS`, and it contains at
    least one hint.
    """
    kind = error.code if error.code in HINTS else GroundworkError.code
    return {"success": False, "error": error.detail, "type": kind, "hints": list(error.hints or HINTS[kind])}


def describe_filters(fields: Collection[str]) -> str:
    """Return the description of a `filters` parameter for the model, with the names of the allowed fields."""
    names = ", ".join(sorted(fields))
    return f"Field name to value, list of values (any of them), or {{start, end}} for dates. Fields: {names}."


Query = Annotated[
    str,
    Field(description="A self-contained question.", min_length=1, max_length=8000, pattern=r"\S"),
]


def identify_block(hit: Hit) -> dict[str, Any]:
    """Return the identifying fields of a block. The model has already seen its text in a search result."""
    return {
        "block_id": hit.block_id,
        "doc_id": hit.doc_id,
        "filename": hit.filename,
        "page_number": hit.page_number,
    }
