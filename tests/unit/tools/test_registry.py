"""Tests for all registered tools: their schemas, and limits on the arguments of a model."""

import json
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.platform.errors import AccessDeniedError, ConfigurationError
from shared.tools.base import HINTS
from shared.tools.registry import TOOLS, bound_tool
from shared.wiring import build_services
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_services, fake_settings
from tests.unit.tools.tool_set import ARGUMENTS, tool_for

ANNA = UserContext(user_id="anna")
# Parameter names that could carry a user's identity (contracts.md, section 3).
IDENTITY = {"user", "user_id", "user_context", "groups", "group", "department_of_user", "org_id", "roles"}
IDENTITY |= {"acl", "access_control_list", "principal", "principals", "owner_id", "as_user", "on_behalf_of"}


def property_names(schema: Any) -> set[str]:
    """Return the property names of all objects in a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*(property_names(part) for part in schema))
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties")
    names = set(own) if isinstance(own, dict) else set()
    return names.union(*(property_names(part) for part in schema.values()))


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_describes_itself_in_the_form_of_function_calling(name: str) -> None:
    tool = tool_for(name, ANNA)
    assert tool.name == name
    function = tool.function_tool_schema["function"]
    assert tool.function_tool_schema["type"] == "function"
    assert (function["name"], function["description"]) == (name, tool.description)
    assert function["parameters"] == tool.parameters_schema
    assert tool.parameters_schema["type"] == "object"
    assert tool.parameters_schema["additionalProperties"] is False
    assert len(function["description"]) <= 1024  # the limit of the protocol
    json.dumps(tool.function_tool_schema)


@pytest.mark.parametrize("name", TOOLS)
def test_no_schema_has_a_place_for_a_user(name: str) -> None:
    assert property_names(tool_for(name, ANNA).parameters_schema) & IDENTITY == set()


@pytest.mark.parametrize("field", sorted(IDENTITY))
@pytest.mark.parametrize("name", TOOLS)
async def test_a_user_in_the_arguments_changes_nothing(name: str, field: str) -> None:
    plain = await tool_for(name, ANNA).execute(**ARGUMENTS[name])
    for value in ("ben", {"user_id": "ben"}, ["*"]):
        result = await tool_for(name, ANNA).execute(**{**ARGUMENTS[name], field: value})
        *hints, ignored = result.pop("hints")
        assert field in ignored
        assert {**result, **({"hints": hints} if hints else {})} == plain


@pytest.mark.parametrize("name", TOOLS)
async def test_every_argument_of_a_wrong_kind_is_a_failure_and_no_exception(name: str) -> None:
    tool = tool_for(name, ANNA)
    for field in tool.parameters_schema["properties"]:
        for wrong in (object(), float("nan"), {"a": {"b": object()}}, [[]], b"\xff", "\ud83d"):
            result = await tool.execute(**{**ARGUMENTS[name], field: wrong})
            assert result["success"] is False, (field, wrong)
            assert result["type"] == "InvalidQueryError"
            assert result["hints"]


@pytest.mark.parametrize("name", TOOLS)
async def test_a_call_without_the_needed_arguments_names_them(name: str) -> None:
    tool = tool_for(name, ANNA)
    for field in tool.parameters_schema.get("required", []):
        arguments = {key: value for key, value in ARGUMENTS[name].items() if key != field}
        result = await tool.execute(**arguments)
        assert result["type"] == "InvalidQueryError"
        assert field in result["error"]


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.reads_documents])
def test_no_tool_is_made_for_nobody(name: str) -> None:
    with pytest.raises(AccessDeniedError):
        bound_tool(name, fake_services(), None)  # type: ignore[arg-type]


async def test_a_bug_in_a_tool_is_a_failure_without_internals() -> None:
    model = ScriptedChatModel()  # raises an unexpected IndexError, as it has no reply
    result = await tool_for("query_rewrite", ANNA, model).execute(question="x")
    assert (result["success"], result["type"]) == (False, "ToolError")
    assert "pop from" not in str(result)
    assert result["hints"]


def test_every_type_of_error_in_the_contract_has_a_hint() -> None:
    assert set(HINTS) == {
        "AuthenticationError",
        "IndexNotFoundError",
        "InvalidQueryError",
        "RateLimitError",
        "NetworkError",
        "TimeoutError",
        "DocumentNotFoundError",
        "AccessDeniedError",
        "ConfigurationError",
        "BudgetExceededError",
        "ToolError",
    }
    assert all(hints and all(hints) for hints in HINTS.values())


async def test_without_a_search_engine_the_web_is_not_searched() -> None:
    result = await tool_for("web_search", ANNA).execute(query="pump")
    assert (result["success"], result["type"]) == (False, "ConfigurationError")


def test_an_unknown_name_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="no_such_tool"):
        tool_for("no_such_tool", ANNA)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ("shell", "there is no tool 'shell', only python"),
        ("python,git", "git is not available; it needs"),
        ("powershell", "powershell is not available; it needs"),
    ],
)
def test_a_tool_that_cannot_be_switched_on_stops_the_start(tools: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match="AGENT_TOOLS") as wrong:
        build_services(fake_settings(agent_tools=tools))
    assert message in wrong.value.detail
