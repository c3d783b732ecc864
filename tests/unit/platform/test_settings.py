"""Tests for settings: errors name each missing or invalid variable with its purpose and an example."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.ingestion.acceptance import pipeline
from shared.platform.errors import ConfigurationError
from shared.platform.settings import Settings, load_settings, setting_fields
from shared.wiring import Connections, build_services
from tests.fakes.services import fake_settings

SECRET = "development, 0123456789 and letters"
COMPLETE = {
    "AZURE_SEARCH_ENDPOINT": "https://x.search.windows.net",
    "DocumentsStorage": "UseDevelopmentStorage=true",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
    "CHAT_MODEL": "chat",
    "EMBEDDING_MODEL": "embedding",
    "EMBEDDING_DIMENSIONS": "384",
    "OWNER_ID_KEY": "ids of people, 0123456789 and letters",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Set only the required variables."""
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


@pytest.mark.parametrize("variable", ["DEV_TOKEN_SECRET", "BOT_LOCAL_ANONYMOUS"])
@pytest.mark.parametrize(
    "sign", ["WEBSITE_SITE_NAME", "WEBSITE_AUTH_ENABLED", "CONTAINER_APP_NAME", "KUBERNETES_SERVICE_HOST"]
)
def test_what_is_for_development_is_refused_where_the_app_is_hosted(
    environment: pytest.MonkeyPatch, variable: str, sign: str
) -> None:
    environment.setenv(variable, SECRET if variable == "DEV_TOKEN_SECRET" else "true")
    assert not load_settings().host.is_hosted
    environment.setenv(sign, "true")
    with pytest.raises(ConfigurationError, match=variable):
        load_settings()


@pytest.mark.parametrize("secret", ["x" * 32, "password" * 4, "0123456701234567" * 2])
def test_a_secret_that_is_easy_to_guess_is_refused(environment: pytest.MonkeyPatch, secret: str) -> None:
    environment.setenv("DEV_TOKEN_SECRET", secret)
    with pytest.raises(ConfigurationError, match="DEV_TOKEN_SECRET: too easy to guess"):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        ("AZURE_SEARCH_ENDPOINT", {"AZURE_SEARCH_ENDPOINT": "http://search", "AZURE_SEARCH_API_KEY": "k"}),
        ("OPENAI_BASE_URL", {"OPENAI_BASE_URL": "http://models/v1", "OPENAI_API_KEY": "k"}),
        (
            "AZURE_OPENAI_ENDPOINT",
            {"AZURE_OPENAI_ENDPOINT": "http://models", "AZURE_OPENAI_API_KEY": "k"},
        ),
        ("DOCLING_ENDPOINT", {"DOCLING_ENDPOINT": "http://docling:5001", "DOCLING_API_KEY": "k"}),
        ("TABLES_ENDPOINT", {"TABLES_ENDPOINT": "http://tables", "TABLES_KEY": "k"}),
        ("DocumentsStorage", {"DocumentsStorage": "AccountKey=k;BlobEndpoint=http://store:10000/a"}),
        (
            "DocumentsStorage",
            {"DocumentsStorage": "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=k"},
        ),
    ],
)
def test_a_key_is_sent_over_https_or_not_at_all(
    environment: pytest.MonkeyPatch, variable: str, values: dict[str, str]
) -> None:
    for name, value in values.items():
        environment.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"{variable} receives a key"):
        load_settings()
    for name, value in values.items():
        environment.setenv(name, value.replace("http://", "https://").replace("=http;", "=https;"))
    load_settings()


