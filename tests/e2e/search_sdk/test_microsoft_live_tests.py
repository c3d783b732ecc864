"""Microsoft's live tests of azure-search-documents 12.0.0, unmodified.

The tests are part of the SDK's source distribution and run against the local server. Tests of features that
the server doesn't have are omitted: knowledge bases, indexers with skillsets and data sources, synonym maps.
"""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.search_sdk.hotels import write_hotels
from tests.servers import SearchServer

SDK = "azure-search-documents"
SDK_VERSION = "12.0.0"
STAND_IN = Path(__file__).parent / "stand_in"
NOT_SERVED = ("knowledge", "indexer", "skillset", "data_source", "synonym_map")
SKIPS_OF_THEIR_OWN = {"test_alias": 2}

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(500)]


@pytest.fixture(scope="module")
def sdk_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tests folder of the source distribution, with hotels in it."""
    folder = tmp_path_factory.mktemp("sdist")
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--no-binary={SDK}"]
    subprocess.run([*download, "--dest", str(folder), f"{SDK}=={SDK_VERSION}"], check=True, timeout=300)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (tests,) = folder.glob("*/tests")
    write_hotels(tests)
    return tests


def test_the_live_tests_of_the_sdk_pass(sdk_tests: Path, search_server: SearchServer) -> None:
    report = sdk_tests / "report.xml"
    files = [
        path
        for path in sorted(sdk_tests.glob("test_*live*.py"))
        if not any(what in path.name for what in NOT_SERVED)
    ]
    options = ["-p", "no:cacheprovider", "-o", "asyncio_mode=auto", f"--junitxml={report}", "-q"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(path.name for path in files)],
        cwd=sdk_tests,
        env={
            **os.environ,
            "PYTHONPATH": str(STAND_IN),
            "SEARCH_SERVICE_ENDPOINT": search_server.endpoint,
            "SEARCH_SERVICE_KEY": search_server.api_key,
        },
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )
    outcomes = _outcomes(report)
    assert not outcomes["failure"], run.stdout
    assert not outcomes["error"], run.stdout
    assert sum(outcomes["passed"].values()) >= 17
    assert dict(outcomes["skipped"]) == SKIPS_OF_THEIR_OWN


def _outcomes(report: Path) -> dict[str, Counter[str]]:
    """Return how many tests of each name passed, failed or were skipped."""
    outcomes: dict[str, Counter[str]] = {
        word: Counter() for word in ("passed", "failure", "error", "skipped")
    }
    for case in ElementTree.parse(report).iter("testcase"):
        words = [child.tag for child in case if child.tag in outcomes]
        outcomes[words[0] if words else "passed"][case.get("name", "")] += 1
    return outcomes
