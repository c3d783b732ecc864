"""Smoothness of an answer at 400 tokens a second, also with 500 older turns above it. The test measures and
asserts nothing.

The stream is generated inside the page, so that only the time of the page is measured.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from local.run_all.stack import LocalStack
from tests.e2e.web.browser import answered, ask, measure, only_measured, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900), only_measured]
TOKENS = 2000
OLDER = 500
ROUNDS = 3  # only the fastest round counts, because other processes may slow down the machine
# Replaces the stream of events. Records when each token was sent and displayed, and the time of each frame.
STREAM = """
const COUNT = 2000, PER_MS = 0.4;
const real = window.fetch;
window.fetch = (path, options) => /runs.paced.events/.test(path) ? paced() : real(path, options);
const encoder = new TextEncoder();
async function paced() {
  const sent = [], frames = [];
  let shown = 0, id = 0, before = 0;
  window.pace = {latencies: [], frames};
  const draw = (now) => { if (before) frames.push(now - before); before = now; requestAnimationFrame(draw); };
  new MutationObserver((records) => {
    const now = performance.now();
    for (const {target, addedNodes} of records) for (const node of [target, ...addedNodes]) {
      const last = Number((node.textContent.match(/w(\\d+) ?$/) ?? [])[1] ?? -1);
      for (; shown <= last; shown += 1) pace.latencies.push(now - sent[shown]);
    }
  }).observe(document.querySelector(".turn:last-child .answer"),
    {subtree: true, childList: true, characterData: true});
  const body = new ReadableStream({ start(controller) {
    const send = (event, data) => controller.enqueue(
      encoder.encode(`id: ${id += 1}\\nevent: ${event}\\ndata: ${JSON.stringify(data)}\\n\\n`));
    send("status", {step: 0, state: "accepted", run_id: "paced", thread_id: "t"});
    requestAnimationFrame(draw);
    const began = performance.now();
    const timer = setInterval(() => {
      const due = Math.min(COUNT, Math.floor((performance.now() - began) * PER_MS));
      while (sent.length < due) {
        const n = sent.length;
        const isList = n % 120 >= 60;  // paragraphs and lists of sixty words take turns
        const start = (n % 60 ? "" : "\\n\\n") + (isList && n % 15 === 0 ? "\\n- " : "");
        sent.push(performance.now());
        send("token", {step: 1, text: `${start}${n % 9 ? `w${n} ` : `**w${n}** `}`});
      }
      if (sent.length < COUNT) return;
      clearInterval(timer);
      send("error", {step: 1, type: "RunCancelledError", message: "", hints: []});
      controller.close();
    }, 4);
  }});
  return new Response(body, {status: 200, headers: {"content-type": "text/event-stream"}});
}
"""


def test_how_smoothly_an_answer_is_drawn(stack: LocalStack, browser: Browser, report: Path) -> None:
    measurements = [_measured(browser, stack.base_url, older) for older in [0, OLDER] * ROUNDS]
    assert all(len(one["latencies"]) == TOKENS for one in measurements)
    measure(
        report,
        event_to_dom_p95_ms=min(
            round(sorted(one["latencies"])[TOKENS * 95 // 100], 1) for one in measurements[::2]
        ),
        longest_frame_ms=max(
            min(round(max(one["frames"]), 1) for one in measurements[start::2]) for start in (0, 1)
        ),
    )


def _measured(browser: Browser, base_url: str, older: int) -> dict[str, list[float]]:
    """Return milliseconds: `latencies` from each token to its display, `frames` between rendered frames."""

    def reply(route: Route) -> None:
        is_chat = route.request.url.endswith("/chat")
        route.fulfill(json={"run_id": "paced", "thread_id": "t"} if is_chat else _messages(older))

    with opened(browser, base_url) as watched:
        page = watched.page
        page.context.add_init_script(STREAM)
        page.route(re.compile("/api/chat$|/api/threads/t/messages"), reply)
        page.goto(base_url + ("/?thread=t" if older else "/"))
        if older:
            page.wait_for_selector(f".turn:nth-of-type({older}) .answer")
        ask(page, "How fast?")
        answered(page, "cancelled")
        timings: dict[str, list[float]] = page.evaluate("pace")
    return timings


def _messages(count: int) -> dict[str, Any]:
    """Return a thread of this many turns, all on one page of the list."""
    return {"thread_id": "t", "messages": [_message(number) for number in range(count)], "cursor": None}


def _message(number: int) -> dict[str, Any]:
    empty_fields = dict.fromkeys(("finished_at", "error", "error_type", "feedback"))
    return {
        "run_id": f"r{number}",
        "number": number,
        "question": f"What does section {number} say about maintenance?",
        "status": "completed",
        "created_at": "2026-01-01T00:00:00Z",
        "answer": {
            "run_id": f"r{number}",
            "text": "\n\n".join(f"{'The bearings are greased every month. ' * 6}[{n}]" for n in (1, 2, 3)),
            "citations": [_citation(n) for n in (1, 2, 3)],
            "abstained": False,
            "sub_agents": [],
            "warnings": [],
        },
        **empty_fields,
    }


def _citation(number: int) -> dict[str, Any]:
    return {
        "n": number,
        "doc_id": f"d{number}",
        "filename": f"manual-{number}.pdf",
        "page_number": number,
        "start_seconds": None,
        "quote": "The bearings are greased every month.",
        "verified": True,
        "url": "",
    }
