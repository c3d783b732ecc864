"""Tests for GET /api/documents/{id}/figures/{name}, limited to users who may currently read the document."""

import pytest

from shared.documents.figure_store import picture_blob
from shared.platform.names import WORK
from shared.wiring import Services
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of

NAME = f"{7:064x}.png"
PICTURE = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture
async def doc_id(services: Services, durable: IngestingClient, user: AsUser) -> str:
    files = {"file": ("m.md", b"# Herons\n\nHerons stand.")}
    response = await user("anna").post("/documents", files=files, data={"acl": "readers"})
    await durable.run()
    new_id: str = response.json()["doc_id"]
    state = await services.documents.get(new_id)
    assert state is not None
    await services.blobs.write(WORK, picture_blob(state.folder, NAME), PICTURE)
    return new_id


async def test_a_reader_sees_the_picture_and_nothing_can_run_in_it(user: AsUser, doc_id: str) -> None:
    answered = await user("ben", groups=["readers"]).get(f"/documents/{doc_id}/figures/{NAME}")
    assert (answered.status_code, answered.content) == (200, PICTURE)
    assert answered.headers["content-type"] == "image/png"
    assert answered.headers["content-security-policy"] == "default-src 'none'"
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["cache-control"] == "private, no-cache"


async def test_a_foreign_picture_is_told_from_none_by_nothing(user: AsUser, doc_id: str) -> None:
    foreign = await user("ben").get(f"/documents/{doc_id}/figures/{NAME}")
    missing = await user("ben").get(f"/documents/{doc_id}/figures/{8:064x}.png")
    nowhere = await user("ben").get(f"/documents/{'0' * 24}/figures/{NAME}")
    assert [problem_of(one) for one in (foreign, missing, nowhere)] == [(404, "DocumentNotFoundError")] * 3
    assert foreign.json() == missing.json() | {"detail": foreign.json()["detail"]}


async def test_a_picture_is_known_only_to_who_may_still_read_it(user: AsUser, doc_id: str) -> None:
    reader = user("ben", groups=["readers"])
    etag = (await reader.get(f"/documents/{doc_id}/figures/{NAME}")).headers["etag"]
    headers = {"If-None-Match": f'"other", {etag}'}
    assert (await reader.get(f"/documents/{doc_id}/figures/{NAME}", headers=headers)).status_code == 304
    changed = await user("anna").put(f"/documents/{doc_id}/access", json={"acl": ["anna"]})
    assert changed.status_code < 300
    revoked = await reader.get(f"/documents/{doc_id}/figures/{NAME}", headers=headers)
    assert problem_of(revoked) == (404, "DocumentNotFoundError")


@pytest.mark.parametrize(
    "name", ["x.png", f"{171:064X}.png", f"{7:064x}.png.exe", "..%2F..%2Fdocuments%2Fm.md", f"{7:064x}.svg"]
)
async def test_a_name_that_no_figure_can_have_finds_nothing(user: AsUser, doc_id: str, name: str) -> None:
    answered = await user("anna").get(f"/documents/{doc_id}/figures/{name}")
    assert answered.status_code == 404


async def test_nobody_in_particular_sees_nothing(app: object, user: AsUser, doc_id: str) -> None:
    client = user("anna")
    client.headers.pop("authorization")
    assert (await client.get(f"/documents/{doc_id}/figures/{NAME}")).status_code == 401
