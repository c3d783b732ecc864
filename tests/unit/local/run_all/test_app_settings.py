"""Tests for the app settings of a local stack: they are valid, and a real model replaces the local one."""

import json
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from local.run_all.app_settings import app_settings, choose_model, raised_limits, write_settings_file
from local.run_all.stack_settings import Ports, StackError
from local.run_all.tokens import load_or_make_secrets
from shared.platform.settings import load_settings
from shared.platform.settings_groups.access import LimitSettings

REAL_MODEL = {
    "OPENAI_BASE_URL": "https://models.example/v1",
    "CHAT_MODEL": "big",
    "EMBEDDING_MODEL": "wide",
    "EMBEDDING_DIMENSIONS": "1536",
}


def test_the_app_accepts_the_settings_of_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = load_or_make_secrets(tmp_path)
    model = choose_model({}, 7073, secrets.model_key)
    app_environment = app_settings(Ports(), secrets, "UseDevelopmentStorage=true", model, {})
    for name in REAL_MODEL:
        monkeypatch.delenv(name, raising=False)
    for name, value in app_environment.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.search.endpoint == "http://127.0.0.1:7072"
    assert settings.models.openai_base_url == "http://127.0.0.1:7073/v1"
    assert settings.models.embedding_dimensions == 384
    assert settings.identity.dev_token_secret == secrets.token_secret


def test_without_an_endpoint_the_local_model_says_what_it_is() -> None:
    model = choose_model({}, 7073, "key")
    assert model.is_local
    assert "not a language model" in model.description


@pytest.mark.parametrize("endpoint", ["OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"])
def test_a_real_model_replaces_the_local_one(endpoint: str) -> None:
    environment = {**REAL_MODEL, "OPENAI_BASE_URL": "", endpoint: "https://models.example"}
    model = choose_model(environment, 7073, "key")
    assert not model.is_local
    assert model.description == "big at https://models.example"
    assert model.settings == {}


def test_an_endpoint_without_models_is_refused_naming_what_is_missing() -> None:
    with pytest.raises(StackError, match="not CHAT_MODEL, EMBEDDING_DIMENSIONS"):
        choose_model({"OPENAI_BASE_URL": "https://models.example", "EMBEDDING_MODEL": "wide"}, 1, "key")


def test_core_tools_find_the_same_settings_in_a_private_file(tmp_path: Path) -> None:
    path = write_settings_file(tmp_path, {"CHAT_MODEL": "small"})
    assert json.loads(path.read_text())["Values"] == {"CHAT_MODEL": "small"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_limit_that_is_wider_here_than_in_azure_is_printed(tmp_path: Path) -> None:
    secrets = load_or_make_secrets(tmp_path)

    def lines(environment: Mapping[str, str]) -> dict[str, str]:
        app_environment = app_settings(Ports(), secrets, "", choose_model({}, 1, "key"), environment)
        production = LimitSettings().model_dump()
        return {
            name: f"{name}={app_environment[name]} (in Azure {default})"
            for name, default in ((key.upper(), value) for key, value in production.items())
            if name in app_environment and app_environment[name] != str(default)
        }

    assert len(lines({})) == 3
    assert raised_limits({}) == list(lines({}).values())
    production_limits = {name: str(getattr(LimitSettings(), name.lower())) for name in lines({})}
    assert lines(production_limits) == {}
    assert raised_limits(production_limits) == []
