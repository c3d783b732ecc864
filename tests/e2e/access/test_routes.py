"""Every route of the app x every person x every document: foreign documents appear not to exist."""

import base64
import json
import re

import pytest

from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import ABSENT, PAPERS, PEOPLE
from tests.e2e.access.probes import Probe, run_of
from tests.e2e.access.routes import ROUTES, routes_of_the_app

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("access matrix")]

WITHOUT_IDENTITY = {
    "GET health",
    "GET health/ready",
    "GET openapi.json",
    "GET docs",
    "GET docs/{asset}",
    "GET site",
}  # see decision 0065


def probes_of_the_app() -> dict[Probe, str]:
    """Return every probe with the operations that it checks, separated by commas."""
    routes: dict[Probe, list[str]] = {}
    for route in routes_of_the_app():
        routes.setdefault(ROUTES[route], []).append(route)
    return {probe: ", ".join(checked) for probe, checked in routes.items()}


CHECKS = probes_of_the_app()


@pytest.mark.parametrize("probe", CHECKS.keys(), ids=CHECKS.values())
def test_a_route_gives_what_the_oracle_says(world: AccessCorpus, probe: Probe) -> None:
    probe(world)


def forged_principal() -> str:
    claims = [{"typ": "oid", "val": "olga"}, {"typ": "roles", "val": "admin"}]
    return base64.b64encode(json.dumps({"claims": claims}).encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer not.a.token"},
        {"Authorization": f"Bearer {PEOPLE['owner'].token('another secret, of 32 characters')}"},
        {"X-MS-CLIENT-PRINCIPAL": forged_principal()},
        {"X-MS-CLIENT-PRINCIPAL-ID": "olga"},
    ],
    ids=["nothing", "no token", "signed by another", "forged principal", "forged id"],
)
def test_without_identity_there_is_nothing(world: AccessCorpus, headers: dict[str, str]) -> None:
    ids = {"doc_id": world.doc_id("public"), "run_id": run_of(world, "owner"), "name": world.figure}
    with world.client(headers) as nobody:
        for route in set(routes_of_the_app()) - WITHOUT_IDENTITY:
            method, _, path = route.partition(" ")
            filled = re.sub(r"\{(\w+)\}", lambda placeholder: ids.get(placeholder[1], ABSENT), path)
            answer = nobody.request(method, f"/{filled}", json={})
            assert answer.status_code == 401, (route, answer.text)
            body = answer.json()
            code = body["title"] if "title" in body else body["error"]["code"]  # OpenAI's format below /v1
            assert code == "NotAuthenticatedError", route
            assert [key for key, paper in PAPERS.items() if paper.mark in answer.text] == []


def test_an_administrator_changes_what_only_its_readers_read(world: AccessCorpus) -> None:
    doc_id = world.doc_id("nobody")
    changed = world.caller("administrator").put(f"/documents/{doc_id}/access", json={"acl": []})
    assert changed.status_code == 200, changed.text
    assert not changed.json()["summary_standard"]
    for path in (f"/documents/{doc_id}", f"/documents/{doc_id}/content"):
        assert world.caller("administrator").get(path).status_code == 404
