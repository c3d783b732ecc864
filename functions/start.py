"""What stops a worker before it registers a function: settings that are missing or wrong."""

from pathlib import Path

from shared.platform.loading import load
from shared.platform.settings import get_settings

_ROOT = Path(__file__).parents[1]


def require_settings() -> None:
    """Stop the start when a setting is missing or wrong, rather than fail with each request.

    Raises:
        ConfigurationError: all that is wrong, each with its name, its purpose and an example.
    """
    settings = get_settings()
    if next((_ROOT / settings.answering.agents_folder).glob("*.agent.md"), None):
        # Only an app that has agents waits for the code that reads them.
        load("shared.answering.agent_files", "agents_of")(settings)
