"""One successful request for each operation of the API, whose response is compared with the description."""

import time
from urllib.parse import urlsplit

import httpx

from samples.questions import FIRST_QUESTION
from tests.contract.api.described import Described

WAIT_S = 120.0


def call_everything(
    user: httpx.Client, nobody: httpx.Client, administrator: httpx.Client, described: Described
) -> set[str]:
    """Send each request and return the names of the operations that succeeded. `administrator` has the role
    `admin`, and `nobody` sends no token.
    """
    described.seen.clear()
    _open_calls(nobody)
    _operation(administrator)
    _questions(user)
    _threads_and_memory(user)
    _conversation_files(user)
    _summaries(user)
    _documents(user)
    _assistants(user)
    return {name for name, status in described.seen if status < 400}


def _open_calls(nobody: httpx.Client) -> None:
    for path in ("/health", "/health/ready", "/openapi.json", "/docs", "/docs/start.js", "/site"):
        nobody.get(path).raise_for_status()


def _operation(administrator: httpx.Client) -> None:
    administrator.get("/me").raise_for_status()
    administrator.get("/me/audiences").raise_for_status()
    administrator.get("/maintenance/audit").raise_for_status()
    administrator.get("/sharepoint").raise_for_status()
    administrator.get("/maintenance/failed").raise_for_status()
    administrator.get("/maintenance/poison").raise_for_status()
    administrator.get("/users", params={"q": "an"}).raise_for_status()
    administrator.post("/maintenance/reconcile").raise_for_status()
    administrator.get("/metrics/subagents", params={"hours": "1"}).raise_for_status()
    administrator.get("/metrics/quality", params={"hours": "1"}).raise_for_status()
    administrator.get("/audit").raise_for_status()
    administrator.delete("/users/somebody-who-left").raise_for_status()
    administrator.get("/users/somebody-who-left/erasure").raise_for_status()


def _questions(user: httpx.Client) -> None:
    user.post("/chat", json={"question": FIRST_QUESTION.text}).raise_for_status()
    response = user.post("/chat", json={"question": "Summarise the annual report.", "stream": False})
    run = f"/runs/{response.json()['run_id']}"
    assert response.json()["status"] == "waiting", "two reports fit: the run asks which is meant"
    user.post(f"{run}/answer", json={"choice": 1}).raise_for_status()
    user.get(f"{run}/events").raise_for_status()
    user.get(run).raise_for_status()
    user.post(f"{run}/openings", json={"n": 1}).raise_for_status()
    share = user.post(f"{run}/shares", json={"audience": ["*"]}).raise_for_status().json()["share_id"]
    user.get(f"{run}/shares").raise_for_status()
    user.get(f"/shares/{share}").raise_for_status()
    user.delete(f"{run}/shares/{share}").raise_for_status()
    user.put(f"{run}/feedback", json={"rating": 4}).raise_for_status()
    user.get(f"{run}/feedback").raise_for_status()
    user.delete(f"{run}/feedback").raise_for_status()
    response = user.post("/chat", json={"question": "Summarise the annual report.", "stream": False})
    user.post(f"/runs/{response.json()['run_id']}/cancel").raise_for_status()
    user.post("/search", json={"query": FIRST_QUESTION.text}).raise_for_status()
    user.get("/search", params={"q": FIRST_QUESTION.text, "language": "en"}).raise_for_status()
    assert user.get("/runs").raise_for_status().json()["runs"][0]["run_id"] == response.json()["run_id"]


def _assistants(user: httpx.Client) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    user.post("/mcp", json=call).raise_for_status()
    user.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}).raise_for_status()
    assert user.post("/mcp", json={**call, "method": "tools"}).json()["error"]["code"] == -32601
    user.get("/v1/models").raise_for_status()
    user.get("/v1/models/groundwork").raise_for_status()
    user.get("/agents").raise_for_status()
    completion_request = {
        "model": "groundwork",
        "messages": [{"role": "user", "content": FIRST_QUESTION.text}],
    }
    user.post("/v1/chat/completions", json=completion_request).raise_for_status()
    user.post("/v1/chat/completions", json={**completion_request, "stream": True}).raise_for_status()
    assert user.post("/v1/chat/completions", json={**completion_request, "model": "gpt"}).status_code == 404


