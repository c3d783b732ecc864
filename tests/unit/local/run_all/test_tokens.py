"""Tokens that the stack writes down for the command line."""

import json
import stat
from pathlib import Path

import jwt

from local.run_all.tokens import AUDIENCE, write_tokens_file


def test_the_tokens_of_the_stack_are_for_its_owner_and_tell_the_app(tmp_path: Path) -> None:
    path = write_tokens_file(tmp_path, "http://127.0.0.1:1", "s" * 40)
    assert write_tokens_file(tmp_path, "http://127.0.0.1:2", "s" * 40) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["url"] == "http://127.0.0.1:2"
    roles = {
        name: jwt.decode(token, "s" * 40, algorithms=["HS256"], audience=AUDIENCE)["roles"]
        for name, token in written["tokens"].items()
    }
    assert roles == {"anna": [], "ben": [], "admin": ["admin"]}
