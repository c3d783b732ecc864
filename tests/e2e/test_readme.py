"""The commands of the README and of docs/api.md, run as they stand there against the running stack."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from local.run_all.stack import ROOT, LocalStack
from samples.acl import ANNA

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BLOCK = re.compile(r"^<!-- run: ([a-z ]+) -->\n```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = {
    name: script
    for page in ("README.md", "docs/api.md")
    for name, script in BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
}
README = (ROOT / "README.md").read_text(encoding="utf-8")
BETWEEN = "---- the next stanza ----"
# What the output of each stanza of the block `http` holds, in order.
EXPECTED = (
    ("API=", ()),
    ("# A stream", ("id: 1\nevent: status\n", "event: token\n", "event: complete\n", "6.5 bar")),
    ("# One JSON document", ('"status":"completed"', '"verified":true')),
    ("# Start now", ('"question":"How many weeks of paid parental leave', '"events_url"')),
    ("# After a broken connection", ("id: 6\n", "event: complete\n")),
    ("# Say how good", ('"rating":5',)),
    ("# Upload a file", ('"filename":"notes.md"', '"status":"queued"')),
    ("# What there is", ("heron-400-manual.pdf", '"result_count":3')),
    ("# Conversations", ('"title":"How many weeks of paid parental leave',)),
    ("# Errors", ('"title":"InvalidQueryError"', "document_type")),
)


def bash(script: str, folder: Path, stack: LocalStack, **more: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder), **more},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_readme_asks_by_curl(stack: LocalStack, tmp_path: Path) -> None:
    script = BLOCKS["curl"].replace("http://127.0.0.1:7071", stack.base_url)
    output = bash(script, tmp_path, stack, TOKEN=stack.token(ANNA))
    events = [json.loads(line[6:]) for line in output.splitlines() if line.startswith("data: ")]
    shown = re.findall(r"^data: (.*)$", README, re.MULTILINE)
    text = json.loads(shown[0])["text"]
    assert text in "".join(event.get("text", "") for event in events)
    [citation] = [event for event in events if "quote" in event]
    for pair in re.findall(r'"(\w+)":("[^"]*"|\w+)', shown[1]):
        assert citation[pair[0]] == json.loads(pair[1])


def test_the_api_page_asks_over_http(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nThe spare key hangs behind the clock.\n")
    stanzas = BLOCKS["http"].replace("http://127.0.0.1:7071", stack.base_url).strip().split("\n\n")
    assert len(stanzas) == len(EXPECTED)
    script = f"\necho; echo '{BETWEEN}'\n".join(stanzas)
    outputs = bash(script, tmp_path, stack, TOKEN=stack.token(ANNA)).split(f"\n{BETWEEN}\n")
    for stanza, output, (beginning, words) in zip(stanzas, outputs, EXPECTED, strict=True):
        assert stanza.startswith(beginning)
        assert [word for word in words if word not in output] == [], output
    assert "id: 5\n" not in outputs[4]
    problem = json.loads(outputs[-1])
    assert (problem["status"], bool(problem["hints"])) == (400, True)


def test_the_readme_asks_from_the_command_line(stack: LocalStack, tmp_path: Path) -> None:
    folder = tmp_path / "FOLDER"
    folder.mkdir()
    (folder / "clock.md").write_text("# Clock\n\nThe clock is wound on Mondays.\n")
    script = BLOCKS["command line"].replace(".venv/bin/python", sys.executable)
    output = bash(script, tmp_path, stack, GROUNDWORK_DATA=str(stack.data), GROUNDWORK_URL=stack.base_url)
    assert "Signed in" in output
    assert "6.5 bar" in output
    assert "1 of 1 files are ready." in output


def test_every_block_that_is_marked_is_run() -> None:
    assert BLOCKS.keys() == {"curl", "http", "command line"}
