"""docs/command-line.md and the help of the command line know the same commands and options."""

import argparse
import re

import pytest

from cli import errors
from cli.__main__ import command_tree
from tests.architecture.source_tree import ROOT

PAGE = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([a-z ]+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
LEAVES = command_tree().leaves
FOR_ALL = {"--json", "--url", "--help", "-h"}


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings} - FOR_ALL


def test_every_command_has_a_section_and_no_other_has() -> None:
    assert SECTIONS.keys() == LEAVES.keys()


@pytest.mark.parametrize("words", LEAVES)
def test_a_section_names_the_options_that_the_help_has(words: str) -> None:
    named = set(re.findall(r"`(--[a-z-]+)", SECTIONS[words])) - FOR_ALL
    assert named == options_of(LEAVES[words])


@pytest.mark.parametrize("words", LEAVES)
def test_the_help_of_a_command_is_complete(words: str) -> None:
    for action in LEAVES[words]._actions:
        if action.option_strings:
            assert action.help, f"{words} {action.option_strings}"


def test_the_options_of_all_commands_and_the_exit_codes_are_told() -> None:
    assert {"`--url`", "`--json`"} <= set(re.findall(r"`--[a-z]+`", PAGE))
    codes = {str(code) for name, code in vars(errors).items() if name.isupper()}
    assert codes <= set(re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE))
