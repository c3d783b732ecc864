"""Every route of the app with the probe that checks its permissions. A test fails if one is missing."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from shared.platform.hashing import digest
from tests.api_routes import api_routes
from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import (
    ABSENT,
    PAPERS,
    PEOPLE,
    QUESTION,
    foreign,
    leaked,
    may_open,
    may_read,
    readable,
)
from tests.e2e.access.probes import (
    OWNERS,
    Probe,
    events_of,
    file_of,
    for_administrators,
    for_channels_alone,
    for_everybody,
    keeps_to_own_runs,
    new_summary,
    new_thread,
    of_anyone_known,
    of_document,
    of_one_person,
    of_owner,
    run_of,
    same_as_absent,
    shows_no_foreign,
    summary_of,
    thread_of,
)
from tests.e2e.stack_client import eventually

FOLLOWERS = ("member", "public only", "administrator")
"""Who follows the links of everybody's answers."""
FORGETFUL = "organisation with a prefix"


def routes_of_the_app() -> list[str]:
    """Return all operations of the app, such as `GET documents/{doc_id}`."""
    return sorted(f"{method} {route}" for method, route, _ in api_routes())


def keys_of(world: AccessCorpus, doc_ids: list[str]) -> set[str]:
    keys_by_id = {world.doc_id(key): key for key in PAPERS}
    return {keys_by_id[doc_id] for doc_id in doc_ids if doc_id in keys_by_id}


