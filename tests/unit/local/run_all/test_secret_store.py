"""Tests for the keys of a data folder and the tokens signed with them."""

import json
import stat
from pathlib import Path

import jwt

from local.run_all.tokens import AUDIENCE, FILE_NAME, load_or_make_secrets, mint_token, write_tokens_file
from samples.acl import ANNA, BEN
from shared.access.identity import authenticate
from shared.platform.settings import Settings
from tests.fakes.directory import InMemoryDirectory


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    load_or_make_secrets(tmp_path)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_secrets_of_a_folder_stay_the_same(tmp_path: Path) -> None:
    assert load_or_make_secrets(tmp_path) == load_or_make_secrets(tmp_path)


def test_missing_secret_is_added_to_those_of_a_folder(tmp_path: Path) -> None:
    secrets = load_or_make_secrets(tmp_path)
    stored = json.loads((tmp_path / FILE_NAME).read_text())
    del stored["owner_id_key"]
    (tmp_path / FILE_NAME).write_text(json.dumps(stored))
    again = load_or_make_secrets(tmp_path)
    assert again.token_secret == secrets.token_secret
    assert len(again.owner_id_key) == 64
    assert load_or_make_secrets(tmp_path) == again


def test_two_folders_have_different_secrets(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = load_or_make_secrets(tmp_path / "a"), load_or_make_secrets(tmp_path / "b")
    assert {one.search_key, one.model_key, one.token_secret}.isdisjoint(
        {other.search_key, other.model_key, other.token_secret}
    )


def test_a_draft_left_by_a_kill_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f"{FILE_NAME}.new").write_text("{")
    assert load_or_make_secrets(tmp_path).search_key


async def test_the_app_believes_the_tokens_of_the_launcher(tmp_path: Path) -> None:
    secret = load_or_make_secrets(tmp_path).token_secret
    settings = Settings.of(
        azure_search_endpoint="http://127.0.0.1:1",
        DocumentsStorage="UseDevelopmentStorage=true",
        openai_base_url="http://127.0.0.1:1",
        chat_model="m",
        embedding_model="m",
        embedding_dimensions=8,
        owner_id_key=secret,
        dev_token_secret=secret,
    )
    for user in (ANNA, BEN):
        headers = {"authorization": f"Bearer {mint_token(user, secret)}"}
        seen = await authenticate(headers, settings, InMemoryDirectory())
        assert seen.user_id == user.user_id
        assert seen.department == user.department
        assert seen.groups == user.groups
        assert seen.org_id == user.org_id


def test_the_tokens_of_the_stack_are_for_its_owner_and_tell_the_app(tmp_path: Path) -> None:
    path = write_tokens_file(tmp_path, "http://127.0.0.1:1", "s" * 40)
    assert write_tokens_file(tmp_path, "http://127.0.0.1:2", "s" * 40) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    contents = json.loads(path.read_text(encoding="utf-8"))
    assert contents["url"] == "http://127.0.0.1:2"
    roles = {
        name: jwt.decode(token, "s" * 40, algorithms=["HS256"], audience=AUDIENCE)["roles"]
        for name, token in contents["tokens"].items()
    }
    assert roles == {"anna": [], "ben": [], "admin": ["admin"]}