def test_a_key_may_go_to_this_machine_over_http(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AZURE_SEARCH_ENDPOINT", "http://localhost:7071")
    environment.setenv("AZURE_SEARCH_API_KEY", "k")
    local = "DefaultEndpointsProtocol=http;AccountKey=k;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1"
    environment.setenv("DocumentsStorage", local)
    load_settings()


def test_secrets_are_not_shown_with_the_settings(environment: pytest.MonkeyPatch) -> None:
    secrets = {
        "AZURE_SEARCH_API_KEY": "hidden-1",
        "DocumentsStorage": "hidden-2",
        "OPENAI_API_KEY": "hidden-3",
        "AZURE_OPENAI_API_KEY": "hidden-4",
        "DEV_TOKEN_SECRET": "hidden-5 of many letters, 0123456789",
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
    environment.setenv("RUN_RETENTION_DAYS", "-1")
    environment.setenv("SEMANTIC_RANKER", "perhaps")
    with pytest.raises(ConfigurationError) as wrong:
        load_settings()
    assert "Example: RUN_RETENTION_DAYS=30" in wrong.value.detail
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
    ("value", "features"), [(" AUTO ", None), ("Tools,,max_tokens", {"tools", "max_tokens"})]
)
def test_model_features_are_named_or_learned(value: str, features: set[str] | None) -> None:
    assert load_settings({**COMPLETE, "MODEL_FEATURES": value}).models.known_features == features


@pytest.mark.parametrize("value", ["tool", "auto,tools", "json"])
def test_an_unknown_model_feature_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"MODEL_FEATURES.*max_tokens"):
        load_settings({**COMPLETE, "MODEL_FEATURES": value})


ID = "72f988bf-86f1-41af-91ab-2d7cd011db47"
BOT = {"bot_app_id": ID, "bot_tenant_id": ID}
INSIGHTS = "InstrumentationKey=00000000-0000-0000-0000-000000000000;IngestionEndpoint=https://x.example"
AZURE = "https://x.cognitiveservices.azure.com"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bot_app_id": ID}, "BOT_TENANT_ID"),
        ({"bot_app_id": "groundwork", "bot_tenant_id": ID}, "BOT_APP_ID"),
        ({"bot_app_id": ID, "bot_tenant_id": "contoso.com"}, "BOT_TENANT_ID"),
        ({**BOT, "bot_local_anonymous": True}, "BOT_LOCAL_ANONYMOUS"),
        ({"bot_local_anonymous": True, "website_site_name": "app"}, "BOT_LOCAL_ANONYMOUS"),
        ({"bot_attachment_hosts": "https://contoso.sharepoint.com"}, "BOT_ATTACHMENT_HOSTS"),
        ({"bot_attachment_hosts": "*"}, "BOT_ATTACHMENT_HOSTS"),
        ({"bot_attachment_hosts": "*.sharepoint.com"}, "BOT_ATTACHMENT_HOSTS"),
        ({"bot_attachment_hosts": "."}, "BOT_ATTACHMENT_HOSTS"),
        ({"public_url": "http://groundwork.contoso.com"}, "PUBLIC_URL"),
        ({"public_url": "https://groundwork.contoso.com/app"}, "PUBLIC_URL"),
        ({"public_url": "https://me@groundwork.contoso.com"}, "PUBLIC_URL"),
        ({"public_url": "groundwork.contoso.com"}, "PUBLIC_URL"),
        ({"group_cache_s": 86_400}, "GROUP_CACHE_S"),
        ({"graph_endpoint": "http://graph.microsoft.com"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "https://graph.microsoft.com/v1.0"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "https://graph.microsoft.com?x=1"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "https://me@graph.microsoft.com"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "graph.microsoft.com"}, "GRAPH_ENDPOINT"),
        ({"allowed_tenants": "contoso.com"}, "ALLOWED_TENANTS"),
        ({"allowed_tenants": f"{ID},0d4c3b2a-1f0e-4d5c-8b7a-665544332211"}, "ALLOWED_TENANTS"),
        ({"allowed_tenants": "72f988bf-86f1-41af-91ab-2d7cd011db47;x"}, "ALLOWED_TENANTS"),
        ({"group_overage": "none"}, "GROUP_OVERAGE"),
        ({"guests": "everybody"}, "GUESTS"),
        ({"otel_exporter_otlp_endpoint": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"otel_exporter_otlp_endpoint": "grpc://collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"otel_exporter_otlp_endpoint": "https://me:it@x.example"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"otel_exporter_otlp_endpoint": "https://x.example?key=1"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (
            {"otel_exporter_otlp_endpoint": "http://x.example", "otel_exporter_otlp_headers": "a=SESAME"},
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ),
        ({"otel_exporter_otlp_headers": "SESAME"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"otel_exporter_otlp_headers": "a=SESAME\r\nb: c"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"applicationinsights_connection_string": "SESAME"}, "APPLICATIONINSIGHTS_CONNECTION_STRING"),
        ({"trace_sample_ratio": "1.5"}, "TRACE_SAMPLE_RATIO"),
        ({"otel_service_name": "x" * 101}, "OTEL_SERVICE_NAME"),
        ({"parser_backend": "document_intelligence"}, "DOCUMENT_INTELLIGENCE_ENDPOINT is missing"),
        ({"text_recognition": "document_intelligence"}, "DOCUMENT_INTELLIGENCE_ENDPOINT is missing"),
        ({"parser_backend": "docling"}, "DOCLING_ENDPOINT is missing"),
        ({"parser_backend": "docling", "docling_endpoint": "docling:5001"}, "DOCLING_ENDPOINT"),
        (
            {"parser_backend": "docling", "docling_endpoint": "http://me:it@docling"},
            "DOCLING_ENDPOINT",
        ),
        ({"parser_backend": "tika"}, "PARSER_BACKEND"),
        ({"text_recognition": "docling"}, "TEXT_RECOGNITION"),
        ({"web_search_url": "http://search.example.org/search"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "http://127.0.0.1.example.org/search"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "search.example.org"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "ftp://127.0.0.1/search"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "https://"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "https://me:it@search.example.org/search"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "https://search.example.org/search?q=a"}, "WEB_SEARCH_URL"),
        ({"web_search_url": "https://search.example.org/search#a"}, "WEB_SEARCH_URL"),
        ({"web_search_key_header": "X-Key: a"}, "WEB_SEARCH_KEY"),
        ({"web_search_key": "a\r\nb"}, "WEB_SEARCH_KEY"),
        ({"web_search_key_header": "ü"}, "WEB_SEARCH_KEY"),
    ],
)
def test_what_is_wrong_stops_the_start_by_name_and_without_its_key(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        fake_settings(**changes)
    assert "SESAME" not in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {**BOT, "website_site_name": "app"},
        {"bot_local_anonymous": True},
        {"graph_endpoint": "https://graph.microsoft.us"},
        {"graph_endpoint": "https://graph.microsoft.com/"},
        {"graph_endpoint": "http://127.0.0.1:8000"},
    ],
)
def test_what_is_right_is_taken(changes: dict[str, Any]) -> None:
    settings = fake_settings(**changes)
    groups = (settings.bot, settings.identity, settings.host)
    setting_values = {
        name.lower(): value for group in groups for name, value in group.model_dump(by_alias=True).items()
    }
    assert setting_values.items() >= changes.items()


