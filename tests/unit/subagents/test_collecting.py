"""Tests for merging the results of sub-agents, whatever their status, and for reporting their failures."""

import pytest

from shared.answering.children import STATE
from shared.answering.control import read_control
from shared.answering.control_state import ControlState
from shared.answering.delegation_results import collect, estimated_tokens
from shared.answering.subagent_models import WarningCode
from shared.platform.errors import DependencyError
from shared.runs.events import ValueLine
from shared.runs.evidence import Evidence
from shared.runs.models import ChildStatus
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_subagents import InMemoryControlStore
from tests.unit.subagents.children import claim, collected, delegated, leaves, past_its_time, state, web_claim
from tests.unit.subagents.delegation_requests import (
    RUN,
    STEP,
    comparison,
    delegation_request,
    hit,
    record,
    summary,
)
from tests.unit.subagents.lines import journal_of


async def test_what_findings_prove_comes_first_and_is_told_as_notes() -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b")
    await delegated(request, services)
    proof_a, proof_b = hit("a", 7, content="15 bar"), hit("b", 8, content="16 bar")
    finding = claim("a: 15; b: 16", proof_a, proof_b, kind="difference", dimension="pressure")
    await leaves(services, state([hit("c", 9), proof_b, proof_a], [finding]))
    result = await collected(request, services)
    blocks = [one.block_id for one in result.evidence.hits]
    assert blocks == ["a-7", "b-8", "a-0", "b-0", "a-1", "b-1", "c-9"]
    assert {one.doc_id for one in result.evidence.records} == {"a", "b", "c"}
    assert '<finding kind="difference" about="pressure">' in result.findings
    assert '<proof doc_id="a">15 bar</proof>' in result.findings
    assert result.warnings == ()


async def test_no_named_document_is_missing_from_the_evidence() -> None:
    services = fake_services(settings=fake_settings(answer_blocks=2))
    await delegated(comparison("a", "b", "c"), services)
    request = comparison("a", "b")
    proofs = [hit("a", place, content="x" * 400) for place in range(30)]
    await leaves(
        services, state([*proofs, hit("c", 5)], [claim(f"{n}", one) for n, one in enumerate(proofs)])
    )
    result = await collected(request, services)
    assert {"a", "b", "c"} <= {one.doc_id for one in result.evidence.hits}
    assert len(result.evidence.hits) == 4


async def test_what_an_answer_is_written_from_stays_within_bounds() -> None:
    services = fake_services(settings=fake_settings(answer_blocks=50, subagents_reserve_tokens=6_000))
    request = comparison("a", "b")
    await delegated(request, services)
    await leaves(services, state([hit("c", place, content="word " * 200) for place in range(90)]))
    hits = (await collected(request, services)).evidence.hits
    assert estimated_tokens(hits) <= 3_600
    assert len(hits) <= 100


async def test_the_main_agents_own_evidence_is_never_cut_by_what_is_added() -> None:
    services = fake_services(settings=fake_settings(answer_blocks=1))
    request = delegation_request()
    await delegated(request, services)
    await leaves(services, state([hit("manual", 77)]))
    hits = (await collected(request, services)).evidence.hits
    assert hits == request.evidence.hits


@pytest.mark.parametrize(
    ("status", "codes", "warning"),
    [
        ("done", (), None),
        ("done", ("PROOF_MISSING",), None),
        ("done", ("CRASHED",), None),
        ("done", ("NOTHING_FOUND",), "Comparator: It found nothing relevant."),
        (
            "partial",
            ("TIME_OUT",),
            "Comparator: It ran out of time. What it had found by then was used.",
        ),
        ("partial", (), "Comparator: It did not finish. What it had found by then was used."),
        ("failed", ("MODEL_FAILED",), "Comparator: The model failed. What it had found by then was used."),
        ("failed", (), "Comparator: It failed. What it had found by then was used."),
        (
            "late",
            ("TIME_OUT",),
            "Comparator: It was stopped because it ran out of time. What it had found by then was used.",
        ),
    ],
)
async def test_what_went_wrong_is_told(
    status: ChildStatus, codes: tuple[WarningCode, ...], warning: str | None
) -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b")
    await delegated(request, services)
    await leaves(services, state([hit("a", 7)], status=status, warnings=codes))
    assert (await collected(request, services)).warnings == ((warning,) if warning else ())


async def test_a_child_that_was_cut_off_is_late_and_what_it_had_stored_is_used() -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b")
    delegation = await delegated(request, services)
    await leaves(services, state([hit("a", 7)], [claim("C", hit("a", 7))], status="running"))
    await past_its_time(services, delegation)
    result = await collected(request, services)
    assert [view.status for view in result.views] == ["late"]
    assert result.views[0].warnings == ("It was stopped because it ran out of time.",)
    assert result.evidence.hits[0].block_id == "a-7"
    assert "ran out of time" in result.warnings[0]
    assert "What it had found by then was used." in result.warnings[0]


async def test_children_that_leave_nothing_are_told_with_what_was_done_instead() -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b")
    delegation = await delegated(request, services)
    await past_its_time(services, delegation)
    result = await collected(request, services)
    assert result.evidence.hits == request.evidence.hits
    assert (result.findings, result.web) == ("", "")
    assert result.warnings == (
        "Comparator: It was stopped because it ran out of time. It had found nothing by then.",
        "The answer uses what was found before.",
    )


