"""The app's settings, read once from environment variables. No other module reads the environment.

`make docs` generates docs/settings.md from the fields of `settings_groups`, and `make infra-check` compares
them with the app settings in infra/bicep.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from shared.platform.errors import ConfigurationError
from shared.platform.settings_groups.access import BotSettings, IdentitySettings, LimitSettings
from shared.platform.settings_groups.answers import (
    TIGHT_BUDGETS,
    AnsweringSettings,
    BudgetSettings,
    ConversationSettings,
    SubagentSettings,
    SummarySettings,
    ThresholdSettings,
    WebSearchSettings,
)
from shared.platform.settings_groups.base import (
    CONSTANT,
    MODEL_TIMEOUT,
    PLATFORM,
    SettingsGroup,
    fields_of,
    kind_of,
    settings_of,
)
from shared.platform.settings_groups.documents import (
    DatabaseSettings,
    IngestionSettings,
    SharePointSettings,
    WebPageSettings,
)
from shared.platform.settings_groups.services import (
    HostSettings,
    ModelSettings,
    SearchSettings,
    StorageSettings,
    TelemetrySettings,
)
from shared.platform.settings_groups.values import is_encrypted

Group = TypeVar("Group", bound=SettingsGroup)


class Settings(BaseModel):
    """All settings of the app, by group."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    search: SearchSettings
    storage: StorageSettings
    models: ModelSettings
    ingestion: IngestionSettings
    answering: AnsweringSettings
    conversations: ConversationSettings
    summaries: SummarySettings
    subagents: SubagentSettings
    thresholds: ThresholdSettings
    budgets: BudgetSettings
    web_search: WebSearchSettings
    web_pages: WebPageSettings
    sharepoint: SharePointSettings
    databases: DatabaseSettings
    limits: LimitSettings
    telemetry: TelemetrySettings
    bot: BotSettings
    identity: IdentitySettings
    host: HostSettings
    variables: Mapping[str, object] = Field(default_factory=dict, repr=False)
    """Other environment variables, by lower-case name. Optional tools read their settings from these."""

    def group(self, kind: type[Group]) -> Group:
        """Return a settings group that is not a field of this class, such as the settings of an optional
        tool.

        Raises:
            ConfigurationError: one line for each missing or invalid variable.
        """
        names = [field.alias or "" for field in kind.model_fields.values()]
        values = {name: self.variables[name.lower()] for name in names if name.lower() in self.variables}
        try:
            return kind.model_validate(values)
        except ValidationError as invalid:
            raise _configuration_error(invalid, fields_of([kind])) from None

    @classmethod
    def of(cls, values: Mapping[str, object] | None = None, /, **more_values: object) -> Self:
        """Create settings from values by environment variable name, ignoring case.

        Raises:
            ValidationError: a value is missing or invalid.
            KeyError: there is no setting with one of these names.
        """
        places = {
            (field.alias or "").lower(): (group, field.alias or "")
            for group, kind in setting_groups().items()
            for field in kind.model_fields.values()
        }
        by_group: dict[str, dict[str, object]] = {group: {} for group in setting_groups()}
        others = {name.lower() for name in fields_of(SettingsGroup.__subclasses__())} - places.keys()
        lowered = {name.lower(): value for name, value in {**(values or {}), **more_values}.items()}
        if lowered.get("budget_preset") == "tight":
            lowered = {name.lower(): value for name, value in TIGHT_BUDGETS.items()} | lowered
        variables = {name: value for name, value in lowered.items() if name in others}
        for name, value in lowered.items():
            if name not in others:
                group, variable = places[name]
                by_group[group][variable] = value
        settings = cls.model_validate({**by_group, "variables": variables})
        factor = settings.models.timeout_factor
        if factor == 1:
            return settings
        return cls.model_validate({**_with_longer_timeouts(by_group, factor), "variables": variables})

    def changed(self, **new_values: object) -> Self:
        """Return a copy with new values for some settings, given by environment variable name, ignoring
        case.
        """
        values = {
            (info.alias or "").lower(): getattr(getattr(self, group), field)
            for group, kind in setting_groups().items()
            for field, info in kind.model_fields.items()
        }
        copy = self.of({**values, **{name.lower(): value for name, value in new_values.items()}})
        return copy.model_copy(update={"variables": {**self.variables, **copy.variables}})

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        total_ms, reserved_ms = self.budgets.max_total_latency_ms, self.subagents.reserve_latency_ms
        if total_ms <= reserved_ms:
            raise ValueError(
                f"MAX_TOTAL_LATENCY_MS ({total_ms}) must exceed {reserved_ms}, the time for answering."
            )
        if self.host.is_hosted and (self.identity.dev_token_secret or self.bot.local_anonymous):
            raise ValueError(
                "DEV_TOKEN_SECRET and BOT_LOCAL_ANONYMOUS are only for development. Remove them from hosted "
                "deployments."
            )
        if self.sharepoint.addresses and not self.identity.tenants:
            raise ValueError(
                "SHAREPOINT_LIBRARIES requires ALLOWED_TENANTS, which defines who belongs to the "
                "organisation."
            )
        for variable, address in self._addresses_with_keys():
            if not is_encrypted(address):
                raise ValueError(f"{variable} receives a key, so it must use https or name this machine.")
        return self

    def _addresses_with_keys(self) -> Iterator[tuple[str, str]]:
        """Yield the variable name and URL of each configured endpoint that receives a key."""
        models, ingestion, storage = self.models, self.ingestion, self.storage
        for variable, address, key in (
            ("AZURE_SEARCH_ENDPOINT", self.search.endpoint, self.search.api_key),
            ("OPENAI_BASE_URL", models.openai_base_url, models.openai_api_key),
            ("AZURE_OPENAI_ENDPOINT", models.azure_openai_endpoint, models.azure_openai_api_key),
            ("DOCLING_ENDPOINT", ingestion.docling_endpoint, ingestion.docling_api_key),
            ("TABLES_ENDPOINT", storage.tables_endpoint, storage.tables_key),
        ):
            if address and key:
                yield variable, address
        parts = (part.partition("=") for part in (storage.connection_string or "").split(";"))
        said = {name.strip().lower(): value.strip() for name, _, value in parts}
        endpoints = [value for name, value in said.items() if name.endswith("endpoint")]
        if said.get("defaultendpointsprotocol", "").lower() == "http" and not endpoints:
            endpoints = ["http://core.windows.net"]
        yield from (("DocumentsStorage", endpoint) for endpoint in endpoints)


