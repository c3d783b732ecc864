"""Operations of tests on the whole stack: upload files, wait for documents, and call the API without the
app's client.
"""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from azure.storage.blob import BlobServiceClient
from fpdf import FPDF

from local.run_all.demo import documents_of
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from samples.acl import ANNA, SampleUser
from samples.questions import FIRST_QUESTION
from shared.platform.hashing import digest
from shared.platform.names import WORK

HANG_GUARD_S = 240.0  # far longer than any operation takes unless it hangs
ENDED = ("ready", "failed")
Value = TypeVar("Value")


def drop(stack: LocalStack, name: str, content: bytes, acl: str = ANNA.user_id) -> None:
    """Write a file to the documents container, as any storage client would."""
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        service.get_blob_client(DOCUMENTS_CONTAINER, name).upload_blob(
            content, overwrite=True, metadata={"acl": acl}
        )


def put_in_workspace(stack: LocalStack, user_id: str, name: str) -> None:
    """Write a file into a user's workspace, as the tool `file_write` does."""
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        blob = service.get_blob_client(WORK, f"workspaces/{digest(user_id)}/{name}")
        blob.upload_blob(b"mine", overwrite=True)


def wait_until_ended(stack: LocalStack, name: str, user: SampleUser = ANNA) -> dict[str, Any]:
    """Wait until the ingestion of a document has ended, successfully or not, and return the document."""

    def ended() -> dict[str, Any] | None:
        stack.check()
        documents = (document for document in documents_of(stack, user) if document["filename"] == name)
        return next((document for document in documents if document["status"] in ENDED), None)

    return eventually(ended, f"the end of {name}")


def post_chat(stack: LocalStack, content: bytes, token: str | None = None) -> httpx.Response:
    """Send POST /api/chat with an arbitrary body and token."""
    bearer = stack.token(ANNA) if token is None else token
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    return httpx.post(f"{stack.base_url}/api/chat", content=content, headers=headers, timeout=HANG_GUARD_S)


def ask(client: httpx.Client, question: str = FIRST_QUESTION.text, **body: Any) -> dict[str, Any]:
    """Ask a question, wait for the end of the run and return it."""
    answered = client.post("/chat", json={"question": question, "stream": False, **body})
    assert answered.status_code == 200, answered.text
    view: dict[str, Any] = answered.json()
    return view


def pdf_of(*lines: str) -> bytes:
    """Return a PDF with one page that contains these lines."""
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", size=12)
    for line in lines:
        pdf.multi_cell(0, 7, line, new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def client_of(stack: LocalStack, who: SampleUser | str) -> httpx.Client:
    """Return a client of the API for a sample user, or for the bearer of a token."""
    token = who if isinstance(who, str) else stack.token(who)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=HANG_GUARD_S)


def eventually(look: Callable[[], Value | None], what: str = "it") -> Value:
    """Call `look` repeatedly until it returns a true value, and return that value. Fail with `what` in the
    message after a time limit, which is reached only if something is broken.
    """
    deadline = time.monotonic() + HANG_GUARD_S
    while not (value := look()):
        assert time.monotonic() < deadline, f"{what} did not come to pass"
        time.sleep(0.1)
    return value
