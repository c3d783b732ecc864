"""`agents`: the agents that can be asked with `ask --agent`."""

import argparse

from cli.api import Api
from cli.commands import Tree
from cli.errors import DONE
from cli.terminal import Terminal


def register(tree: Tree) -> None:
    """The command of this file."""
    tree.leaf("agents", list_agents, "list the agents that you can ask")


def list_agents(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print name and description of each."""
    del given
    agents = api.call("GET", "/agents")["agents"]
    if terminal.as_json:
        terminal.json(agents)
        return DONE
    for agent in agents:
        terminal.say(agent["name"], "bold")
        terminal.say(f"    {agent['description']}")
    if not agents:
        terminal.say("There are no agents that you can ask.")
    return DONE
