"""Wrong settings stop the start of a real host: each with its name, its purpose and an example."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.platform.settings import Settings
from tests.contract.worker.app_bindings import ROOT, SETTINGS

pytestmark = [pytest.mark.e2e]

WRONG = (
    # All that is wrong by itself is said at once.
    (
        {
            "CHAT_MODEL": "",
            "AZURE_SEARCH_ENDPOINT": "",
            "EMBEDDING_DIMENSIONS": "many",
            "STREAM_SECONDS": "-1",
            "MAX_ATTEMPTS": "0",
            "SEMANTIC_RANKER": "perhaps",
            "SUBAGENTS_MAX_PER_REQUEST": "-2",
            "MAX_DOCUMENT_BYTES": "1e400",
            "RATE_LIMIT_PER_MINUTE": "-1",
            "PARSER_BACKEND": "magic",
        },
        (),
    ),
    ({"OPENAI_BASE_URL": ""}, ("OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT is missing",)),
    ({"WEBSITE_SITE_NAME": "app", "ALLOW_ANONYMOUS": "true"}, ("DEV_TOKEN_SECRET", "ALLOW_ANONYMOUS")),
)


def start(settings: dict[str, str], data: Path) -> subprocess.CompletedProcess[str]:
    known = {(field.alias or name).upper() for name, field in Settings.model_fields.items()}
    inherited = {name: value for name, value in os.environ.items() if name.upper() not in known}
    return subprocess.run(
        [sys.executable, "-m", "local.host", "--port", "0", "--data", str(data)],
        cwd=ROOT,
        env={**inherited, **SETTINGS, **settings},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(("settings", "told"), WRONG, ids=[next(reversed(wrong)) for wrong, _ in WRONG])
def test_the_host_refuses_to_start(settings: dict[str, str], told: tuple[str, ...], tmp_path: Path) -> None:
    refused = start(settings, tmp_path)
    assert refused.returncode == 2, refused.stderr
    assert "refuses to start" in refused.stderr
    assert "Traceback" not in refused.stderr
    for words in told:
        assert words in refused.stderr
    if told:
        return
    fields = {(field.alias or name).upper(): field for name, field in Settings.model_fields.items()}
    lines = refused.stderr.replace("local.host: function_app refuses to start. ", "").splitlines()
    for name in settings:
        (line,) = [line for line in lines if line.startswith(f"{name}: ")]
        assert (fields[name].description or "no purpose") in line
        assert f"Example: {name}=" in line
