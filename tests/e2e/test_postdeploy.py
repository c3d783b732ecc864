"""The hook that runs after a deployment, with a replacement for `az` and a real sign-in, for a new app and
for a broken app.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from local.run_all.demo import documents_of
from local.run_all.stack import ROOT, LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import HANG_GUARD_S
from tests.e2e.stack_fixture import environment_without_model, settings_for

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(300)]

HOOK = "infra/hooks/postdeploy.sh"
OUTPUTS = ("AZURE_RESOURCE_GROUP", "AZURE_FUNCTION_APP_NAME", "CONTENT_STORAGE_NAME", "EVENT_GRID_TOPIC_NAME")
ENVIRONMENT = ("AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID", "AUTH_TENANT_ID", "IDENTITY_ID")  # set by azd
NOWHERE = "http://127.0.0.1:9"  # the discard port, on which no server listens
AZ = '#!/bin/sh\ncase "$*" in *get-access-token*) echo "$SIGN_IN" ;; esac\n'


def after_deployment(stack: LocalStack, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the hook as `azd` would, without its pauses."""
    programs = {"az": AZ, "sleep": "#!/bin/sh\n", "python3": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'}
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {
        **dict.fromkeys((*OUTPUTS, *ENVIRONMENT), "of-the-deployment"),
        "GROUNDWORK_SCOPE": "api://app/.default",
        "GROUNDWORK_URL": stack.base_url,
        "SIGN_IN": stack.token(ANNA),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.run(
        ["sh", str(ROOT / HOOK)],
        env={**environment_without_model(), **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_new_app_is_found_to_work_and_one_without_its_search_is_not(tmp_path: Path) -> None:
    with LocalStack(settings_for(tmp_path / "stack"), environment=environment_without_model()) as stack:
        ready = httpx.get(f"{stack.base_url}/api/health/ready", timeout=HANG_GUARD_S)
        assert ready.status_code == 503  # the app has no index yet
        done = after_deployment(stack, tmp_path)
        assert (done.returncode, done.stdout.count("\nok ")) == (0, 4), done.stdout + done.stderr
        assert "failed" not in done.stdout
        assert documents_of(stack, ANNA) == []
        stack.kill_host()
        stack.start_host({"AZURE_SEARCH_ENDPOINT": NOWHERE})
        broken = after_deployment(stack, tmp_path)
        assert broken.returncode == 1
        assert broken.stdout.count("failed ") == 3, broken.stdout
        assert "search" in broken.stdout
        assert "The app is deployed and does not work" in broken.stderr
        assert "Traceback" not in broken.stderr
        assert stack.token(ANNA) not in broken.stdout + broken.stderr
