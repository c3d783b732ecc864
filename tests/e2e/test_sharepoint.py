"""The running stack with a SharePoint library: people can read exactly the documents that they can read in
SharePoint.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.run_all.stack import LocalStack
from tests.e2e.stack_client import eventually
from tests.e2e.stack_fixture import SharedStack
from tests.fakes.sharepoint_server import TENANT, FakeDrive, SharePointServer, group, user

pytestmark = [pytest.mark.e2e, pytest.mark.attack("access")]

EVA, IDA = (f"0000000{n}-aaaa-4bbb-8ccc-000000000000" for n in range(2))
STAFF = "bbbbbbbb-0000-4000-8000-000000000001"
HOSTED = {"WEBSITE_AUTH_ENABLED": "True", "WEBSITE_SITE_NAME": "groundwork", "DEV_TOKEN_SECRET": ""}
TEXT = b"# Parking\n\nStaff may park in bay 17 behind the cooling tower."


class Library:
    """A stack whose host synchronises one library."""

    def __init__(self, stack: LocalStack, server: SharePointServer) -> None:
        self.stack = stack
        self.server = server
        self.drive: FakeDrive = server.drive()
        self.file = server.file(self.drive, "parking.md", TEXT, permissions=[user(EVA), group(STAFF)])

    def start(self) -> None:
        """Restart the host, whose timer runs immediately."""
        self.stack.kill_host()
        values = {**self.server.settings("/sites/hr"), **self.server.environment}
        self.stack.start_host({**HOSTED, **{name: str(value) for name, value in values.items()}})

    def get(self, path: str, person: str, *groups: str, role: str = "") -> httpx.Response:
        """Send a request as the platform does for a person who is signed in."""
        claims = [("oid", person), ("tid", TENANT), *(("groups", one) for one in groups)]
        claims += [("roles", role)] if role else []
        payload = {"auth_typ": "aad", "claims": [{"typ": typ, "val": val} for typ, val in claims]}
        principal = base64.b64encode(json.dumps(payload).encode()).decode()
        url = f"{self.stack.base_url}/api{path}"
        return httpx.get(url, headers={"X-MS-CLIENT-PRINCIPAL": principal}, timeout=60)

    def names(self, person: str, *groups: str) -> list[str]:
        """Return the ready documents in a person's list."""
        documents = self.get("/documents?limit=100", person, *groups).json()["documents"]
        return [one["filename"] for one in documents if one["status"] == "ready"]

    def status(self) -> dict[str, Any]:
        """Return the library's status as an administrator sees it."""
        (library,) = self.get("/sharepoint", IDA, role="admin").json()["libraries"]
        status: dict[str, Any] = library
        return status


@pytest.fixture(scope="module")
def library(stack: SharedStack) -> Iterator[Library]:
    with SharePointServer() as server, stack.restored():
        library = Library(stack, server)
        library.start()
        yield library


def test_files_are_found_by_those_who_may_read_them_in_sharepoint(library: Library) -> None:
    eventually(lambda: "parking.md" in library.names(EVA), "the file")
    assert "parking.md" in library.names(IDA, STAFF)
    assert "parking.md" not in library.names(IDA)
    (document,) = [
        one
        for one in library.get("/documents?limit=100", EVA).json()["documents"]
        if one["filename"] == "parking.md"
    ]
    detail = library.get(f"/documents/{document['doc_id']}", EVA).json()
    assert detail["source_url"].endswith("/sites/hr/Documents/parking.md")
    assert library.get(f"/documents/{document['doc_id']}", IDA).status_code == 404
    status = eventually(lambda: (one := library.status())["status"] == "current" and one, "the run's end")
    assert (status["counts"]["files"], status["error"]) == (1, None)
    assert library.get("/sharepoint", EVA).status_code == 403


def test_narrowed_permissions_and_deletions_arrive(library: Library) -> None:
    library.server.share(library.drive, library.file, [group(STAFF)])
    library.start()
    eventually(lambda: "parking.md" not in library.names(EVA), "the narrowed permission")
    assert "parking.md" in library.names(IDA, STAFF)
    library.server.delete(library.drive, library.file)
    library.start()
    eventually(lambda: "parking.md" not in library.names(IDA, STAFF), "the deletion")
