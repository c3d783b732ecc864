"""Snapshots of four deployments, which show how a change of infra/bicep affects the resources in Azure.

`make infra-check SNAPSHOTS=write` rewrites them. Review the differences before you commit them.
"""

import json
import os
from pathlib import Path

import pytest

from tests.infra.conftest import Deployment

pytestmark = pytest.mark.bicep

FOLDER = Path(__file__).parent / "snapshots"
NAMES = ("event_subscriptions", "everything", "private", "public")


def test_there_are_no_others() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_deployment_makes_what_its_snapshot_says(deployments: dict[str, Deployment], name: str) -> None:
    resources = [
        {key: value for key, value in one.items() if key != "id"}  # redundant with name and type
        for one in deployments[name].resources
        if one["type"] != "Microsoft.Insights/workbooks"  # compared in a separate file
    ]
    snapshot = json.dumps(
        {"resources": resources, "outputs": deployments[name].outputs}, indent=1, sort_keys=True
    )
    path = FOLDER / f"{name}.json"
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text(snapshot + "\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(snapshot)