async def test_without_any_evidence_the_warning_says_that_there_was_none() -> None:
    services = fake_services(settings=fake_settings())
    request = delegation_request(evidence_changes={"hits": (), "records": ()})
    delegation = await delegated(request, services)
    # The fallback plan was a smaller profile, which yielded nothing either.
    assert delegation.decided.fallback_plan == "reduced_profile"
    none = delegation.decided.model_copy(update={"fallback_plan": "abstain_with_guidance"})
    await past_its_time(services, delegation.model_copy(update={"decided": none}))
    assert (await collected(request, services)).warnings[-1].startswith("Nothing else was found")


async def test_warnings_speak_the_language_of_the_answer() -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b", language="de")
    await delegated(request, services)
    await leaves(services, state([hit("a", 7)], status="partial", warnings=("TOKENS_SPENT",)))
    result = await collected(request, services)
    assert result.warnings == (
        "Vergleich: Die zulässige Textmenge ist erreicht. Die Ergebnisse bis dahin wurden verwendet.",
    )
    assert result.views[0].badge == "Vergleich"


async def test_a_state_that_cannot_be_read_is_worth_a_warning_and_no_answer() -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b")
    await delegated(request, services)
    spoiled = ValueLine(step=STEP, child=0, of=STEP, part=STATE, inline={"child_id": 7})
    await services.run_log.append(RUN, [spoiled])
    result = await collected(request, services)
    assert result.evidence.hits == request.evidence.hits
    assert result.warnings[0] == "Comparator: It failed. It had found nothing by then."


async def test_one_of_two_readers_is_enough() -> None:
    services, request = fake_services(settings=fake_settings()), summary("a", "b")
    delegation = await delegated(request, services)
    await leaves(services, state([hit("a", 7)], [claim("C", hit("a", 7))], profile="doc_reader"))
    await past_its_time(services, delegation)
    result = await collected(request, services)
    assert [view.status for view in result.views] == ["done", "late"]
    assert len(result.warnings) == 1
    assert "It had found nothing by then." in result.warnings[0]


async def test_slots_are_free_when_the_answer_is_written() -> None:
    services, request = fake_services(settings=fake_settings()), summary("a", "b")
    await delegated(request, services)
    assert (await read_control(services.settings, services.subagent_control)).waiting == 2
    await collected(request, services)
    assert (await read_control(services.settings, services.subagent_control)).waiting == 0


async def test_a_table_that_fails_keeps_no_answer_back() -> None:
    class Breaks(InMemoryControlStore):
        broken = False

        async def read(self) -> ControlState:
            if self.broken:
                raise DependencyError("The table is out of reach.")
            return await super().read()

    control = Breaks()
    services = fake_services(settings=fake_settings(), subagent_control=control)
    request = comparison("a", "b")
    await delegated(request, services)
    await leaves(services, state([hit("a", 7)]))
    control.broken = True
    assert len((await collected(request, services)).evidence.hits) == 5


async def test_a_listing_stays_a_listing() -> None:
    services = fake_services(settings=fake_settings())
    rows = {"hits": (), "records": (record("a"), record("b"))}
    listing = delegation_request(
        evidence_changes=rows, request_changes={"deep": True}, plan_changes={"intent": "exploratory"}
    )
    await delegated(listing, services)
    await leaves(services, state([hit("a", 7)], [claim("C", hit("a", 7))]))
    result = await collected(listing, services)
    assert result.evidence == listing.evidence
    assert result.findings == ""


async def test_the_web_is_shown_apart_and_is_no_evidence() -> None:
    services, request = fake_services(settings=fake_settings()), delegation_request()
    await delegated(request, services)
    pages = ("https://a.example/x", "https://b.example/y")
    await leaves(services, state(findings=[web_claim("It is 15 bar.", *pages)], profile="web_verifier"))
    result = await collected(request, services)
    assert result.web.startswith("**From outside sources, not from your documents:**")
    assert (
        "- It is 15 bar. ([a.example](https://a.example/x), [b.example](https://b.example/y))" in result.web
    )
    assert result.findings == ""
    assert result.evidence.hits == request.evidence.hits


async def test_a_step_that_did_not_delegate_has_nothing_to_collect() -> None:
    services, own = fake_services(), Evidence(hits=(hit("a"),))
    result = await collect(await journal_of(services, RUN), 9, own, services)
    assert (result.evidence, result.views, result.warnings) == (own, (), ())


async def test_people_see_who_worked_why_and_how_it_went() -> None:
    services, request = fake_services(settings=fake_settings()), comparison("a", "b")
    await delegated(request, services)
    findings = [
        claim("C", hit("a", 7)),
        claim("unproved"),
        claim("S", kind="section"),
    ]
    left = state([hit("a", 7), hit("z", 1)], findings, tokens=900, cost_usd=0.01, turns_ended=2)
    await leaves(
        services, left.model_copy(update={"uncertainty": ("See [here](https://bad.example). " + "x" * 400,)})
    )
    (view,) = (await collected(request, services)).views
    assert (view.badge, view.status, view.turns) == ("Comparator", "done", 2)
    assert (view.claims, view.proved, view.tokens) == (2, 1, 900)
    assert "A comparison of documents was asked for." in view.reasons
    assert set(view.doc_ids) == {"a", "b", "z"}
    (doubt,) = view.uncertainty
    assert "https://bad.example" not in doubt
    assert len(doubt) <= 301
