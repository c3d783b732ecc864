"""The commands and programs of the README, the tutorial and the page for callers, executed unchanged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from local.azurite.server import find_node
from local.run_all.stack import ROOT, LocalStack
from local.run_all.stack_settings import DATA_SETTING, PORT_SETTINGS
from samples.acl import ANNA
from samples.questions import FIRST_QUESTION
from tests.documented import marked_blocks
from tests.e2e.cutting_proxy import CuttingProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BLOCKS = marked_blocks("README.md", "docs/tutorial.md", "docs/call-from-code.md")
BETWEEN = "---- the next stanza ----"
# Expected texts in the output of each stanza of the block `http`, in order.
EXPECTED = (
    ("API=", ()),
    ("# A stream", ("id: 1\nevent: status\n", "event: token\n", "event: complete\n", "6.5 bar")),
    ("# One JSON document", ('"status":"completed"', '"verified":true')),
    ("# Start now", ('"question":"How many weeks of paid parental leave', '"events_url"')),
    ("# After a broken connection", ("id: 2\n", "event: complete\n")),
    ("# Say how good", ('"rating":5',)),
    ("# Upload a file", ('"filename":"notes.md"', '"status":"queued"')),
    ("# What there is", ("heron-400-manual.pdf", '"result_count":3')),
    ("# Conversations", ('"title":"How many weeks of paid parental leave',)),
    ("# Errors", ('"title":"InvalidQueryError"', "document_type")),
)
# Expected texts in the output of each block of the tutorial, in order.
TUTORIAL = {
    "tutorial ask": ("Signed in", "6.5 bar", "heron-400-manual.pdf, page 4 (verified)"),
    "tutorial gap": ("exit code 3",),
    "tutorial upload": (
        "1 of 1 files are ready.",
        "41 kilograms",
        "roof.md, published by Anna Bergqvist (verified)",
    ),
    "tutorial check": ("# Beehives on the roof", "Ada Lind", "ready"),
    "tutorial ben": ("Ben Okafor", "exit code 3"),
    "tutorial share": ("safety-committee", "Ben Okafor", "41 kilograms"),
}


def bash(script: str, folder: Path, **more: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder), **more},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of_command_line(stack: LocalStack) -> dict[str, str]:
    return {DATA_SETTING: str(stack.data), "GROUNDWORK_URL": stack.base_url}


def test_the_readme_asks_from_the_command_line(stack: LocalStack, tmp_path: Path) -> None:
    script = BLOCKS["command line"].replace(".venv/bin/python", sys.executable)
    output = bash(script, tmp_path, **of_command_line(stack))
    assert "Signed in" in output
    assert "6.5 bar" in output


def test_the_tutorial_works_as_it_is_written(stack: LocalStack, tmp_path: Path) -> None:
    script = f"\necho '{BETWEEN}'\n".join(BLOCKS[name] for name in TUTORIAL)
    script = script.replace('"$CHECKOUT/.venv/bin/python"', sys.executable)
    script = script.replace('CHECKOUT="$PWD"', f'CHECKOUT="{ROOT}"')
    outputs = bash(script, tmp_path, **of_command_line(stack)).split(f"{BETWEEN}\n")
    for (name, words), output in zip(TUTORIAL.items(), outputs, strict=True):
        assert [word for word in words if word not in output] == [], f"{name}: {output}"


@pytest.mark.nightly  # starts a second stack
def test_the_tutorial_connects_a_model(stack: LocalStack, tmp_path: Path) -> None:
    """Check that the variables in the tutorial suffice to connect a model endpoint, which is the local model
    server.
    """
    own = {name: stack.app_settings[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CHAT_MODEL")}
    own |= {name: stack.app_settings[name] for name in ("EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS")}
    variables = dict(re.findall(r"(\w+)=(\S+)", BLOCKS["tutorial model"]))
    assert variables.keys() == {*own, DATA_SETTING}
    values = {**own, DATA_SETTING: str(tmp_path / "data"), **dict.fromkeys(PORT_SETTINGS.values(), "0")}
    output = bash(f"exec {sys.executable} -m local.run_all --once", ROOT, **values)
    assert f"Model: {own['CHAT_MODEL']} at {own['OPENAI_BASE_URL']}" in output
    assert "6.5 bar" in output


def test_callers_ask_by_curl(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nThe spare key hangs behind the clock.\n")
    stanzas = BLOCKS["http"].replace("http://127.0.0.1:7071", stack.base_url).strip().split("\n\n")
    assert len(stanzas) == len(EXPECTED)
    script = f"\necho; echo '{BETWEEN}'\n".join(stanzas)
    outputs = bash(script, tmp_path, TOKEN=stack.token(ANNA)).split(f"\n{BETWEEN}\n")
    for stanza, output, (beginning, words) in zip(stanzas, outputs, EXPECTED, strict=True):
        assert stanza.startswith(beginning)
        assert [word for word in words if word not in output] == [], output
    assert "id: 1\n" not in outputs[4]
    problem = json.loads(outputs[-1])
    assert (problem["status"], bool(problem["hints"])) == (400, True)


@pytest.mark.parametrize("name", ["ask.py", "ask.mjs"])
def test_a_client_gets_its_answer_over_connections_that_break(
    stack: LocalStack, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(BLOCKS[name], encoding="utf-8")
    program = [sys.executable] if name.endswith(".py") else find_node().node
    script = f'exec {" ".join(program)} {name} "{FIRST_QUESTION.text}"'
    with CuttingProxy(stack.ports.http, [900, 1500]) as proxy:
        output = bash(script, tmp_path, TOKEN=stack.token(ANNA), GROUNDWORK_URL=proxy.url)
    assert proxy.cuts == 2
    assert "6.5 bar" in output
    assert "[1] heron-400-manual.pdf: The maximum operating pressure" in output


def test_every_block_that_is_marked_is_run() -> None:
    assert BLOCKS.keys() == {"command line", *TUTORIAL, "tutorial model", "http", "ask.py", "ask.mjs"}