def test_keys_are_not_shown_with_the_settings() -> None:
    keys = {
        "document_intelligence_key": "SESAME",
        "docling_api_key": "SESAME",
        "web_search_key": "SESAME",
        "otel_exporter_otlp_endpoint": "https://x.example",
        "otel_exporter_otlp_headers": "X-Api-Key=SESAME=1, project=p,",
        "applicationinsights_connection_string": INSIGHTS.replace("0000-", "SESAME"),
    }
    settings = fake_settings(**keys)
    assert "SESAME" not in repr(settings)
    assert settings.telemetry.otlp_headers == {"x-api-key": "SESAME=1", "project": "p"}


def test_names_in_lists_are_compared_in_small_letters() -> None:
    settings = fake_settings(
        bot_attachment_hosts=" .SharePoint.com,, files.contoso.com:8443 ",
        allowed_tenants=f" {ID.upper()} ,",
        subagents_sensitive_departments="Human Resources, LEGAL,",
    )
    assert settings.bot.attachment_hosts == (".sharepoint.com", "files.contoso.com:8443")
    assert settings.identity.tenants == (ID,)
    assert settings.subagents.sensitive_department_names == ("human resources", "legal")
    assert fake_settings().identity.tenants == ()


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ({}, None),
        ({"website_hostname": "app.azurewebsites.net"}, "https://app.azurewebsites.net"),
        ({"public_url": "https://gw.contoso.com/", "website_hostname": "x"}, "https://gw.contoso.com"),
        ({"public_url": "http://127.0.0.1:7071"}, "http://127.0.0.1:7071"),
    ],
)
def test_links_lead_to_where_people_reach_the_app(changes: dict[str, Any], address: str | None) -> None:
    assert fake_settings(**changes).host.public_address == address


def test_the_web_is_not_searched_unless_it_is_configured() -> None:
    assert build_services(fake_settings()).web_search is None


