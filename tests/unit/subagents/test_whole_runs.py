"""Tests for complete runs with sub-agents: their results reach the reader with labels and are logged."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from shared.answering.inline import RunChildren
from shared.answering.services import AnsweringServices
from shared.answering.subagent_models import SubagentEnd, SubagentStart, SubagentState
from shared.conversations.messages import read_messages
from shared.platform.language_models.models import CallLimits
from shared.runs.events import RunEvent
from shared.runs.models import RunView
from shared.tools.models import WebHit
from shared.tools.web_search import WebSearch
from shared.wiring import Services
from tests.fakes.services import fake_settings
from tests.unit.subagents.children import claim, state, web_claim
from tests.unit.subagents.delegation_requests import hit
from tests.unit.subagents.lines import keep_state
from tests.world import ANNA, Model, corpus_services, plan
from tests.world import ask as run_question

ABSTAINS = '<gap missing="the pressure" next_step="Ask."/>'
WEB = "**From outside sources, not from your documents:**"


class Web(WebSearch):
    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        return []


def leaving(left: SubagentState) -> RunChildren:
    """Return sub-agents that each store this state."""

    async def run(
        starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        for start in starts:
            mine = left.model_copy(update={"child_id": start.child_id})
            await keep_state(services, start.run_id, start.step, mine, start.index)
        return tuple(SubagentEnd(child_id=start.child_id, status=left.status) for start in starts)

    return run


async def ask(services: Services, run_children: RunChildren, **body: Any) -> tuple[RunView, list[RunEvent]]:
    view, events = await run_question(services, children=run_children, **{"deep": True, **body})
    assert view.answer is not None
    (message,) = (await read_messages(view.thread_id, ANNA, services, 5)).messages
    assert message.answer == view.answer
    streamed_text = "".join(event.data["text"] for event in events if event.name == "TOKEN")
    assert streamed_text == view.answer.text
    return view, events


async def unsure(answer: str = ABSTAINS, **settings: Any) -> Services:
    """Return services whose documents fit no question well, with a web search."""
    services = await corpus_services(
        Model(plan(), answer=answer), settings=fake_settings(max_retrieval_attempts=1, **settings)
    )
    return replace(services, web_search=Web())


@pytest.mark.parametrize("abstains", [True, False])
async def test_the_web_is_told_below_the_answer_and_never_as_one_of_the_documents(*, abstains: bool) -> None:
    proved = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
    services = await unsure(ABSTAINS if abstains else proved)
    web_state = state(
        findings=[web_claim("Pumps run at 16 bar.", "https://a.example/p")], profile="web_verifier"
    )
    view, _ = await ask(services, leaving(web_state))
    assert view.answer is not None
    before, _, outside = view.answer.text.partition(WEB)
    assert "16 bar" not in before
    assert "- Pumps run at 16 bar. ([a.example](https://a.example/p); one source only)" in outside
    assert view.answer.abstained is abstains
    assert all(citation.doc_id in ("manual", "report-2023") for citation in view.answer.citations)
    assert [one.profile for one in view.answer.sub_agents] == ["web_verifier"]


async def test_a_warning_stands_in_the_answer_and_in_the_stream() -> None:
    late = state([hit("manual", 7)], status="partial", warnings=("TIME_OUT",), profile="evidence_builder")
    services = replace(await unsure(), web_search=None)
    view, events = await ask(services, leaving(late))
    assert view.answer is not None
    warning = "Evidence finder: It ran out of time. What it had found by then was used."
    assert view.answer.warnings == (warning,)
    assert warning not in view.answer.text
    assert warning in [event.data.get("text") for event in events if event.data.get("state") == "warning"]


async def test_deeper_work_that_is_asked_for_reaches_the_policy() -> None:
    sure: dict[str, Any] = {
        "low_retrieval_confidence_top_score": 0.01,
        "high_confidence_no_delegate_top_score": 1.0,
        "low_score_spread_ambiguity": 0.0,
    }
    run_children = leaving(state(findings=[claim("C")]))
    _, plain = await ask(await unsure(**sure), run_children, deep=False)
    view, deep = await ask(await unsure(**sure), run_children, deep=True)
    assert [codes(events) for events in (plain, deep)] == [["NO_TRIGGER"], ["DEEP_MODE_REQUESTED"]]
    assert view.sub_agents[0].reasons == ("Deeper work was asked for.",)


def codes(events: list[RunEvent]) -> list[str]:
    (decision,) = [event.data for event in events if event.data.get("state") == "delegation"]
    reason_codes: list[str] = decision["reason_codes"]
    return reason_codes
