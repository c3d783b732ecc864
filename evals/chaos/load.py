"""The load of a chaos round: changes of documents, questions, the erasure of a user, and outdated events."""

import base64
import contextlib
import http.client
import json
import random
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
from azure.core.exceptions import AzureError, ResourceExistsError
from azure.data.tables import TableClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueClient

from evals.budgets.following import Caller
from evals.chaos.world import Asked, Paper, World, signature
from local.run_all.api_client import LAST_EVENTS, StreamEvent
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from local.run_all.tokens import USERS, mint_token
from samples.acl import ANNA, BEN, SampleUser

GIVE_UP_S = 240.0
# Number of sections of a large document. Embedding all of them again exceeds the number of texts that a
# round's strikes may cost.
LARGE = 300
QUESTIONS = (
    "What is the maximum operating pressure of the Heron 400?",
    "What was the revenue in the annual report 2024?",
    "Compare the revenue in the annual report 2023 and the annual report 2024.",
)
AMBIGUOUS = "What was the total revenue according to the annual report?"


class Load:
    """The actions of all users in one round. The expected state is updated after each confirmed action."""

    def __init__(self, stack: LocalStack, world: World, chance: random.Random, number: int) -> None:
        self._stack, self._world, self._chance, self._number = stack, world, chance, number
        self._may_search = True
        self._admin = self._caller(USERS["admin"][0], ("admin",))
        self._container = BlobServiceClient.from_connection_string(
            stack.storage_connection_string, retry_total=0
        ).get_container_client(DOCUMENTS_CONTAINER)

    def prepare(self, papers: list[Paper]) -> None:
        """Upload the documents that exist at the start of the round."""
        for paper in papers:
            self._upload(paper)

    def run(self, papers: list[Paper], *, with_questions: bool) -> None:
        """Perform all actions concurrently. An action that isn't confirmed within GIVE_UP_S seconds is
        recorded as unfinished.
        """
        self._may_search = with_questions
        acts = (self._replace, self._narrow, self._delete, self._touch)
        tasks = [partial(act, paper) for paper, act in zip(papers, acts, strict=True)]
        new = [Paper(f"chaos-{self._number}-new-{at}.md") for at in range(3)]
        if not with_questions:
            new[0].sections = LARGE
        tasks += [partial(self._upload, paper) for paper in new]
        if with_questions:
            tasks += [partial(self._ask, ANNA, text) for text in (self._chance.choice(QUESTIONS), AMBIGUOUS)]
            tasks += [partial(self._ask, ANNA, QUESTIONS[0], is_cancelled=True), partial(self._erase)]
        self._chance.shuffle(tasks)
        with ThreadPoolExecutor(len(tasks)) as pool:
            for done in [pool.submit(task) for task in tasks]:
                try:
                    done.result()
                except TimeoutError as error:
                    self._world.unfinished.append(f"round {self._number}: {error}")

    def reconcile(self) -> None:
        """Trigger the work of the app's five-minute timer now."""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            self._admin.call("POST", "/api/maintenance/reconcile")

    def _caller(self, user: SampleUser, roles: tuple[str, ...] = ()) -> Caller:
        secret = self._stack.secrets.token_secret
        return Caller(lambda: self._stack.ports.http, mint_token(user, secret, roles=roles))

    def _upload(self, paper: Paper) -> None:
        self._insist(lambda: self._write(paper), "upload")
        self._world.papers[paper.name] = paper

    def _write(self, paper: Paper) -> bool:
        metadata = {"acl": ",".join(paper.readers)}
        self._container.upload_blob(paper.name, paper.content(), metadata=metadata, overwrite=True)
        return True

    def _replace(self, paper: Paper) -> None:
        paper.version += 1
        self._insist(lambda: self._write(paper), "replacement")
        # This deletion event is outdated, because the file exists.
        self._send_deletion(paper)

    def _touch(self, paper: Paper) -> None:
        def touch() -> bool:
            # Changing the metadata raises an event, although the content stays the same.
            self._container.get_blob_client(paper.name).set_blob_metadata({"acl": ",".join(paper.readers)})
            return True

        for _ in range(2):
            self._insist(touch, "touch")

    def _narrow(self, paper: Paper) -> None:
        paper.readers = ("anna",)

        def narrow() -> bool:
            doc_id = self._doc_id(paper)
            return (
                bool(doc_id)
                and self._admin.call("PUT", f"/api/documents/{doc_id}/access", {"acl": ["anna"]})[0] == 200
            )

        self._insist(narrow, "narrowing")
        self._must_not_find(paper, BEN)

    def _delete(self, paper: Paper) -> None:
        paper.version = 0

        def delete() -> bool:
            if not self._container.get_blob_client(paper.name).exists():
                return True
            doc_id = self._doc_id(paper)
            return bool(doc_id) and self._admin.call("DELETE", f"/api/documents/{doc_id}")[0] in (204, 404)

        self._insist(delete, "deletion")
        self._must_not_find(paper, ANNA)
        for _ in range(2):
            self._send_deletion(paper)

    def _doc_id(self, paper: Paper) -> str:
        with TableClient.from_connection_string(self._stack.storage_connection_string, "documents") as table:
            rows = table.query_entities(f"blob_name eq '{paper.name}'", select=["PartitionKey"])
            return next((str(one["PartitionKey"]) for one in rows), "")

    def _begin(self, user: SampleUser, question: str) -> str:
        headers = {"Authorization": f"Bearer {self._stack.token(user)}", "Prefer": "respond-async"}
        answer = httpx.post(
            f"{self._stack.base_url}/api/chat", json={"question": question}, headers=headers, timeout=60
        )
        return str(answer.raise_for_status().json()["run_id"])

    def _must_not_find(self, paper: Paper, user: SampleUser) -> None:
        """Record a leak if the user's search still finds a document that was deleted or hidden from the user.
        A failed search is ignored.
        """
        if not self._may_search:
            return
        body = {"query": paper.sentences(1)[0], "top_k": 50}
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            status, response = self._caller(user).call("POST", "/api/search", body)
            if status == 200 and any(hit["filename"] == paper.name for hit in response["results"]):
                self._world.leaks.append(f"{user.user_id} found {paper.name}")

    def _send_deletion(self, paper: Paper) -> None:
        subject = f"/blobServices/default/containers/{DOCUMENTS_CONTAINER}/blobs/{paper.name}"
        event = {
            "id": f"chaos-{uuid.uuid4()}",
            "eventType": "Microsoft.Storage.BlobDeleted",
            "subject": subject,
            "eventTime": datetime.now(UTC).isoformat(),
            "data": {"api": "DeleteBlob"},
        }
        text = base64.b64encode(json.dumps(event).encode()).decode()
        with QueueClient.from_connection_string(
            self._stack.storage_connection_string, "blob-deleted"
        ) as queue:

            def send() -> bool:
                with contextlib.suppress(ResourceExistsError):
                    # The host creates the queue only when it sends its first deletion event.
                    queue.create_queue()
                return bool(queue.send_message(text))

            self._insist(send, "event")

    def _ask(self, user: SampleUser, question: str, *, is_cancelled: bool = False) -> None:
        question_state, caller = Asked(), self._caller(user)

        def ask() -> bool:
            if is_cancelled:
                question_state.run_id = self._begin(user, question)
                caller.call("POST", f"/api/runs/{question_state.run_id}/cancel")
                events = caller.replay(question_state.run_id)
            else:
                seen = caller.ask(question, GIVE_UP_S)
                question_state.run_id, events = seen.run_id, seen.events
            question_state.numbers = [event.number for event in events]
            return is_last(events)

        self._insist(ask, "question")
        if user is ANNA:
            self._world.runs.append(question_state)

    def _erase(self) -> None:
        person = SampleUser(f"person-{self._number:05}", "A Person", department="chaos", groups=())
        self._ask(person, f"{QUESTIONS[0]} {signature(person.user_id)}")
        address = f"/api/users/{person.user_id}"
        self._insist(lambda: self._admin.call("DELETE", address)[0] == 202, "erasure")
        self._world.erased.append(person.user_id)

    def _insist(self, act: Callable[[], bool], what: str) -> None:
        """Repeat an action until it is confirmed, or raise `TimeoutError` after GIVE_UP_S seconds."""
        ends = time.monotonic() + GIVE_UP_S
        last: Any = None
        while time.monotonic() < ends:
            try:
                if act():
                    return
            except (OSError, http.client.HTTPException, ValueError, AzureError, httpx.HTTPError) as error:
                last = error
            time.sleep(0.3)
        raise TimeoutError(f"The {what} was not confirmed within {GIVE_UP_S:.0f} s: {last!r}")


def is_last(events: Sequence[StreamEvent]) -> bool:
    return bool(events) and events[-1].name in LAST_EVENTS
