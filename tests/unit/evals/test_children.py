"""Whether a child outlived its deadline is read from its own history, to the millisecond."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from evals.budgets.children import GRACE_S, Child, Instances

Told = dict[str, object]


def moment(seconds: float) -> str:
    """An instant so many seconds from now, as the durable executor writes it."""
    return datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def child(deadline: str, status: str, *ended: str) -> Told:
    """An instance as the client API tells it; its input is JSON in JSON, as SDKs store it."""
    return {
        "name": "run_sub_agent",
        "instanceId": "r1:s004c0",
        "runtimeStatus": status,
        "input": json.dumps(json.dumps({"deadline": deadline})),
        "lastUpdatedTime": moment(0)[:19] + "Z",
        "historyEvents": [{"EventType": "ExecutionCompleted", "Timestamp": one} for one in ended],
    }


class Handler(BaseHTTPRequestHandler):
    """The instances below a prefix, or one of them."""

    def do_GET(self) -> None:
        told: dict[str, Told] = self.server.told  # type: ignore[attr-defined]
        url = urlsplit(self.path)
        prefix = parse_qs(url.query).get("instanceIdPrefix")
        found: object = told.get(url.path.rpartition("/")[2], {})
        if prefix:
            found = [one for name, one in told.items() if name.startswith(prefix[0])]
        content = json.dumps(found).encode()
        self.send_response(200 if found or prefix else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def told() -> dict[str, Told]:
    """What there is, by id; a test fills it."""
    return {}


@pytest.fixture
def instances(told: dict[str, Told]) -> Iterator[Instances]:
    """A reader of them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.told = told  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    reader = Instances(lambda: f"http://127.0.0.1:{server.server_address[1]}")
    yield reader
    reader.close()
    server.shutdown()
    server.server_close()


def settled(instances: Instances) -> Child:
    (found,) = instances.settled("r1")
    return found


def test_a_child_that_ended_before_its_deadline_did_not_outlive_it(
    told: dict[str, Told], instances: Instances
) -> None:
    told["r1:s004c0"] = child(moment(0), "Completed", moment(-9), moment(-3.25))
    found = settled(instances)
    assert found.ended_after_s == pytest.approx(-3.25, abs=0.05)
    assert not found.outlived


def test_one_that_ended_too_late_did(told: dict[str, Told], instances: Instances) -> None:
    told["r1:s004c0"] = child(moment(-3), "Terminated", moment(-1.5))
    assert settled(instances).outlived


def test_one_that_is_at_work_is_waited_for_no_longer_than_it_may_be(
    told: dict[str, Told], instances: Instances
) -> None:
    told["r1:s004c0"] = child(moment(-GRACE_S), "Running")
    found = settled(instances)
    assert (found.status, found.ended_after_s) == ("Running", None)
    assert found.outlived


def test_other_instances_are_no_children(told: dict[str, Told], instances: Instances) -> None:
    told["r1:other"] = {**child(moment(0), "Running"), "name": "something_else"}
    told["r2:s004c0"] = child(moment(0), "Running")
    assert instances.settled("r1") == []


def test_an_orchestration_is_open_until_it_has_ended(told: dict[str, Told], instances: Instances) -> None:
    told["r1"] = child(moment(0), "Running")
    assert instances.is_open("r1")
    told["r1"] = child(moment(0), "Completed", moment(0))
    assert not instances.is_open("r1")
    assert not instances.is_open("unknown")