@pytest.mark.parametrize("url", ["https://search.example.org/search", "http://127.0.0.1:1/search"])
def test_https_or_this_machine_may_be_asked(url: str) -> None:
    assert build_services(fake_settings(web_search_url=url)).web_search is not None


def test_nothing_is_sent_unless_a_receiver_is_named() -> None:
    settings = fake_settings()
    assert not settings.telemetry.is_on
    assert not settings.telemetry.trace_content
    assert settings.telemetry.trace_sample_ratio == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"otel_exporter_otlp_endpoint": "http://jaeger:4318"},
        {
            "otel_exporter_otlp_endpoint": "https://collector.example/otlp",
            "otel_exporter_otlp_headers": "a=b",
        },
        {"otel_exporter_otlp_endpoint": "http://127.0.0.1:4318", "otel_exporter_otlp_headers": "a=b"},
        {"applicationinsights_connection_string": INSIGHTS},
    ],
)
def test_a_receiver_may_be(changes: dict[str, str]) -> None:
    assert fake_settings(**changes).telemetry.is_on


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://x.cognitiveservices.azure.com"])
def test_a_key_or_token_goes_over_https_alone_but_for_a_key_on_this_machine(
    endpoint: str, key: str | None
) -> None:
    changes: dict[str, Any] = {
        "parser_backend": "document_intelligence",
        "document_intelligence_endpoint": endpoint,
        "document_intelligence_key": key,
    }
    if key and "127" in endpoint:
        assert fake_settings(**changes).ingestion.document_intelligence_key == key
        return
    with pytest.raises(ValidationError, match="DOCUMENT_INTELLIGENCE_"):
        fake_settings(**changes)


@pytest.mark.parametrize(
    ("changes", "layout", "pages"),
    [
        ({}, None, None),
        ({"parser_backend": "docling"}, "the docling service", None),
        ({"parser_backend": "document_intelligence"}, "the Document Intelligence resource", None),
        ({"text_recognition": "document_intelligence"}, None, "the Document Intelligence resource"),
    ],
)
def test_settings_alone_choose_the_service(
    changes: dict[str, Any], layout: str | None, pages: str | None
) -> None:
    reached = {"document_intelligence_endpoint": AZURE, "docling_endpoint": "http://docling:5001"}
    chosen = build_services(fake_settings(**reached, **changes)).parser_services
    assert (chosen.layout.name if chosen.layout else None) == layout
    assert (chosen.pages.name if chosen.pages else None) == pages


def test_another_service_makes_documents_new() -> None:
    reached = {"document_intelligence_endpoint": AZURE, "docling_endpoint": "http://docling:5001"}
    choices: list[dict[str, Any]] = [
        {},
        {"parser_backend": "docling"},
        {"parser_backend": "document_intelligence"},
        {"text_recognition": "document_intelligence"},
    ]
    assert len({pipeline(fake_settings(**reached, **choice)) for choice in choices}) == len(choices)
    assert pipeline(fake_settings()) == pipeline(fake_settings(**reached))


async def test_without_a_key_document_intelligence_is_asked_with_the_identity() -> None:
    to = Connections(fake_settings(document_intelligence_endpoint=AZURE))
    client = await to.document_intelligence.opened()
    assert type(client._config.authentication_policy).__name__ == "AsyncBearerTokenCredentialPolicy"
    await to.close()


CONTRACT = {  # defaults in contracts.md, section 4
    "subagents_enabled": True,
    "subagents_max_per_request": 2,
    "subagents_max_recursion_depth": 1,
    "subagents_child_timeout_ms": 30_000,
    "subagents_child_max_turns": 6,
    "subagents_child_max_tool_calls": 16,
    "subagents_child_retry_count": 1,
    "subagents_child_retry_backoff_ms": 750,
    "circuit_breaker_failure_rate_threshold": 0.35,
    "circuit_breaker_window_requests": 50,
    "circuit_breaker_cooldown_seconds": 300,
    "low_retrieval_confidence_top_score": 0.62,
    "high_confidence_no_delegate_top_score": 0.78,
    "low_score_spread_ambiguity": 0.08,
    "high_score_spread_clarity": 0.15,
    "max_total_tokens_per_request": 120_000,
    "max_child_tokens": 30_000,
    "max_child_cost_usd": 0.12,
    "max_subagent_cost_usd": 0.30,
    "max_total_latency_ms": 60_000,
    "min_remaining_latency_to_delegate_ms": 20_000,
}
TIGHT = CONTRACT | {
    "subagents_child_timeout_ms": 15_000,
    "subagents_child_max_turns": 3,
    "max_total_tokens_per_request": 24_000,
    "max_child_tokens": 8_000,
    "max_child_cost_usd": 0.03,
    "max_subagent_cost_usd": 0.08,
    "max_total_latency_ms": 25_000,
    "min_remaining_latency_to_delegate_ms": 12_000,
}