def listed(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        answer = world.caller(name).get("/documents")
        shows_no_foreign(person, answer)
        doc_ids = [document["doc_id"] for document in answer.json()["documents"]]
        assert keys_of(world, doc_ids) == readable(person), name
        hidden = world.caller(name).get("/documents", params={"project_id": "hidden"}).json()
        assert hidden["count"] == (1 if "project" in readable(person) else 0), name


def counted(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        facets = world.caller(name).get("/documents/facets").json()
        # Other probes upload documents too, so only the counts are compared. `listed` checks the list itself.
        documents = world.caller(name).get("/documents", params={"limit": 100}).json()["documents"]
        assert facets["document_count"] == len(documents), name
        hidden = {value["value"] for value in facets["project_id"]}
        assert ("hidden" in hidden) == ("project" in readable(person)), name


def searched(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        caller = world.caller(name)
        answer = caller.post("/search", json={"query": QUESTION, "top_k": 50})
        shows_no_foreign(person, answer)
        body = answer.json()
        assert keys_of(world, [hit["doc_id"] for hit in body["results"]]) == readable(person), name
        assert body["result_count"] == len(body["results"])
        aimed = [world.doc_id(paper.key) for paper in foreign(person)]
        marks = " ".join(paper.mark for paper in foreign(person))
        nothing = caller.post("/search", json={"query": marks, "filters": {"doc_id": aimed}})
        assert nothing.json() == {"results": [], "result_count": 0}, name


def searched_by_address(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        caller = world.caller(name)
        answer = caller.get("/search", params={"q": QUESTION, "top_k": "50", "uploaded_from": "2020-01-01"})
        shows_no_foreign(person, answer)
        assert keys_of(world, [hit["doc_id"] for hit in answer.json()["results"]]) == readable(person), name
        hidden = caller.get("/search", params={"q": QUESTION, "project_id": "hidden"}).json()
        assert bool(hidden["results"]) == ("project" in readable(person)), name


def own_runs_listed(world: AccessCorpus) -> None:
    for name in PEOPLE:
        others = {world.runs[other]["run_id"] for other in PEOPLE if other != name}
        run_ids = ids_listed(world.caller(name), "/runs", "runs", "run_id")
        assert world.runs[name]["run_id"] in run_ids, name
        assert not run_ids & others, name


def answers_shared(world: AccessCorpus) -> None:
    """Check that an answer shared with everyone reveals the text of a document only to its readers."""
    for owner in PEOPLE:
        path, order = f"/runs/{run_of(world, owner)}/shares", {"audience": ["*"]}
        response = world.caller(owner).post(path, json=order)
        if response.status_code != 201:  # sharing is disabled, or the answer can't be shared
            assert response.status_code in (403, 404, 409), response.text
            continue
        for name, person in PEOPLE.items():
            if name != owner:
                assert world.caller(name).post(path, json=order).status_code == 404, name
            opened = world.caller(name).get(f"/shares/{response.json()['share_id']}")
            shows_no_foreign(person, opened)
            assert opened.status_code == 200, name
        world.caller(owner).delete(f"{path}/{response.json()['share_id']}").raise_for_status()


def own_summaries_listed(world: AccessCorpus) -> None:
    for name in PEOPLE:
        others = {summary_of(world, other) for other in world.summaries if other != name}
        summary_ids = ids_listed(world.caller(name), "/summaries", "summaries", "summary_id")
        assert (name in world.summaries) <= bool(summary_ids), name
        assert not summary_ids & others, name


def own_files_listed(world: AccessCorpus) -> None:
    files = {name: file_of(world, name) for name in OWNERS}
    for name in PEOPLE:
        filenames = {one["name"] for one in world.caller(name).get("/workspace").json()["files"]}
        assert filenames & set(files.values()) == ({files[name]} if name in files else set()), name


def ids_listed(caller: httpx.Client, path: str, name: str, key: str) -> set[str]:
    """Return the ids on all pages of a list."""
    ids: set[str] = set()
    cursor = ""
    while True:
        page = caller.get(path, params={"limit": "100", "cursor": cursor}).json()
        ids |= {one[key] for one in page[name]}
        cursor = page["cursor"] or ""
        if not cursor:
            return ids


def check_chat(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        caller = world.caller(name)
        for run in (world.runs[name], world.scoped_runs[name]):
            shows_no_foreign(person, caller.get(f"/runs/{run['run_id']}"))
            shows_no_foreign(person, caller.get(f"/runs/{run['run_id']}/events"))
        answer = world.runs[name]["answer"]
        assert answer["citations"], name
        assert keys_of(world, [cited["doc_id"] for cited in answer["citations"]]) <= readable(person)
        assert world.scoped_runs[name]["answer"]["abstained"] is True, name
        assert world.scoped_runs[name]["answer"]["citations"] == []
        open_links_of(world, name)
        theirs = thread_of(world, "owner" if name != "owner" else "member")
        body = {"question": QUESTION, "thread_id": theirs}
        absent = caller.post("/chat", json={**body, "thread_id": ABSENT})
        same_as_absent(caller.post("/chat", json=body), theirs, absent, name)


def assisted(world: AccessCorpus) -> None:
    """Check that each person finds and reads only readable documents through the MCP server."""
    for name, person in PEOPLE.items():
        search_result = tool_result(world, name, "search", query=QUESTION, top_k=50)
        assert keys_of(world, [one["id"].partition("/")[0] for one in search_result["results"]]) == readable(
            person
        )
        own = tool_result(world, name, "list_documents", limit=100)
        assert keys_of(world, [one["doc_id"] for one in own["documents"]]) == readable(person), name
        tables = tool_result(world, name, "list_tables", limit=100)
        assert keys_of(world, [one["doc_id"] for one in tables["tables"]]) == {"table"} & readable(person)
        assert leaked(person, str([search_result, own, tables])) == [], name
        assert may_calculate(world, name) == ("table" in readable(person)), name
        absent = tool_result(world, name, "fetch", id=ABSENT)
        for key, paper in PAPERS.items():
            doc_id = world.doc_id(key)
            fetched = tool_result(world, name, "fetch", id=doc_id)
            if may_read(person, paper):
                assert paper.mark in fetched["text"], (name, key)
            else:
                assert str(fetched).replace(doc_id, ABSENT) == str(absent), (name, key)
        theirs = run_of(world, "owner" if name != "owner" else "member")
        foreign_run = tool_result(world, name, "get_answer", run_id=theirs)
        assert str(foreign_run).replace(theirs, ABSENT) == str(
            tool_result(world, name, "get_answer", run_id=ABSENT)
        )
        foreign_reply = tool_result(world, name, "reply", run_id=theirs, answer="1")
        assert str(foreign_reply).replace(theirs, ABSENT) == str(
            tool_result(world, name, "reply", run_id=ABSENT, answer="1")
        )
        answer = tool_result(world, name, "ask", question=QUESTION)
        assert leaked(person, str(answer)) == [], name


def may_calculate(world: AccessCorpus, name: str) -> bool:
    """Return whether SQL over the paper with a table runs, or fails with another error than for a missing
    table.
    """
    table_id, absent_id = f"{world.doc_id('table')}.1", f"{ABSENT}.1"
    result = tool_result(world, name, "run_sql", sql="SELECT 1 AS one", table_ids=[table_id])
    absent = tool_result(world, name, "run_sql", sql="SELECT 1 AS one", table_ids=[absent_id])
    return "rows" in result or str(result).replace(table_id, absent_id) != str(absent)


def tool_result(world: AccessCorpus, name: str, tool: str, **arguments: object) -> dict[str, Any]:
    """Return the result of a tool of the MCP server, even if it is an error."""
    call = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = world.caller(name).post("/mcp", json=body)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()["result"]["structuredContent"]
    return content


def completed(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        body = {"model": "groundwork", "messages": [{"role": "user", "content": QUESTION}]}
        answer = world.caller(name).post("/v1/chat/completions", json=body)
        shows_no_foreign(person, answer)
        cited = [one["doc_id"] for one in answer.json()["groundwork"]["citations"]]
        assert cited, name
        assert keys_of(world, cited) <= readable(person), name


def open_links_of(world: AccessCorpus, name: str) -> None:
    """Check that the links in an answer lead only to documents that the person may read."""
    answer = world.runs[name]["answer"]
    links = [(cited["doc_id"], cited["url"]) for cited in answer["citations"]]
    links += [(figure["doc_id"], figure["path"]) for figure in answer["figures"]]
    for doc_id, url in links:
        (key,) = keys_of(world, [doc_id])
        for other in {name, *FOLLOWERS}:
            person = PEOPLE[other]
            answered = world.caller(other).get(url.removeprefix("/api").partition("#")[0])
            assert answered.status_code == (200 if may_read(person, PAPERS[key]) else 404), (name, other, url)


def drawn(world: AccessCorpus) -> None:
    """Check that only readers of a PDF get the picture of a page. Readers of other files must learn that
    there is none.
    """
    for name, person in PEOPLE.items():
        caller = world.caller(name)
        absent = caller.get(f"/documents/{ABSENT}/pages/1/image")
        for key, paper in PAPERS.items():
            doc_id = world.doc_id(key)
            answer = caller.get(f"/documents/{doc_id}/pages/1/image")
            if not may_open(person, paper):
                same_as_absent(answer, doc_id, absent, (name, key))
                continue
            assert answer.status_code == (200 if paper.suffix == "pdf" else 404), (name, key)


def threads_listed(world: AccessCorpus) -> None:
    for name in PEOPLE:
        threads = world.caller(name).get("/threads", params={"limit": "100"}).json()["threads"]
        ids = {thread["thread_id"] for thread in threads}
        assert thread_of(world, name) in ids
        assert ids.isdisjoint(thread_of(world, other) for other in PEOPLE if other != name), name


def thread_made(world: AccessCorpus) -> None:
    response = world.caller("public only").post("/threads", json={"title": "x", "owner_id": "olga"})
    assert response.status_code == 400
    thread_id = new_thread(world, "public only")
    assert world.caller("owner").get(f"/threads/{thread_id}").status_code == 404
    theirs = {"thread_id": thread_of(world, "owner"), "run_id": run_of(world, "owner")}
    absent = {**theirs, "thread_id": ABSENT}
    caller = world.caller("public only")
    expected = caller.post("/threads", json={"branch": absent})
    refused = caller.post("/threads", json={"branch": theirs})
    same_as_absent(refused, theirs["thread_id"], expected, "branch")


def remembered(world: AccessCorpus) -> None:
    for name, person in PEOPLE.items():
        if name == FORGETFUL:
            continue
        caller = world.caller(name)
        memories = eventually(lambda caller=caller: caller.get("/memory").json()["memories"])  # type: ignore[misc]
        keeps_to_own_runs(world, name, {memory["memory_id"] for memory in memories})
        assert leaked(person, str(memories)) == []


def forgotten(world: AccessCorpus) -> None:
    """Check that deleting the caller's memories deletes no memory of another person."""
    before = eventually(lambda: world.caller("owner").get("/memory").json()["memories"])
    assert world.caller(FORGETFUL).delete("/memory").status_code == 200
    after = world.caller("owner").get("/memory").json()["memories"]
    assert {memory["memory_id"] for memory in before} <= {memory["memory_id"] for memory in after}


def switched(world: AccessCorpus) -> None:
    """Check that disabling memory affects only the caller."""
    assert world.caller(FORGETFUL).put("/memory", json={"is_on": False}).json() == {"is_on": False}
    assert world.caller("owner").get("/memory").json()["is_on"] is True
    assert world.caller(FORGETFUL).put("/memory", json={"is_on": True}).status_code == 200


def watched(world: AccessCorpus) -> None:
    """Check that each person's feed contains only changes of documents that they may read."""
    hour_ago = int((time.time() - 3600) * 1_000_000)
    with ThreadPoolExecutor(len(PEOPLE)) as pool:
        feeds = pool.map(
            lambda name: events_of(world.caller(name), "/documents/events", after=hour_ago), PEOPLE
        )
        for (name, person), events in zip(PEOPLE.items(), feeds, strict=True):
            assert keys_of(world, [event["doc_id"] for event in events]) == readable(person), name
            assert leaked(person, str(events)) == []


def summarised(world: AccessCorpus) -> None:
    """Check that a summary contains no text of documents that the caller may not read."""
    for name in world.summaries:
        person = PEOPLE[name]
        caller, path = world.caller(name), f"/summaries/{summary_of(world, name)}"
        eventually(lambda caller=caller, path=path: caller.get(path).json()["status"] != "running")  # type: ignore[misc]
        answer = caller.get(path)
        shows_no_foreign(person, answer)
        result = answer.json()["result"]
        assert keys_of(world, [cited["doc_id"] for cited in result["citations"]]) == {"public"}, name
        assert [one["status"] for one in result["documents"]] == ["done", "not_found", "not_found"], name


def uploaded(world: AccessCorpus) -> None:
    """Check that uploading a file with the name or folder of another person's file creates a separate
    document.
    """
    owner_folder = digest("uploader", PEOPLE["owner"].user_id)[:16]
    whole = {}
    for name in ("owner", "public only"):
        for folder in ("", f"../{owner_folder}"):
            response = world.caller(name).post(
                "/documents",
                data={"folder": folder},
                files={"file": ("same.txt", f"Of {name} in {folder}.".encode())},
            )
            assert response.status_code == 202, response.text
            whole[response.json()["doc_id"]] = (name, f"Of {name} in {folder}.")
    assert len(whole) == 4
    for doc_id, (name, text) in whole.items():
        for caller in ("owner", "public only", "administrator"):
            path = f"/documents/{doc_id}"
            if caller != name:
                assert world.caller(caller).get(path).status_code == 404
                continue
            eventually(
                lambda path=path, name=name: world.caller(name).get(path).json()["status"] == "ready"  # type: ignore[misc]
            )
            assert world.caller(name).get(f"{path}/content").text == text


def ticket_made(world: AccessCorpus) -> None:
    """Check that an upload URL always points to the caller's folder, whatever the name of the file."""
    own = digest("uploader", PEOPLE["public only"].user_id)[:16]
    owner_folder = digest("uploader", PEOPLE["owner"].user_id)[:16]
    for filename in ("later.txt", f"../{owner_folder}/later.txt", f"..%2f{owner_folder}%2flater.txt"):
        body = {"filename": filename, "folder": f"../{owner_folder}"}
        response = world.caller("public only").post("/documents/uploads", json=body)
        assert response.status_code == 201, response.text
        assert f"/uploads/{own}/" in response.json()["url"]
        # Nothing was uploaded, so the document doesn't exist yet, not even for the caller.
        assert world.caller("public only").get(f"/documents/{response.json()['doc_id']}").status_code == 404


def imported_nothing(world: AccessCorpus) -> None:
    """Check that the app imports no web page while this feature is disabled, which is the default."""
    for name in PEOPLE:
        for url in ("http://127.0.0.1/", "https://example.org/"):
            response = world.caller(name).post("/documents/import", json={"url": url})
            assert response.status_code == 403, response.text


def check_identity(world: AccessCorpus) -> None:
    """Check that the response identifies the caller and contains no other person's identity."""
    for name, person in PEOPLE.items():
        identity = world.caller(name).get("/me").json()
        assert (identity["user_id"], identity["group_count"]) == (person.user_id, len(person.groups)), name
        assert identity["is_administrator"] == ("admin" in person.roles), name
        assert (identity["department"], identity["org_id"]) == (person.department, person.org_id), name


def offered(world: AccessCorpus) -> None:
    """Check that the audiences offered to the caller contain no groups of other people."""
    for name, person in PEOPLE.items():
        audiences = world.caller(name).get("/me/audiences").json()["audiences"]
        expected = {person.user_id, *person.groups, "*"}
        expected |= {person.department} if person.department else set()
        expected |= {f"org:{person.org_id}"} if person.org_id else set()
        assert {one["principal"] for one in audiences} == expected, name


CHANGE = {"title": "taken over"}
ACCESS = {"acl": ["*"]}


ROUTES: Mapping[str, Probe] = {
    "GET health": for_everybody("/health"),
    "GET health/ready": for_everybody("/health/ready"),
    "GET openapi.json": for_everybody("/openapi.json"),
    "GET docs": for_everybody("/docs"),
    "GET site": for_everybody("/site"),
    "GET me": check_identity,
    "GET me/audiences": offered,
    "GET docs/{asset}": for_everybody("/docs/start.js"),
    "POST chat": check_chat,
    "POST search": searched,
    "GET search": searched_by_address,
    "POST mcp": assisted,
    "GET agents": of_anyone_known("/agents"),
    "GET v1/models": of_anyone_known("/v1/models"),
    "GET v1/models/{model}": of_anyone_known("/v1/models/groundwork"),
    "POST v1/chat/completions": completed,
    "GET documents": listed,
    "POST documents": uploaded,
    "POST documents/uploads": ticket_made,
    "POST documents/import": imported_nothing,
    "GET documents/facets": counted,
    "GET documents/events": watched,
    "GET documents/{doc_id}": of_document("GET", may=may_read),
    "GET documents/{doc_id}/content": of_document("GET", "/content"),
    "GET documents/{doc_id}/figures/{name}": of_document("GET", "/figures/{figure}", figure=True),
    "GET documents/{doc_id}/pages/{page}": of_document("GET", "/pages/1"),
    "GET documents/{doc_id}/pages/{page}/image": drawn,
    "GET documents/{doc_id}/readable": of_document("GET", "/readable"),
    "PATCH documents/{doc_id}": of_owner("PATCH", body=CHANGE),
    "PUT documents/{doc_id}/access": of_owner("PUT", "/access", body=ACCESS),
    "POST documents/{doc_id}/reingest": of_owner("POST", "/reingest"),
    "DELETE documents/{doc_id}": of_owner("DELETE"),
    "GET runs": own_runs_listed,
    "GET runs/{run_id}": of_one_person(run_of, "GET", "/runs/{}", 200),
    "GET runs/{run_id}/events": of_one_person(run_of, "GET", "/runs/{}/events", 200),
    "POST runs/{run_id}/answer": of_one_person(run_of, "POST", "/runs/{}/answer", 409, {"choice": 1}),
    "POST runs/{run_id}/cancel": of_one_person(run_of, "POST", "/runs/{}/cancel", 409),
    "PUT runs/{run_id}/feedback": of_one_person(run_of, "PUT", "/runs/{}/feedback", 200, {"rating": 4}),
    "GET runs/{run_id}/feedback": of_one_person(run_of, "GET", "/runs/{}/feedback", (200, 404)),
    "DELETE runs/{run_id}/feedback": of_one_person(run_of, "DELETE", "/runs/{}/feedback", 204),
    "POST runs/{run_id}/openings": of_one_person(run_of, "POST", "/runs/{}/openings", (204, 404), {"n": 1}),
    "POST runs/{run_id}/shares": answers_shared,
    "GET runs/{run_id}/shares": of_one_person(run_of, "GET", "/runs/{}/shares", (200, 404)),
    "DELETE runs/{run_id}/shares/{share_id}": of_one_person(
        run_of, "DELETE", f"/runs/{{}}/shares/{ABSENT}", 404
    ),
    "GET shares/{share_id}": answers_shared,
    "POST summaries": summarised,
    "GET summaries": own_summaries_listed,
    "GET summaries/{summary_id}": of_one_person(summary_of, "GET", "/summaries/{}", 200),
    "POST summaries/{summary_id}/cancel": of_one_person(
        new_summary, "POST", "/summaries/{}/cancel", (200, 409)
    ),
    "DELETE summaries/{summary_id}": of_one_person(new_summary, "DELETE", "/summaries/{}", 204),
    "GET threads": threads_listed,
    "POST threads": thread_made,
    "GET threads/{thread_id}": of_one_person(thread_of, "GET", "/threads/{}", 200),
    "PATCH threads/{thread_id}": of_one_person(new_thread, "PATCH", "/threads/{}", 200, CHANGE),
    "DELETE threads/{thread_id}": of_one_person(new_thread, "DELETE", "/threads/{}", 204),
    "POST threads/{thread_id}/clear": of_one_person(new_thread, "POST", "/threads/{}/clear", 200),
    "GET threads/{thread_id}/messages": of_one_person(thread_of, "GET", "/threads/{}/messages", 200),
    "GET threads/{thread_id}/files": of_one_person(thread_of, "GET", "/threads/{}/files", 200),
    "POST threads/{thread_id}/files": of_one_person(new_thread, "POST", "/threads/{}/files", 400),
    "POST threads/{thread_id}/files/uploads": of_one_person(
        new_thread, "POST", "/threads/{}/files/uploads", 201, {"filename": "notes.md"}
    ),
    "DELETE threads/{thread_id}/files/{doc_id}": of_one_person(
        new_thread, "DELETE", f"/threads/{{}}/files/{ABSENT}", 404
    ),
    "GET memory": remembered,
    "DELETE memory": forgotten,
    "PUT memory": switched,
    "GET workspace": own_files_listed,
    "GET workspace/{file}": of_one_person(file_of, "GET", "/workspace/{}", 200),
    "DELETE workspace/{file}": of_one_person(file_of, "DELETE", "/workspace/{}", 204),
    "POST messages": for_channels_alone,
    "GET maintenance/audit": for_administrators("GET", "/maintenance/audit"),
    "GET maintenance/failed": for_administrators("GET", "/maintenance/failed"),
    "GET maintenance/poison": for_administrators("GET", "/maintenance/poison"),
    "GET users": for_administrators("GET", "/users"),
    "POST maintenance/reconcile": for_administrators("POST", "/maintenance/reconcile"),
    "GET sharepoint": for_administrators("GET", "/sharepoint"),
    "GET audit": for_administrators("GET", "/audit"),
    "GET metrics/subagents": for_administrators("GET", "/metrics/subagents"),
    "GET metrics/quality": for_administrators("GET", "/metrics/quality"),
    "DELETE users/{user_id}": for_administrators("DELETE", "/users/somebody-else", (202,)),
    "GET users/{user_id}/erasure": for_administrators("GET", "/users/somebody-else/erasure", (200, 404)),
}
