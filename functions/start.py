"""Checks that run before a worker registers its functions, and stop it if settings are missing or invalid."""

from pathlib import Path

from shared.platform.loading import load
from shared.platform.settings import get_settings

_ROOT = Path(__file__).parents[1]


def require_settings() -> None:
    """Check all settings, so that a worker with missing or invalid ones stops at start-up instead of failing
    every request.

    Raises:
        ConfigurationError: a setting is missing or invalid. The message has a line with name, purpose and
        example for each.
    """
    settings = get_settings()
    if next((_ROOT / settings.answering.agents_folder).glob("*.agent.md"), None):
        # The module is imported only if there are agents, to keep the start-up fast.
        load("shared.answering.agent_files", "agents_of")(settings)