def _with_longer_timeouts(
    by_group: Mapping[str, Mapping[str, object]], factor: float
) -> dict[str, dict[str, object]]:
    """Return the values of each group with all model timeouts multiplied by `factor`. Timeouts that are set
    explicitly keep their value.
    """
    longer = {
        group: {
            str(field.alias): field.default * factor
            for field in kind.model_fields.values()
            if kind_of(field) == MODEL_TIMEOUT
        }
        for group, kind in setting_groups().items()
    }
    return {group: {**longer[group], **values} for group, values in by_group.items()}


def setting_groups() -> dict[str, type[SettingsGroup]]:
    """Return the settings groups by field name of `Settings`. The groups of optional tools are not
    included.
    """
    fields = {name: field.annotation for name, field in Settings.model_fields.items()}
    return {
        name: kind
        for name, kind in fields.items()
        if isinstance(kind, type) and issubclass(kind, SettingsGroup)
    }


def setting_fields() -> dict[str, FieldInfo]:
    """Return all fields that operators can set, keyed by environment variable."""
    groups = setting_groups().values()
    return {name: field for group in groups for name, field in settings_of(group).items()}


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read and validate the settings from environment variables.

    If DEV_TOKEN_SECRET is set, as in development, environment variables can also override constants. Tests
    that start the app in a separate process rely on this.

    Raises:
        ConfigurationError: one line for each missing or invalid variable, with its purpose and an example.
    """
    fields = setting_fields()
    nonempty = {name: value for name, value in environment.items() if value}
    kinds = {None, PLATFORM}
    if "DEV_TOKEN_SECRET" in nonempty:
        kinds |= {CONSTANT, MODEL_TIMEOUT}
    names = {
        variable.lower()
        for variable, field in fields_of(setting_groups().values()).items()
        if kind_of(field) in kinds
    }
    values = {name: value for name, value in nonempty.items() if name.lower() in names}
    others = {name.lower(): value for name, value in nonempty.items() if name.lower() not in names}
    try:
        return Settings.of(values).model_copy(update={"variables": others})
    except ValidationError as invalid:
        raise _configuration_error(invalid, fields) from None


def _configuration_error(invalid: ValidationError, fields: Mapping[str, FieldInfo]) -> ConfigurationError:
    errors = invalid.errors()
    lines = [_explain(error["loc"], error["msg"].removeprefix("Value error, "), fields) for error in errors]
    return ConfigurationError("\n".join(lines))


def _explain(location: tuple[int | str, ...], message: str, fields: Mapping[str, FieldInfo]) -> str:
    """Return a line that describes an invalid variable, its purpose and an example."""
    for variable, field in fields.items():
        if location and location[-1] == variable:
            value = field.examples[0] if field.examples else field.default
            example = str(value).lower() if isinstance(value, bool) else value
            suffix = f" Example: {variable}={example}" if isinstance(example, str | int | float) else ""
            return f"{variable}: {message}. {field.description}{suffix if example != '' else ''}"
    return message


@cache
def get_settings() -> Settings:
    """Return the settings of this process. The environment is read on the first call."""
    return load_settings()
