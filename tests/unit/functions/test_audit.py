"""Tests for GET /audit and for the actions that create audit entries."""

import json
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from functions.http import responses
from shared.access import audit_trail
from shared.access.audit_trail import AuditTrail
from shared.platform.errors import DependencyError
from shared.platform.tables import Entity
from shared.platform.telemetry import LOGGER_NAME, pseudonym
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.table import InMemoryTable
from tests.unit.access.principal_rows import ME, TENANT, header
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import (
    IngestingClient,
    as_user,
    connect,
    make_app,
    problem_of,
    settings_of_tests,
)

pytestmark = pytest.mark.attack("audit trail")


@pytest.fixture
def app(durable: IngestingClient) -> ASGIApp:
    return make_app(durable)


async def entries(user: AsUser, query: str = "") -> list[dict[str, Any]]:
    """Return the audit entries, newest first, without those for reading the audit trail."""
    answered = await user("olga", roles=["admin"]).get(f"/audit{query}")
    assert answered.status_code == 200, answered.text
    return [
        one | {"at": datetime.fromisoformat(one["at"])}
        for one in answered.json()["entries"]
        if one["action"] != "read_audit"
    ]


async def acts(user: AsUser, user_id: str) -> list[tuple[str, list[str], str]]:
    """Return the action, documents and subject of a user's entries, oldest first."""
    audit_entries = await entries(user, f"?user_id={user_id}")
    return [(one["action"], one["doc_ids"], one["subject"]) for one in reversed(audit_entries)]


async def call_tool(client: httpx.AsyncClient, tool: str, **arguments: Any) -> dict[str, Any]:
    request = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    replied = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **request})
    assert replied.status_code == 200, replied.text
    return dict(replied.json()["result"])


async def uploaded(user: AsUser, durable: IngestingClient, name: str, acl: str) -> str:
    files: dict[str, Any] = {
        "acl": (None, acl),
        "file": (name, b"# Pump\n\nIt runs at 15 bar.", "text/markdown"),
    }
    answered = await user("anna").post("/documents", files=files)
    assert answered.status_code == 202, answered.text
    await durable.run()
    return str(answered.json()["doc_id"])


async def test_the_trail_is_for_administrators(user: AsUser) -> None:
    assert problem_of(await user("anna").get("/audit")) == (403, "AccessDeniedError")
    assert [one["action"] for one in await entries(user)] == ["refused"]


async def test_entries_name_documents_that_still_exist(user: AsUser, durable: IngestingClient) -> None:
    remaining = await uploaded(user, durable, "a.md", "")
    deleted = await uploaded(user, durable, "b.md", "")
    assert (await user("anna").delete(f"/documents/{deleted}")).status_code == 202
    await durable.run()
    page = (await user("olga", roles=["admin"]).get("/audit?user_id=anna")).json()
    assert {remaining, deleted} <= {doc_id for entry in page["entries"] for doc_id in entry["doc_ids"]}
    assert page["names"] == {remaining: "a.md"}


async def test_who_read_published_changed_and_deleted_what(user: AsUser, durable: IngestingClient) -> None:
    doc_id = await uploaded(user, durable, "a.md", "ben")
    anna, ben = user("anna"), user("ben")
    assert (await ben.get(f"/documents/{doc_id}/readable")).status_code == 200
    assert (await ben.get(f"/documents/{doc_id}/content")).status_code == 200
    assert (await ben.post("/search", json={"query": "15 bar"})).status_code == 200
    assert (await anna.patch(f"/documents/{doc_id}", json={"title": "P"})).status_code == 200
    assert (await anna.put(f"/documents/{doc_id}/access", json={"acl": ["*"]})).status_code == 200
    assert (await anna.delete(f"/documents/{doc_id}")).status_code == 202
    audit_entries = await entries(user)
    assert [(one["user_id"], one["action"]) for one in reversed(audit_entries)] == [
        ("anna", "upload"),
        ("ben", "page"),
        ("ben", "download"),
        ("ben", "search"),
        ("anna", "correct"),
        ("anna", "publish"),
        ("anna", "delete"),
    ]
    assert {tuple(one["doc_ids"]) for one in audit_entries} == {(doc_id,)}


async def test_what_another_assistant_reads_is_in_the_trail(
    user: AsUser, durable: IngestingClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "get_settings", lambda: services.settings)
    doc_id = await uploaded(user, durable, "a.md", "ben")
    for tool, arguments in (("search", {"query": "15 bar"}), ("fetch", {"id": doc_id})):
        assert not (await call_tool(user("ben"), tool, **arguments)).get("isError")
    reads = [(one["user_id"], one["action"], one["doc_ids"]) for one in await entries(user, "?user_id=ben")]
    assert reads == [("ben", "page", [doc_id]), ("ben", "search", [doc_id])]


