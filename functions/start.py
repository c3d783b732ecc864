"""Checks before a worker registers functions: missing or invalid settings stop it."""

from pathlib import Path

from shared.platform.loading import load
from shared.platform.settings import get_settings

_ROOT = Path(__file__).parents[1]


def require_settings() -> None:
    """Stop the start if a setting is missing or invalid, rather than fail every request.

    Raises:
        ConfigurationError: one line for each such setting: name, purpose and example.
    """
    settings = get_settings()
    if next((_ROOT / settings.answering.agents_folder).glob("*.agent.md"), None):
        # Imported only if agents are configured, to keep the start fast.
        load("shared.answering.agent_files", "agents_of")(settings)
