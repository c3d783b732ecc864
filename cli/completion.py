"""`completion`: what bash and zsh need to complete commands and options. Made from the tree of commands."""

import argparse
from functools import partial

from cli.api import Api
from cli.commands import Tree
from cli.terminal import Terminal

_ZSH = "autoload -U +X bashcompinit && bashcompinit"


def register(tree: Tree) -> None:
    """The command of this file. It knows the commands that are registered when it is called."""
    completing = tree.leaf(
        "completion", partial(print_script, tree), "print a script that completes commands in a shell"
    )
    completing.add_argument("shell", metavar="SHELL", choices=("bash", "zsh"), help="bash or zsh")


def print_script(tree: Tree, api: Api | None, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print the script. Without a match the shell completes file names."""
    if given.shell == "zsh":
        terminal.say(_ZSH)
    terminal.say("_groundwork() {")
    terminal.say("  local words typed=${COMP_WORDS[COMP_CWORD]}")
    terminal.say('  case "$COMP_CWORD:${COMP_WORDS[1]} ${COMP_WORDS[2]}" in')
    for pattern, words in _completions(tree):
        terminal.say(f'    {pattern}) words="{" ".join(words)}" ;;')
    terminal.say("  esac")
    terminal.say('  COMPREPLY=($(compgen -W "$words" -- "$typed"))')
    terminal.say("}")
    terminal.say("complete -o default -F _groundwork groundwork")


def _completions(tree: Tree) -> list[tuple[str, list[str]]]:
    """A pattern of `case` for what was typed so far, and the words that may follow."""
    groups: dict[str, list[str]] = {}
    for words in tree.leaves:
        first, _, second = words.partition(" ")
        groups.setdefault(first, []).extend([second] if second else [])
    found = [("1:*", sorted(groups))]
    found += [(f'"2:{first} "*', sorted(seconds)) for first, seconds in groups.items() if seconds]
    for words, parser in tree.leaves.items():
        actions = parser._actions
        may_follow = [word for action in actions for word in action.option_strings or action.choices or ()]
        pattern = f'*":{words}"' if " " in words else f'*":{words} "*'
        found.append((pattern, [word for word in may_follow if word != "-h"]))
    return found