async def test_lists_and_descriptions_of_documents_are_in_the_trail_once_in_ten_minutes(
    user: AsUser, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await uploaded(user, durable, "a.md", "ben")
    ben = user("ben")
    for _ in range(3):
        assert (await ben.get("/documents")).status_code == 200
        assert (await ben.get(f"/documents/{first}")).status_code == 200
    assert (await ben.get("/documents?q=pump")).status_code == 200
    assert await acts(user, "ben") == [("list", [first], ""), ("describe", [first], "")]
    second = await uploaded(user, durable, "b.md", "ben")
    await ben.get("/documents")
    action, doc_ids, _ = (await acts(user, "ben"))[-1]
    assert (action, sorted(doc_ids)) == ("list", sorted([first, second]))
    monkeypatch.setattr(audit_trail, "REPEAT_AFTER", timedelta())
    await ben.get(f"/documents/{first}")
    assert (await acts(user, "ben"))[-1] == ("describe", [first], "")


async def test_what_assistants_list_and_are_refused_is_in_the_trail(
    user: AsUser, durable: IngestingClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "get_settings", lambda: services.settings)
    doc_id = await uploaded(user, durable, "a.md", "ben")
    assert not (await call_tool(user("ben"), "list_documents")).get("isError")
    assert (await call_tool(user("carl"), "fetch", id=f"{doc_id}/pages/1"))["isError"]
    page = {"method": "resources/read", "params": {"uri": f"groundwork://documents/{doc_id}/pages/1"}}
    assert "error" in (await user("carl").post("/mcp", json={"jsonrpc": "2.0", "id": 1, **page})).json()
    assert await acts(user, "ben") == [("list", [doc_id], "")]
    assert await acts(user, "carl") == [
        ("refused", [doc_id], "MCP fetch"),
        ("refused", [doc_id], "MCP resources/read"),
    ]


async def test_refused_attempts_are_in_the_trail(user: AsUser, durable: IngestingClient) -> None:
    doc_id = await uploaded(user, durable, "a.md", "ben")
    carl, ben = user("carl"), user("ben")
    for _ in range(2):
        assert (await carl.get(f"/documents/{doc_id}/content")).status_code == 404
    assert (await carl.get(f"/documents/{doc_id}")).status_code == 404
    assert (await carl.get("/audit")).status_code == 403
    assert (await ben.delete(f"/documents/{doc_id}")).status_code == 403
    assert await acts(user, "carl") == [
        ("refused", [doc_id], "GET /api/documents/{doc_id}/content"),
        ("refused", [doc_id], "GET /api/documents/{doc_id}"),
        ("refused", [], "GET /api/audit"),
    ]
    assert await acts(user, "ben") == [("refused", [doc_id], "DELETE /api/documents/{doc_id}")]


async def test_reading_the_trail_is_in_the_trail(user: AsUser) -> None:
    olga = user("olga", roles=["admin"])
    await olga.get("/audit?user_id=ben&doc_id=d1")
    (entry,) = (await olga.get("/audit?action=read_audit")).json()["entries"]
    assert (entry["user_id"], entry["doc_ids"], entry["subject"]) == ("olga", ["d1"], pseudonym("ben"))


async def test_the_trail_is_narrowed_and_paged(user: AsUser, durable: IngestingClient) -> None:
    first = await uploaded(user, durable, "a.md", "*")
    second = await uploaded(user, durable, "b.md", "anna")
    assert [one["action"] for one in await entries(user)] == ["upload", "publish"]
    assert [one["doc_ids"] for one in await entries(user, f"?doc_id={first}")] == [[first]]
    assert await entries(user, "?user_id=ben") == []
    assert len(await entries(user, "?action=publish")) == 1
    olga = user("olga", roles=["admin"])
    page = (await olga.get("/audit?user_id=anna&limit=1")).json()
    rest = (await olga.get(f"/audit?user_id=anna&limit=1&cursor={page['cursor']}")).json()
    assert [page["entries"][0]["doc_ids"], rest["entries"][0]["doc_ids"]] == [[second], [first]]
    at = (await entries(user))[0]["at"].isoformat().replace("+00:00", "Z")
    assert [one["doc_ids"] for one in await entries(user, f"?until={at}")] == [[first]]
    for wrong in ("cursor=x", "since=yesterday", "action=look", f"since={at}&until={at}", "limit=0"):
        assert problem_of(await olga.get(f"/audit?{wrong}"))[0] == 400, wrong


async def test_an_erasure_is_on_record_without_its_person(user: AsUser) -> None:
    assert (await user("olga", roles=["admin"]).delete("/users/ben")).status_code == 202
    (entry,) = await entries(user)
    assert (entry["user_id"], entry["action"]) == ("olga", "erase_person")
    assert entry["subject"] == pseudonym("ben")


@pytest.mark.parametrize("hosted_in_azure", [True, False])
async def test_an_entry_has_the_address_that_the_front_end_saw_rather_than_a_claimed_one(
    monkeypatch: pytest.MonkeyPatch, *, hosted_in_azure: bool
) -> None:
    platform = {"website_auth_enabled": True, "website_site_name": "app"}
    settings = fake_settings(**platform) if hosted_in_azure else settings_of_tests()
    connect(monkeypatch, fake_services(settings=settings))
    app = make_app(client=None)
    olga = as_user(app, "olga", roles=["admin"])
    if hosted_in_azure:
        olga.headers["X-MS-CLIENT-PRINCIPAL"] = header(ME, ("tid", TENANT), ("roles", "admin"))
    # The caller controls the first entry; App Service appends the address of the connection.
    forwarded = {"X-Forwarded-For": "198.51.100.66, 203.0.113.9:50123"}
    assert (await olga.post("/search", json={"query": "15 bar"}, headers=forwarded)).status_code == 200
    (entry,) = (await olga.get("/audit")).json()["entries"]
    assert entry["origin"] == ("203.0.113.9:50123" if hosted_in_azure else "127.0.0.1")


class Down(InMemoryTable):
    """An audit table that refuses all writes."""

    async def insert(self, entity: Entity) -> str:
        raise DependencyError("The table is down.")


async def test_what_cannot_be_recorded_is_served_and_raises_an_alert(
    user: AsUser, durable: IngestingClient, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    services.audit = AuditTrail(Down())
    doc_id = await uploaded(user, durable, "a.md", "ben")
    assert (await user("ben").get(f"/documents/{doc_id}/content")).status_code == 200
    lines = [json.loads(one.getMessage()) for one in caplog.records if one.name == LOGGER_NAME]
    kinds = [line["kind"] for line in lines if line["event"] == "audit.write_failed"]
    assert kinds == ["upload", "download"]