def _threads_and_memory(user: httpx.Client) -> None:
    newest = user.get("/threads", params={"limit": "1"}).json()["threads"][0]["thread_id"]
    user.get(f"/threads/{newest}/messages").raise_for_status()
    response = user.post("/threads", json={"title": "valves"})
    thread = f"/threads/{response.json()['thread_id']}"
    etag = user.get(thread).raise_for_status().headers["etag"]
    assert user.get(thread, headers={"If-None-Match": etag}).status_code == 304
    user.patch(thread, json={"title": "pumps"}).raise_for_status()
    user.post(f"{thread}/clear").raise_for_status()
    user.delete(thread).raise_for_status()
    user.get("/agents").raise_for_status()
    user.get("/memory").raise_for_status()
    user.put("/memory", json={"is_on": True}).raise_for_status()
    user.delete("/memory").raise_for_status()
    (file,) = user.get("/workspace").raise_for_status().json()["files"]
    user.get(f"/workspace/{file['name']}").raise_for_status()
    user.delete(f"/workspace/{file['name']}").raise_for_status()


def _conversation_files(user: httpx.Client) -> None:
    thread = user.post("/threads", json={"title": "files"}).json()["thread_id"]
    files = f"/threads/{thread}/files"
    upload = user.post(files, files={"file": ("notes.md", b"# Notes\n\nThe kettle is blue.\n")})
    assert upload.status_code == 202, upload.text
    user.post(f"{files}/uploads", json={"filename": "plan.pdf", "size_bytes": 9}).raise_for_status()
    assert "notes.md" in user.get(files).text
    user.delete(f"{files}/{upload.json()['doc_id']}").raise_for_status()
    user.delete(f"/threads/{thread}").raise_for_status()


def _summaries(user: httpx.Client) -> None:
    listed = user.get("/documents", params={"filename": "memo-impeller-alloy.txt"}).json()["documents"]
    order = {"doc_ids": [listed[0]["doc_id"]]}
    response = user.post("/summaries", json=order, headers={"Prefer": "wait=60"})
    user.get(f"/summaries/{response.json()['summary_id']}").raise_for_status()
    listed = user.get("/summaries", params={"limit": "1"}).raise_for_status().json()["summaries"]
    assert listed[0]["summary_id"] == response.json()["summary_id"]
    user.delete(f"/summaries/{response.json()['summary_id']}").raise_for_status()
    everything = [document["doc_id"] for document in user.get("/documents").json()["documents"]][:20]
    running = user.post("/summaries", json={"doc_ids": everything}).json()["summary_id"]
    user.post(f"/summaries/{running}/cancel").raise_for_status()


def _documents(user: httpx.Client) -> None:
    user.get("/documents/facets").raise_for_status()
    ticket = {"filename": "later.txt"}
    user.post("/documents/uploads", json=ticket).raise_for_status()
    upload = user.post("/documents", files={"file": ("described.txt", b"Valves are opened by hand.")})
    document = f"/documents/{upload.json()['doc_id']}"
    _wait_until_ready(user, document)
    user.get(f"{document}/content").raise_for_status()
    assert user.get(f"{document}/content", headers={"Range": "bytes=0-5"}).status_code == 206
    _reading(user, document)
    etag = user.get(document).headers["etag"]
    assert user.get(document, headers={"If-None-Match": etag}).status_code == 304
    user.patch(document, json={"title": "Valves"}, headers={"If-Match": etag}).raise_for_status()
    assert user.patch(document, json={"title": "V"}, headers={"If-Match": etag}).status_code == 412
    _wait_until_ready(user, document)
    user.put(f"{document}/access", json={"acl": ["engineering"]}).raise_for_status()
    _wait_until_ready(user, document)
    user.post(f"{document}/reingest").raise_for_status()
    _wait_until_ready(user, document)
    user.delete(document).raise_for_status()
    pictures = {"query": "pump", "filters": {"block_type": "image"}}
    hit = user.post("/search", json=pictures).json()["results"][0]
    name = urlsplit(hit["image_url"]).path.rpartition("/")[2]
    user.get(f"/documents/{hit['doc_id']}/figures/{name}").raise_for_status()
    picture = f"/documents/{hit['doc_id']}/pages/{hit['page_number']}/image"
    conditional_headers = {"If-None-Match": user.get(picture).raise_for_status().headers["etag"]}
    assert user.get(picture, headers=conditional_headers).status_code == 304


def _reading(user: httpx.Client, document: str) -> None:
    for kind in ("text/html", "application/json"):
        user.get(f"{document}/pages/1", headers={"Accept": kind}).raise_for_status()
    for kind in ("text/html", "application/json", "text/markdown"):
        user.get(f"{document}/readable", headers={"Accept": kind}).raise_for_status()


def _wait_until_ready(user: httpx.Client, document: str) -> None:
    until = time.monotonic() + WAIT_S
    while user.get(document).json()["status"] != "ready":
        assert time.monotonic() < until, user.get(document).text
        time.sleep(0.2)
