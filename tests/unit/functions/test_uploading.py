"""Tests for POST /api/documents: accepted files, their names and access rights, and refusals."""

import json

import httpx
import pytest

from shared.documents.ids import document_id
from shared.platform.names import DOCUMENTS
from shared.tables.table_files import get_catalog
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.services import fake_services, fake_settings
from tests.unit.access.principal_rows import ME, TENANT, header
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, connect, make_app, problem_of

GUIDE = b"# Pumps\n\nThe pump runs at 15 bar."


async def send(
    client: httpx.AsyncClient, name: str = "guide.md", content: bytes = GUIDE, **fields: object
) -> httpx.Response:
    return await client.post("/documents", data=fields, files={"file": (name, content)})


def blobs_of(services: Services) -> dict[str, bytes]:
    assert isinstance(services.blobs, InMemoryBlobStore)
    return {name: blob.content for name, blob in services.blobs.containers[DOCUMENTS].items()}


async def test_the_sender_owns_what_was_sent_and_reads_its_status_at_once(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    anna = user("anna")
    response = await send(anna, project_id="p1", acl=["hr", "org:x, sales"], folder="manuals/2024")
    assert response.status_code == 202
    document = response.json()
    assert (document["status"], document["owner_id"], document["project_id"]) == ("queued", "anna", "p1")
    assert document["acl"] == ["anna", "hr", "org:x", "sales"]
    assert response.headers["location"] == f"/api/documents/{document['doc_id']}"
    assert (await anna.get(f"/documents/{document['doc_id']}")).json()["status"] == "queued"

    assert await durable.run() == ["ready"]
    ready = (await anna.get(f"/documents/{document['doc_id']}")).json()
    assert (ready["status"], ready["title"], ready["acl"]) == ("ready", "Pump manual", document["acl"])
    calls = {phase["status"]: phase["model_calls"] for phase in ready["history"]}
    assert calls == {"queued": 0, "parsing": 1, "embedding": 1, "indexing": 0, "ready": 0}


async def test_its_file_and_its_rights_lie_in_a_folder_of_its_owner(services: Services, user: AsUser) -> None:
    response = await send(user("anna"), folder="manuals/../2024/")
    (file, sidecar) = sorted(blobs_of(services))
    assert sidecar == f"{file}.acl.json"
    assert file.startswith("uploads/")
    assert file.endswith("/manuals/2024/guide.md")
    assert "anna" not in file
    assert document_id(file) == response.json()["doc_id"]
    assert json.loads(blobs_of(services)[sidecar])["owner_id"] == "anna"


async def test_the_same_name_is_a_new_version_for_its_owner_and_another_document_for_others(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    first = (await send(user("anna"), acl="hr")).json()
    await durable.run()
    again = (await send(user("anna"), content=GUIDE + b" Always.")).json()
    assert (again["doc_id"], again["status"], again["acl"]) == (first["doc_id"], "queued", ["anna", "hr"])
    assert (await send(user("ben"))).json()["doc_id"] != first["doc_id"]
    assert await durable.run() == ["ready", "ready"]
    ready = (await user("anna").get(f"/documents/{first['doc_id']}")).json()
    assert (ready["status"], ready["version"]) == ("ready", 2)


async def test_an_upload_that_must_not_replace_a_document_is_refused_and_changes_nothing(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    anna = user("anna")
    first = (await send(anna, acl="hr")).json()
    await durable.run()
    stored = blobs_of(services)
    refused = await send(anna, content=b"# Other", acl="*", replace="false")
    assert problem_of(refused) == (409, "DocumentExistsError")
    assert refused.headers["location"] == f"/api/documents/{first['doc_id']}"
    body = {"filename": "guide.md", "replace": False}
    assert (await anna.post("/documents/uploads", json=body)).status_code == 409
    assert blobs_of(services) == stored
    # The same name in another folder or from another user is a new document.
    assert (await send(anna, folder="2024", replace="false")).status_code == 202
    assert (await send(user("ben"), replace="false")).status_code == 202


async def test_an_uploads_default_is_its_owner_alone_whatever_the_setting(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    object.__setattr__(services, "settings", services.settings.changed(default_access="*"))
    document = (await send(user("anna"))).json()
    await durable.run()
    assert (await user("ben").get(f"/documents/{document['doc_id']}")).status_code == 404


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("über 'uns' \"heute\".md", "über 'uns' \"heute\".md"),
        ("C:\\Users\\x\\plan.md", "plan.md"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("  压力 🔧 .md", "压力 🔧 .md"),
        ("con.md", "_con.md"),
    ],
)
async def test_names_are_cleaned_and_kept(services: Services, user: AsUser, name: str, stored: str) -> None:
    assert (await send(user("anna"), name)).json()["filename"] == stored


@pytest.mark.parametrize(
    ("name", "content", "fields", "status"),
    [
        ("tool.exe", b"x", {}, 422),
        ("a.md.acl.json", b"x", {}, 400),
        (" ", b"x", {}, 400),
        ("large.md", b"x" * 200_001, {}, 413),
        ("huge.md", b"x" * 600_000, {}, 413),
        ("a.md", b"x", {"color": "red"}, 400),
        ("a.md", b"x", {"project_id": ["a", "b"]}, 400),
        ("a.md", b"x", {"project_id": "a" * 200}, 400),
        ("a.md", b"x", {"acl": ["n"] * 501}, 400),
        ("a.md", b"x", {"acl": "\x00"}, 400),
        ("a.md", b"x", {"folder": "/".join("abcdefghijkl")}, 400),
    ],
)
async def test_what_is_refused_is_not_stored(
    services: Services, user: AsUser, name: str, content: bytes, fields: dict[str, object], status: int
) -> None:
    refused = await send(user("anna"), name, content, **fields)
    assert problem_of(refused)[0] == status
    assert not [stored for stored in blobs_of_or_none(services) if not stored.endswith(".acl.json")]


def blobs_of_or_none(services: Services) -> list[str]:
    assert isinstance(services.blobs, InMemoryBlobStore)
    return list(services.blobs.containers.get(DOCUMENTS, {}))


async def test_a_file_that_is_too_large_leaves_the_old_version(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    document = (await send(user("anna"))).json()
    await durable.run()
    assert (await send(user("anna"), content=b"x" * 300_000)).status_code == 413
    content = await user("anna").get(f"/documents/{document['doc_id']}/content")
    assert content.content == GUIDE


async def test_without_an_identity_nothing_is_read(user: AsUser) -> None:
    anna = user("anna")
    anna.headers.pop("Authorization")
    assert problem_of(await send(anna)) == (401, "NotAuthenticatedError")
    assert problem_of(await anna.post("/documents/uploads", json={"filename": "a.md"}))[0] == 401


async def test_a_ticket_is_for_one_file_and_fixes_its_rights_first(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    body = {"filename": "big.md", "acl": ["hr"], "size_bytes": 5}
    answered = await user("anna").post("/documents/uploads", json=body)
    assert answered.status_code == 201
    ticket = answered.json()
    (sidecar,) = blobs_of(services)
    # Anyone with the upload address can set metadata, so metadata never determines the owner of the file.
    name = sidecar.removesuffix(".acl.json")
    await services.blobs.write(DOCUMENTS, name, GUIDE, metadata={"owner_id": "ben", "acl": "*"})
    await durable.start_new("ingest_document", "one", {"blob_name": name})
    assert await durable.run() == ["ready"]
    document = (await user("anna").get(ticket["location"].removeprefix("/api"))).json()
    assert (document["owner_id"], document["acl"]) == ("anna", ["anna", "hr"])


async def test_a_ticket_for_a_file_that_is_too_large_or_unreadable_is_refused(user: AsUser) -> None:
    anna = user("anna")
    for body, status in (({"filename": "a.md", "size_bytes": 200_001}, 413), ({"filename": "a.exe"}, 422)):
        assert problem_of(await anna.post("/documents/uploads", json=body))[0] == status


@pytest.mark.attack("exhaustion")
async def test_a_file_above_the_limit_at_an_upload_address_is_counted_and_removed(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    anna = user("anna")
    ticket = (await anna.post("/documents/uploads", json={"filename": "big.txt"})).json()
    (sidecar,) = blobs_of(services)
    name = sidecar.removesuffix(".acl.json")
    for size_bytes in (200_002, 300_000):
        await services.blobs.write(DOCUMENTS, name, b"a" * size_bytes)
        await durable.start_new("ingest_document", "one", {"blob_name": name})
        assert await durable.run() == ["failed"]
        assert name not in blobs_of(services)
    refused = (await anna.get(ticket["location"].removeprefix("/api"))).json()
    assert (refused["status"], refused["failure"]) == ("failed", "too_large")
    used = (await services.user_limits.read("anna")).used
    assert (used.documents, used.size_bytes) == (1, 500_002)
    # A file that an operator puts into the container is kept, as only its owner may delete it.
    await services.blobs.write(DOCUMENTS, "big.txt", b"a" * 200_001)
    await durable.start_new("ingest_document", "two", {"blob_name": "big.txt"})
    assert await durable.run() == ["failed"]
    assert "big.txt" in blobs_of(services)


async def test_a_place_that_became_somebody_elses_is_not_overwritten(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    await send(user("anna"))
    await durable.run()
    (file, sidecar) = sorted(blobs_of(services))
    await services.blobs.write(DOCUMENTS, sidecar, b'{"acl": [], "owner_id": "ben"}')
    assert problem_of(await send(user("anna"), content=b"mine again")) == (409, "ConflictError")
    assert blobs_of(services)[file] == GUIDE


@pytest.mark.parametrize("group_ids", [frozenset(), frozenset({"g1", "g2"})])
async def test_in_azure_a_group_name_that_leads_to_no_one_group_is_refused(
    monkeypatch: pytest.MonkeyPatch, group_ids: frozenset[str]
) -> None:
    directory = InMemoryDirectory()
    directory.names["finance"] = group_ids
    in_azure = fake_settings(website_auth_enabled=True, website_site_name="func-test")
    services = fake_services(settings=in_azure, directory=directory)
    connect(monkeypatch, services)
    app = make_app(IngestingClient(services))
    sender = {"X-MS-CLIENT-PRINCIPAL": header(ME, ("tid", TENANT))}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://app/api", headers=sender
    ) as client:
        file = {"file": ("a.md", b"# A")}
        refused = await client.post("/documents", data={"acl": "finance"}, files=file)
        assert problem_of(refused)[0] == 400
        assert "'finance'" in refused.json()["detail"]
        assert "Microsoft Graph" in refused.text
        ticket = await client.post("/documents/uploads", json={"filename": "a.md", "acl": ["finance"]})
        assert problem_of(ticket)[0] == 400
        directory.names["finance"] = frozenset({"g1"})
        assert (await client.post("/documents", data={"acl": "finance"}, files=file)).status_code == 202


async def test_every_reader_sees_who_published_a_document_as_the_identity_provider_names_them(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    name = "Anna [1](Source: b.md)\u202e"
    response = await send(user("anna", name=name), acl="hr")
    await durable.run()
    seen = await user("ben", department="hr").get(f"/documents/{response.json()['doc_id']}")
    assert seen.json()["published_by"] == "Anna (1) Source: b.md"
    assert seen.json()["owner_id"] is None
    # A token without a name keeps the stored name.
    again = await send(user("anna"), content=GUIDE + b" Always.")
    assert (await durable.run(), again.status_code) == (["ready"], 202)
    seen = await user("ben", department="hr").get(f"/documents/{response.json()['doc_id']}")
    assert seen.json()["published_by"] == "Anna (1) Source: b.md"


HINTS = b"tables:\n  - description: Sales by region\n"


async def test_hints_are_stored_beside_their_table_and_become_part_of_it(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    anna = user("anna")
    table = (await send(anna, "sales.csv", b"Region,Revenue\nNorth,120\n", folder="2024")).json()
    assert await durable.run() == ["ready"]
    hints = await send(anna, "sales.csv.tables.yaml", HINTS, folder="2024")
    assert (hints.status_code, hints.json()["doc_id"]) == (202, table["doc_id"])
    assert (hints.json()["status"], hints.json()["is_processing"]) == ("ready", True)
    assert await durable.run() == ["ready"]
    assert not (await anna.get(f"/documents/{table['doc_id']}")).json()["is_processing"]
    (path,) = [name for name in blobs_of(services) if name.endswith(".tables.yaml")]
    assert path.endswith("/2024/sales.csv.tables.yaml")
    state = await services.documents.get(table["doc_id"])
    assert state is not None
    catalog = await get_catalog(services.blobs, state.folder)
    assert catalog is not None
    assert catalog.tables[0].description == "Sales by region"
    # Sending the same hints again changes nothing.
    again = await send(anna, "sales.csv.tables.yaml", HINTS, folder="2024")
    assert not again.json()["is_processing"]
    assert await durable.run() == []


async def test_hints_without_a_table_are_refused(services: Services, user: AsUser) -> None:
    anna = user("anna")
    missing = await send(anna, "sales.csv.tables.yaml", HINTS)
    assert problem_of(missing) == (404, "DocumentNotFoundError")
    assert problem_of(await send(anna, "guide.md.tables.yaml", HINTS)) == (422, "BadDocumentError")
    await send(anna, "sales.csv", b"Region,Revenue\nNorth,120\n")
    too_large = await send(anna, "sales.csv.tables.yaml", b"x" * 65_537)
    assert problem_of(too_large) == (413, "PayloadTooLargeError")
    assert problem_of(await send(user("ben"), "sales.csv.tables.yaml", HINTS))[0] == 404
    assert not [name for name in blobs_of(services) if name.endswith(".tables.yaml")]
