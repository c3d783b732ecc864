"""Loads agents from `NAME.agent.md` files, which consist of YAML settings between two `---` lines and the
instructions.

The files are read once per process. A mistake in any file aborts the start with the file and the line: a
misread agent could be open to more users than intended.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from shared.access.models import UserContext
from shared.platform.errors import ConfigurationError, NotFoundError
from shared.platform.settings import Settings
from shared.runs.agents import AgentDefinition, AgentList, AgentView, Channel
from shared.tools.registry import check_tools

SUFFIX = ".agent.md"
_ROOT = Path(__file__).parents[2]
_FENCE = "---"
# Reserved, because the OpenAI-compatible API offers models with this prefix that are not agents.
_RESERVED = "groundwork"


def agents_of(settings: Settings) -> Mapping[str, AgentDefinition]:
    """Return all agents in AGENTS_FOLDER by name. The mapping is empty if the folder doesn't exist.

    Raises:
        ConfigurationError: a file is invalid; the message starts with its path and line.
    """
    return _read_folder(settings.answering.agents_folder, settings.answering.enabled_tools)


def agents_for(user: UserContext, settings: Settings, channel: Channel) -> list[AgentDefinition]:
    """Return the agents that the user may use on a channel (`chat`, `mcp` or `openai`)."""
    agents = agents_of(settings).values()
    return [agent for agent in agents if agent.is_open_to(user) and getattr(agent.expose, channel)]


def agent_for(name: str, user: UserContext, settings: Settings, channel: Channel) -> AgentDefinition:
    """Return the named agent if the user may use it on this channel (`chat`, `mcp` or `openai`).

    Raises:
        NotFoundError: it doesn't exist, or the user may not use it over this channel; the error is the same.
    """
    agents = {agent.name: agent for agent in agents_for(user, settings, channel)}
    if name not in agents:
        hint = f"Agents: {', '.join(agents)}." if agents else "No agents are available; ask without one."
        raise NotFoundError(f"There is no agent {name[:64]!r}.", hint)
    return agents[name]


def asked_agent(text: str, user: UserContext, settings: Settings) -> tuple[str | None, str]:
    """Split a chat message `NAME: question` into agent name and question. Return `(None, text)` if the user
    has no agent with that name.
    """
    name, colon, question = text.partition(":")
    name = name.strip().casefold()
    matches = [agent.name for agent in agents_for(user, settings, "chat") if colon and agent.name == name]
    return (matches[0], question.strip()) if matches and question.strip() else (None, text)


def list_agents(user: UserContext, settings: Settings) -> AgentList:
    """Return the agents that the user may use in chats, without their instructions and other private
    settings.
    """
    fields = set(AgentView.model_fields)
    views = (agent.model_dump(include=fields) for agent in agents_for(user, settings, "chat"))
    return AgentList(agents=tuple(AgentView.model_validate(view) for view in views))


def read_agent(path: Path, enabled: tuple[str, ...] = ()) -> AgentDefinition:
    """Parse and validate an agent file.

    Args:
        enabled: tools enabled by AGENT_TOOLS.

    Raises:
        ConfigurationError: the file is invalid.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as failed:
        raise ConfigurationError(f"{path}: the file cannot be read ({type(failed).__name__}).") from None
    ends = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(ends) < 2 or ends[0] != 0:
        raise _wrong(path, 1, "the file must start with YAML settings between two lines of `---`")
    values, places = _front_matter(path, "\n".join(lines[1 : ends[1]]))
    return _validate(
        path, {**values, "instructions": "\n".join(lines[ends[1] + 1 :]).strip()}, places, enabled
    )


@cache
def _read_folder(folder: str, enabled: tuple[str, ...]) -> Mapping[str, AgentDefinition]:
    files = sorted((_ROOT / folder).glob(f"*{SUFFIX}"))
    return {agent.name: agent for agent in (read_agent(path, enabled) for path in files)}


def _front_matter(path: Path, text: str) -> tuple[dict[str, Any], dict[tuple[str, ...], int]]:
    """Return the parsed YAML settings and a mapping from key paths to line numbers in the file."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line if wrong.problem_mark else 0
        raise _wrong(path, line + 2, str(wrong.problem or "the settings are not valid YAML")) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _wrong(path, 2, "the settings are not valid YAML") from None
    if not isinstance(values, dict) or not isinstance(root, yaml.MappingNode):
        raise _wrong(path, 2, "the settings must be written as `key: value` lines")
    places: dict[tuple[str, ...], int] = {}
    _note_lines(path, root, (), places)
    return values, places


def _note_lines(path: Path, node: Any, above: tuple[str, ...], places: dict[tuple[str, ...], int]) -> None:
    pairs = node.value if node.id == "mapping" else ()
    for key, value in pairs:
        place, line = (*above, str(key.value)), key.start_mark.line + 2
        if place in places:
            raise _wrong(path, line, f"{place[-1]} is set twice; remove one of the two lines")
        places[place] = line
        _note_lines(path, value, place, places)


def _validate(
    path: Path, values: dict[str, Any], places: dict[tuple[str, ...], int], enabled: tuple[str, ...]
) -> AgentDefinition:
    try:
        agent = AgentDefinition.model_validate(values)
    except ValidationError as invalid:
        mistakes = [_mistake(path, error, places) for error in invalid.errors()]
        raise ConfigurationError("\n".join(mistakes)) from None
    if agent.name != path.name.removesuffix(SUFFIX):
        raise _wrong(
            path, places["name",], f"the file of agent {agent.name} must be named {agent.name}{SUFFIX}"
        )
    if agent.name.startswith(_RESERVED):
        raise _wrong(path, places["name",], f"names that start with {_RESERVED} are reserved")
    try:
        check_tools(agent.tools, enabled)
    except ConfigurationError as unknown:
        line = places.get(("tools",), 1)
        raise _wrong(path, line, f"{unknown.detail} {' '.join(unknown.hints)}") from None
    return agent


def _mistake(path: Path, error: ErrorDetails, places: Mapping[tuple[str, ...], int]) -> str:
    place = tuple(map(str, error["loc"]))
    is_unknown = error["type"] == "extra_forbidden" and len(place) == 1
    hint = f" Settings: {', '.join(AgentDefinition.model_fields)}." if is_unknown else ""
    line = _line(place, places)
    return f"{_wrong(path, line, '.'.join(place) + ': ' + error['msg']).detail}{hint}"


def _line(place: tuple[str, ...], places: Mapping[tuple[str, ...], int]) -> int:
    """Return the line number of the deepest key along `place` that the file contains, or 1 if there is
    none.
    """
    return next((places[place[:end]] for end in range(len(place), 0, -1) if place[:end] in places), 1)


def _wrong(path: Path, line: int, message: str) -> ConfigurationError:
    return ConfigurationError(f"{path}:{line}: {message.rstrip('.')}.")
