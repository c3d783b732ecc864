"""Tests for the addresses that the app connects to, and whether untrusted input could change them.

A module that starts to use a network library fails here until it says where its addresses come from, and,
where that is not a setting alone, which test tries to steer it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.attack("outgoing addresses")

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = (
    "aiohttp",
    "http.client",
    "httpx",
    "openai",
    "psycopg",
    "requests",
    "shared.platform.http_client.connect_http",
    "socket",
    "urllib.request",
    "azure.",
    "_SDK.",  # a constant passed to `load`
)
HARMLESS = ("azure.functions", "azure.durable_functions", "azure.core", "azurefunctions", "azure.monitor")
SETTING = "a setting"
CALLER = "its callers"  # `DIALS` contains these callers as well
# Maps a module to the origin of its addresses, or to the test that attacks them.
DIALS = {
    "shared/access/directory.py": "tests/contract/clients/test_graph.py",  # ids of people, the next page
    "shared/ingestion/docling.py": "tests/contract/parser_backends/test_clients.py",  # ids that it answers
    "shared/ingestion/document_intelligence.py": "tests/contract/parser_backends/test_clients.py",  # the same
    "shared/platform/azure_search.py": CALLER,
    "shared/platform/connections.py": SETTING,
    "shared/platform/http_client.py": CALLER,
    "shared/platform/language_models/endpoint.py": SETTING,
    "shared/platform/tables.py": CALLER,
    "shared/platform/trace_export.py": SETTING,
    "shared/platform/web_pages.py": "tests/contract/clients/test_web_pages.py",  # the model's, the person's
    "shared/retrieval/index_admin.py": CALLER,
    "shared/retrieval/migration.py": CALLER,
    "shared/retrieval/mirrored_index.py": CALLER,
    "shared/sharepoint/client.py": "tests/unit/sharepoint/test_client.py",  # next pages, redirects
    "shared/tables/postgres.py": SETTING,
    "shared/teams/files.py": "tests/contract/teams/test_files.py",  # the address of a file
    "shared/teams/connector.py": "tests/contract/teams/test_tokens.py",  # the serviceUrl of an activity
    "shared/teams/tokens.py": "tests/contract/teams/test_tokens.py",  # the address of the signing keys
    "shared/wiring.py": SETTING,
    "shared/tools/github_api.py": "tests/contract/clients/test_github.py",  # names of repositories, paths
    "shared/tools/web_search.py": "tests/contract/clients/test_web_search.py",  # the question, redirects
}


def dialling_modules() -> Iterator[str]:
    for part in ("shared", "functions", "orchestrations"):
        for path in sorted((ROOT / part).glob("**/*.py")):
            if any(_dials(name) for name in _imported(ast.parse(path.read_text(encoding="utf-8")))):
                yield path.relative_to(ROOT).as_posix()


def _imported(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Call) and ast.unparse(child.func) in ("load", "load_async"):
            module, name = child.args
            yield f"{ast.unparse(module)}.{ast.unparse(name)}".replace("'", "")
        yield from _imported(child)


def _dials(name: str) -> bool:
    makes = name in LIBRARIES or name.endswith(
        ("Session", "Client", "OpenAI", "Credential", "AsyncConnection", "open", "socket")
    )
    return name.startswith(LIBRARIES) and not name.startswith(HARMLESS) and makes


def test_every_module_that_dials_says_where_its_addresses_come_from() -> None:
    assert set(dialling_modules()) == set(DIALS)


def test_what_could_be_steered_is_tried() -> None:
    for module, source in DIALS.items():
        if source not in (SETTING, CALLER):
            test = ROOT / source
            assert "outgoing addresses" in test.read_text(encoding="utf-8"), (module, source)
