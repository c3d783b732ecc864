"""The running stack, called as by App Service Authentication, with people in more groups than a token can
contain.
"""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ACCESS, ANNA
from tests.e2e.stack_fixture import SharedStack
from tests.fakes.graph_server import GraphServer, Trouble

pytestmark = [pytest.mark.e2e, pytest.mark.attack("identity")]

EVA, NOVA, IDA = (f"0000000{n}-aaaa-4bbb-8ccc-000000000000" for n in range(3))
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
OVERAGE = ("_claim_names", '{"groups":"src1"}')
GROUPS = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(2_500)]
# In leave-policy.pdf, which only the group `hr` may read.
QUESTION = "How many days of annual leave do employees have?"
SETTINGS = {
    "WEBSITE_AUTH_ENABLED": "True",
    "WEBSITE_SITE_NAME": "groundwork",
    "DEV_TOKEN_SECRET": "",  # a hosted app refuses to start with this setting
    "GROUP_CACHE_S": "1",
}


@dataclass
class Platform:
    """A client that calls the app as App Service does, and the directory server that the app uses, if any."""

    stack: LocalStack
    graph: GraphServer | None = None

    def call(
        self, method: str, path: str, *claims: tuple[str, str], body: object = None, token: str | None = None
    ) -> httpx.Response:
        """Send a request with the given claims, or without an identity."""
        payload = {"auth_typ": "aad", "claims": [{"typ": typ, "val": val} for typ, val in claims]}
        principal = base64.b64encode(json.dumps(payload).encode()).decode()
        headers = {"X-MS-CLIENT-PRINCIPAL": principal} if claims else {}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        url = f"{self.stack.base_url}/api{path}"
        return httpx.request(method, url, headers=headers, json=body, timeout=240)


@pytest.fixture(scope="module")
def platform(stack: SharedStack) -> Iterator[Platform]:
    with GraphServer({EVA: [*GROUPS, "hr"], NOVA: GROUPS, IDA: ["hr"]}) as graph, stack.restored():
        stack.kill_host()
        stack.start_host({**SETTINGS, **graph.settings})
        yield Platform(stack, graph)


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["title"]


def test_a_forged_principal_is_nobody_where_no_platform_stands_before_the_app(stack: LocalStack) -> None:
    answer = Platform(stack).call("GET", "/documents", ("oid", ANNA.user_id))
    assert error_of(answer) == (401, "NotAuthenticatedError")


def test_only_the_platform_is_believed(platform: Platform) -> None:
    token = platform.stack.token(ANNA)
    assert error_of(platform.call("GET", "/me", token=token)) == (401, "NotAuthenticatedError")
    seen = platform.call("GET", "/me", ("oid", EVA), ("tid", TENANT), ("name", "Eva Lind"), token=token)
    assert {**seen.json(), "today": []} == {
        "today": [],
        "user_id": EVA,
        "name": "Eva Lind",
        "department": None,
        "org_id": TENANT,
        "group_count": 0,
        "roles": [],
        "is_administrator": False,
    }


def listed(platform: Platform, *claims: tuple[str, str]) -> set[str]:
    """Return the names of the samples in a person's list. Documents that other tests uploaded are omitted."""
    documents = platform.call("GET", "/documents?limit=100", *claims).json()["documents"]
    return {one["filename"] for one in documents} & set(ACCESS)


def test_somebody_in_thousands_of_groups_reads_what_they_open_and_is_answered(platform: Platform) -> None:
    eva = (("oid", EVA), OVERAGE)
    assert platform.call("GET", "/me", *eva).json()["group_count"] == len(GROUPS) + 1
    assert listed(platform, *eva) == {name for name, readers in ACCESS.items() if {"hr", "*"} & set(readers)}
    body = {"question": QUESTION, "stream": False}
    run = platform.call("POST", "/chat", *eva, body=body).json()
    cited = {one["filename"] for one in run["answer"]["citations"]}
    assert cited == {"leave-policy.pdf"}, run["answer"]
    assert listed(platform, ("oid", NOVA), OVERAGE) == {
        name for name, readers in ACCESS.items() if "*" in readers
    }


def test_a_directory_that_is_down_is_told_and_never_taken_for_no_groups(platform: Platform) -> None:
    assert platform.graph is not None
    platform.graph.always = Trouble(500)
    try:
        time.sleep(1.1)  # until the cached groups have expired
        refused = platform.call("POST", "/search", ("oid", IDA), OVERAGE, body={"query": "leave"})
        assert error_of(refused) == (503, "NetworkError")
        assert refused.json()["detail"].startswith("Your groups cannot be looked up.")
        # Requests of people whose token contains their groups still succeed.
        assert platform.call("GET", "/me", ("oid", IDA), ("groups", "hr")).json()["group_count"] == 1
    finally:
        platform.graph.always = None
    assert platform.call("GET", "/me", ("oid", IDA), OVERAGE).json()["group_count"] == 1


def test_whom_nobody_lets_in_gets_401_or_403_and_what_is_foreign_404(platform: Platform) -> None:
    path = "/documents/whatever"
    assert platform.call("GET", path).status_code == 401
    assert platform.call("GET", path, ("name", "Eva")).status_code == 401
    assert error_of(platform.call("GET", path, ("oid", EVA), ("idtyp", "app"))) == (403, "AccessDeniedError")
    stranger = "0000000f-aaaa-4bbb-8ccc-000000000000"
    assert error_of(platform.call("GET", path, ("oid", stranger), OVERAGE)) == (403, "AccessDeniedError")
    assert platform.call("GET", path, ("oid", EVA)).status_code == 404
    assert platform.call("GET", "/maintenance/poison", ("oid", EVA)).status_code == 403
    assert platform.call("GET", "/maintenance/poison", ("oid", EVA), ("roles", "admin")).status_code == 200
