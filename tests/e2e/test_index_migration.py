"""An operator migrates the content index while users ask, upload, restrict and delete.

No question fails, restricted and deleted documents are not found afterwards, no document is lost, and a
rollback keeps later changes.
"""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from scripts import index_migration as command
from shared.retrieval import migration, schema
from shared.retrieval.mirrored_index import KEPT_S
from tests.e2e.stack_client import HANG_GUARD_S, eventually
from tests.e2e.stack_fixture import PATIENT, environment_without_model, settings_for

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(300)]

OLD, ALIAS = "content-blocks", "content"
SETTLE_S = KEPT_S + 2  # the local server answers in milliseconds, and its aliases take effect at once


class AdoptedStack(LocalStack):
    """A stack whose index was adopted by an alias, which the app uses."""

    def start_host(self, changes: Mapping[str, str] | None = None) -> None:
        """Create index and alias, and start the host."""
        definition = schema.content_index(OLD, int(self.app_settings["EMBEDDING_DIMENSIONS"]))
        keys = {"api-key": self.secrets.search_key}
        with httpx.Client(base_url=self.search_url, headers=keys, timeout=HANG_GUARD_S) as search:
            search.put(f"/indexes('{OLD}')", json=definition).raise_for_status()
        assert operate(self, "adopt", "--index", OLD) == 0
        super().start_host(changes)


def operate(stack: LocalStack, step: str, *more: str) -> int:
    """Run the command with the settings of the app, as an operator does."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stack.app_settings.items():
            patch.setenv(name, value)
        return command.main([step, "content", *more])


@dataclass
class Papers:
    """Documents that are uploaded, restricted and deleted through the app; Anna owns all of them."""

    stack: LocalStack
    ids: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, user: SampleUser = ANNA, **request: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.stack.token(user)}"}
        return httpx.request(
            method, f"{self.stack.base_url}/api{path}", headers=headers, timeout=HANG_GUARD_S, **request
        )

    def upload(self, name: str, version: int = 1) -> None:
        text = f"# Paper {name}\n\nThe {name} gauge of version v{version} shows {version}7 bar.\n"
        files = {"file": (f"{name}.md", text.encode(), "text/markdown")}
        answered = self.call("POST", "/documents", files=files, data={"acl": BEN.user_id})
        answered.raise_for_status()
        self.ids[name] = answered.json()["doc_id"]
        eventually(lambda: f"v{version}" in self.seen_by(ANNA, name))

    def close(self, name: str) -> None:
        self.call("PUT", f"/documents/{self.ids[name]}/access", json={"acl": []}).raise_for_status()

    def delete(self, name: str) -> None:
        self.call("DELETE", f"/documents/{self.ids[name]}").raise_for_status()
        eventually(lambda: not self.seen_by(ANNA, name))

    def seen_by(self, user: SampleUser, name: str) -> str:
        """Return the text of a document that a search of this user finds."""
        response = self.call("POST", "/search", user, json={"query": f"{name} gauge", "top_k": 20})
        response.raise_for_status()
        return " ".join(
            hit["content"] for hit in response.json()["results"] if hit["doc_id"] == self.ids[name]
        )


@dataclass
class Asking:
    """A user who asks continuously."""

    papers: Papers
    ends: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        while not self.stopped.is_set():
            question = {"question": "What does the stays gauge show?", "stream": False}
            run = self.papers.call("POST", "/chat", BEN, json=question).json()
            answer = run.get("answer") or {"text": str(run)}
            self.ends.append(f"{run.get('status')}: {answer['text']}")
            self.stopped.wait(0.3)


@pytest.fixture
def papers(tmp_path: Path) -> Iterator[Papers]:
    overrides = {**PATIENT, "AZURE_SEARCH_CONTENT_INDEX": ALIAS}
    with AdoptedStack(settings_for(tmp_path), overrides, environment_without_model()) as stack:
        papers = Papers(stack)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(papers.upload, ("stays", "closed", "deleted", "replaced")))
        yield papers


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the operator a version of the app that analyses texts differently, and remove the waits."""
    monkeypatch.setattr(schema, "_ANALYZER", "keyword")
    monkeypatch.setitem(schema.INDEX_VERSIONS, "content", 2)
    monkeypatch.setattr(migration, "settle_seconds", lambda timeout_s: SETTLE_S)
    monkeypatch.setattr(migration, "_ALIAS_S", 0.2)


@pytest.mark.usefixtures("next_version")
def test_an_index_moves_while_it_is_used(papers: Papers) -> None:
    stack, asking = papers.stack, Asking(papers)
    with ThreadPoolExecutor(2) as pool:
        future = pool.submit(asking)
        try:
            copied = pool.submit(operate, stack, "run")
            papers.close("closed")
            papers.delete("deleted")
            papers.upload("replaced", version=2)
            papers.upload("late")
            assert copied.result() == 0
            assert operate(stack, "switch") == 0
            assert "v1" in papers.seen_by(BEN, "stays")
            assert "v1" in papers.seen_by(BEN, "late")
            assert (papers.seen_by(BEN, "closed"), papers.seen_by(ANNA, "deleted")) == ("", "")
            assert ("v1" in (text := papers.seen_by(BEN, "replaced")), "v2" in text) == (False, True)
            papers.close("late")
            assert operate(stack, "back") == 0
            assert (papers.seen_by(BEN, "late"), papers.seen_by(BEN, "closed")) == ("", "")
            assert "v2" in papers.seen_by(BEN, "replaced")
        finally:
            asking.stopped.set()
        future.result()
    assert len(asking.ends) > 3
    assert [end for end in asking.ends if not (end.startswith("completed") and "17 bar" in end)] == []
