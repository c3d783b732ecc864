"""Settings: what is missing or wrong is named, with its purpose and an example."""

import pytest

from shared.platform.errors import ConfigurationError
from shared.platform.settings import Settings, load_settings, setting_fields

COMPLETE = {
    "AZURE_SEARCH_ENDPOINT": "https://x.search.windows.net",
    "DocumentsStorage": "UseDevelopmentStorage=true",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
    "CHAT_MODEL": "chat",
    "EMBEDDING_MODEL": "embedding",
    "EMBEDDING_DIMENSIONS": "384",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing set but what is needed."""
    for variable in setting_fields():
        monkeypatch.delenv(variable, raising=False)
    for variable, value in COMPLETE.items():
        monkeypatch.setenv(variable, value)
    return monkeypatch


def test_the_environment_is_read_by_the_names_that_azure_uses() -> None:
    settings = load_settings()
    assert settings.storage.connection_string == "UseDevelopmentStorage=true"
    assert settings.models.embedding_dimensions == 384
    assert settings.search.content_index == "content-blocks"
    assert not settings.host.in_azure


def test_managed_identity_needs_the_addresses_instead_of_the_connection_string(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.delenv("DocumentsStorage")
    environment.setenv("DocumentsStorage__blobServiceUri", "https://x.blob.core.windows.net")
    with pytest.raises(ConfigurationError, match="DocumentsStorage__tableServiceUri"):
        load_settings()
    environment.setenv("DocumentsStorage__tableServiceUri", "https://x.table.core.windows.net")
    assert load_settings().storage.blob_uri == "https://x.blob.core.windows.net"


@pytest.mark.parametrize("variable", ["AZURE_SEARCH_ENDPOINT", "CHAT_MODEL", "EMBEDDING_MODEL"])
def test_a_missing_variable_is_named_with_its_purpose_and_an_example(
    environment: pytest.MonkeyPatch, variable: str
) -> None:
    environment.delenv(variable)
    with pytest.raises(ConfigurationError) as missing:
        load_settings()
    field = setting_fields()[variable]
    assert field.examples
    assert str(missing.value).startswith(f"{variable}: ")
    assert field.description
    assert field.description in missing.value.detail
    assert f"Example: {variable}={field.examples[0]}" in missing.value.detail


def test_a_missing_setting_is_a_value_error_too(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("OPENAI_BASE_URL")
    with pytest.raises(ValueError, match="OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT is missing"):
        load_settings()


def test_an_empty_variable_is_a_missing_one(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("CHAT_MODEL", "")
    with pytest.raises(ConfigurationError, match="CHAT_MODEL"):
        load_settings()


def test_everything_that_is_wrong_is_said_at_once(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("CHAT_MODEL")
    environment.setenv("EMBEDDING_DIMENSIONS", "many")
    with pytest.raises(ConfigurationError) as wrong:
        load_settings()
    assert [line.split(":")[0] for line in wrong.value.detail.splitlines()] == [
        "CHAT_MODEL",
        "EMBEDDING_DIMENSIONS",
    ]


@pytest.mark.parametrize("variable", ["DEV_TOKEN_SECRET", "ALLOW_ANONYMOUS"])
def test_what_is_for_development_is_refused_in_azure(environment: pytest.MonkeyPatch, variable: str) -> None:
    environment.setenv(variable, "x" * 32 if variable == "DEV_TOKEN_SECRET" else "true")
    assert not load_settings().host.in_azure
    environment.setenv("WEBSITE_SITE_NAME", "groundwork")
    with pytest.raises(ConfigurationError, match=variable):
        load_settings()


def test_secrets_are_not_shown_with_the_settings(environment: pytest.MonkeyPatch) -> None:
    secrets = {
        "AZURE_SEARCH_API_KEY": "hidden-1",
        "DocumentsStorage": "hidden-2",
        "OPENAI_API_KEY": "hidden-3",
        "AZURE_OPENAI_API_KEY": "hidden-4",
        "DEV_TOKEN_SECRET": "hidden-5".ljust(32, "x"),
    }
    for variable, value in secrets.items():
        environment.setenv(variable, value)
    assert "hidden" not in repr(load_settings())


def test_a_secret_that_is_refused_is_not_repeated(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("DEV_TOKEN_SECRET", "too-short")
    with pytest.raises(ConfigurationError) as refused:
        load_settings()
    assert "DEV_TOKEN_SECRET" in refused.value.detail
    assert "too-short" not in refused.value.detail


def test_every_setting_says_what_it_is_for() -> None:
    assert [name for name, field in setting_fields().items() if not field.description] == []


def test_without_an_example_of_its_own_a_variable_shows_its_default(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("STREAM_SECONDS", "-1")
    environment.setenv("SEMANTIC_RANKER", "perhaps")
    with pytest.raises(ConfigurationError) as wrong:
        load_settings()
    assert "Example: STREAM_SECONDS=180" in wrong.value.detail
    assert "Example: SEMANTIC_RANKER=false" in wrong.value.detail


@pytest.mark.parametrize("name", ["CHAT_MODEL", "chat_model", "Chat_Model"])
def test_a_name_counts_in_any_case(name: str) -> None:
    others = {variable: value for variable, value in COMPLETE.items() if variable != "CHAT_MODEL"}
    assert load_settings({**others, name: "other"}).models.chat == "other"


def test_settings_can_be_changed_by_name() -> None:
    settings = load_settings(COMPLETE)
    assert settings.changed(max_figures=3) == load_settings({**COMPLETE, "MAX_FIGURES": "3"})
    with pytest.raises(KeyError):
        Settings.of(no_such_setting=1)


@pytest.mark.parametrize(
    ("value", "known"), [(" AUTO ", None), ("Tools,,max_tokens", {"tools", "max_tokens"})]
)
def test_model_features_are_named_or_learned(value: str, known: set[str] | None) -> None:
    assert load_settings({**COMPLETE, "MODEL_FEATURES": value}).models.known_features == known


@pytest.mark.parametrize("value", ["tool", "auto,tools", "json"])
def test_an_unknown_model_feature_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"MODEL_FEATURES.*max_tokens"):
        load_settings({**COMPLETE, "MODEL_FEATURES": value})