def values(settings: Settings) -> dict[str, object]:
    """Return the settings of the contract, keyed by their variables in lower case."""
    groups = (settings.subagents, settings.thresholds, settings.budgets)
    by_alias = {
        name.lower(): value for group in groups for name, value in group.model_dump(by_alias=True).items()
    }
    return {name: by_alias[name] for name in CONTRACT}


def test_defaults_are_the_contracts() -> None:
    assert values(load_settings(COMPLETE)) == CONTRACT


def test_the_tight_preset_has_the_requirements_budgets() -> None:
    assert values(load_settings({**COMPLETE, "BUDGET_PRESET": "tight"})) == TIGHT


def test_a_budget_that_is_set_overrides_the_preset() -> None:
    environment = {"BUDGET_PRESET": "tight", "MAX_TOTAL_LATENCY_MS": "30000"}
    assert values(load_settings({**COMPLETE, **environment})) == TIGHT | {"max_total_latency_ms": 30_000}


def test_constants_are_read_from_the_environment_in_development_alone() -> None:
    environment = {**COMPLETE, "PLAN_TIMEOUT_S": "3", "SUBAGENTS_CHILD_RETRY_COUNT": "0"}
    hosted = load_settings(environment)
    assert (hosted.answering.plan_timeout_s, hosted.subagents.child_retry_count) == (10, 1)
    local = load_settings({**environment, "DEV_TOKEN_SECRET": SECRET})
    assert (local.answering.plan_timeout_s, local.subagents.child_retry_count) == (3, 0)
    assert not {"PLAN_TIMEOUT_S", "WEBSITE_SITE_NAME"} & setting_fields().keys()


def test_one_factor_lengthens_all_timeouts_of_model_calls() -> None:
    settings = load_settings({**COMPLETE, "MODEL_TIMEOUT_FACTOR": "2", "GITHUB_TOKEN": "key"})
    assert (settings.answering.plan_timeout_s, settings.summaries.call_timeout_s) == (20, 120)
    assert settings.search.timeout_s == load_settings(COMPLETE).search.timeout_s
    assert settings.variables["github_token"] == "key"
    assert settings.changed(plan_timeout_s=5).answering.plan_timeout_s == 5
    with pytest.raises(ConfigurationError, match="MODEL_TIMEOUT_FACTOR"):
        load_settings({**COMPLETE, "MODEL_TIMEOUT_FACTOR": "0"})


def test_changed_settings_keep_those_of_tools() -> None:
    settings = load_settings({**COMPLETE, "GITHUB_TOKEN": "key", "SHELL": "/bin/sh"})
    assert settings.changed(max_figures=3).variables == settings.variables


def test_about_a_hundred_settings() -> None:
    """Limit the number of settings: a number that no operator would change should be a constant."""
    assert len(setting_fields()) <= 105


def test_the_time_for_an_answer_must_fit_into_the_whole() -> None:
    with pytest.raises(ConfigurationError, match=r"^MAX_TOTAL_LATENCY_MS \(5000\) must exceed 12000"):
        load_settings({**COMPLETE, "MAX_TOTAL_LATENCY_MS": "5000"})


def test_a_tool_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"SUBAGENTS_RESTRICTED_TOOLS .*: delete_documents\."):
        load_settings({**COMPLETE, "SUBAGENTS_RESTRICTED_TOOLS": "retrieve_documents, delete_documents"})


def test_the_names_of_restricted_tools_are_read() -> None:
    settings = fake_settings(subagents_restricted_tools=" query_metadata ,retrieve_documents")
    assert set(settings.subagents.restricted_tool_names) == {"retrieve_documents", "query_metadata"}
