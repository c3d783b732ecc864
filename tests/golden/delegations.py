"""Scenarios with sub-agents that the policy or the model requests: successful, failing or late."""

from typing import Any

from shared.platform.errors import CallTimeoutError, DependencyError
from tests.golden.answers import PRESSURE, PROVED
from tests.golden.scenario import plan, scenario
from tests.golden.scripted_model import Hang
from tests.golden.stage import Stage
from tests.golden.streams import ESTIMATED
from tests.golden.tools import calls

COMPARE = "Compare the revenue of both reports."
ROSE = (
    '<answer>Revenue rose from 48 <cite doc_id="report-2023" quote="Revenue was 48 million euros."/> '
    'to 53 million euros. <cite doc_id="report-2024" quote="Revenue was 53 million euros."/>'
)
READY = "I have what I need."
NAMED = {"standalone_question": COMPARE, "document_references": ["report 2023", "report 2024"]}
BOTH = plan(query_type="COMPARISON", intent="compare_docs", **NAMED)
DIFFERENCE = {
    "dimension": "revenue",
    "sides": [
        {"doc_id": "report-2023", "statement": "48 million", "quote": "Revenue was 48 million euros."},
        {"doc_id": "report-2024", "statement": "53 million", "quote": "Revenue was 53 million euros."},
    ],
}
COMPARED = {"similarities": [], "differences": [DIFFERENCE], "conflicts": [], "open_dimensions": ["profit"]}
EVIDENCE = {
    "claims": [
        {
            "text": "The pump runs at 15 bar.",
            "confidence": 0.9,
            "proofs": [{"doc_id": "manual", "quote": "The pump runs at 15 bar."}],
        },
        {"text": "It weighs 12 kg.", "confidence": 0.2, "proofs": [{"doc_id": "manual", "quote": "12 kg"}]},
    ]
}
DELEGATE = calls(("delegate", {"task": "Find the proof of the pressure.", "profile": "evidence_builder"}))
AT_ONCE: dict[str, Any] = {"subagents_enabled": True, "subagents_child_retry_backoff_ms": 0}
PAST_DEADLINE_S = 30.0  # more than the 15 s in which a sub-agent must end


@scenario(inline=True, **AT_ONCE)
async def compared_by_sub_agent(stage: Stage) -> None:
    """Compare two documents in deep mode, which assigns the comparison to a sub-agent."""
    stage.model.script(plan=[BOTH], report=[COMPARED], answer=[ROSE])
    await stage.ask(COMPARE, deep=True)


@scenario(inline=True, **AT_ONCE)
async def two_sub_agents(stage: Stage) -> None:
    """Let two sub-agents read one document each, concurrently."""

    def report(text: str) -> dict[str, Any]:
        amount, doc_id = ("48", "report-2023") if "was 48" in text else ("53", "report-2024")
        proof = {"doc_id": doc_id, "quote": f"Revenue was {amount} million euros."}
        section = {"heading": doc_id, "summary": f"Revenue was {amount} million euros."}
        claim = {"text": f"Revenue was {amount} million euros.", "proofs": [proof]}
        return {"sections": [section], "claims": [claim], "uncertainty": []}

    stage.model.script(
        plan=[plan(query_type="DOCUMENT_SUMMARY", intent="doc_summary", **NAMED)],
        report=[report, report],
        answer=[ROSE],
    )
    await stage.ask("Summarise both reports.", deep=True)


@scenario(inline=True, **AT_ONCE)
async def delegated_by_model(stage: Stage) -> None:
    """Let the model delegate part of the question to a sub-agent, which first searches."""
    search = calls(("rag_semantic_search", {"query": "pump pressure limit"}))
    stage.model.script(
        plan=[plan(intent="procedural")],
        answer=[DELEGATE, PROVED],
        sub_agent=[search, READY],
        report=[EVIDENCE],
    )
    await stage.ask(PRESSURE)


@scenario(inline=True, **AT_ONCE)
async def failed_sub_agent(stage: Stage) -> None:
    """Answer without the sub-agent, because its model is unreachable."""
    down = DependencyError("The model is out of reach.")
    stage.model.script(plan=[BOTH], report=[down] * 3, answer=[ROSE])
    await stage.ask(COMPARE, deep=True)


@scenario(inline=True, **AT_ONCE)
async def unreadable_report(stage: Stage) -> None:
    """Answer without the sub-agent, because its report is unreadable."""
    stage.model.script(plan=[BOTH], report=["I'd rather not."] * 3, answer=[ROSE])
    await stage.ask(COMPARE, deep=True)


@scenario(inline=True, **AT_ONCE)
async def sub_agent_timeout(stage: Stage) -> None:
    """Let a sub-agent write its report immediately after a model call timed out."""
    stage.hide(ESTIMATED)
    late = CallTimeoutError("The model took too long.")
    stage.model.script(
        plan=[plan(intent="procedural")],
        answer=[DELEGATE, PROVED],
        sub_agent=[late],
        report=[EVIDENCE],
    )
    await stage.ask(PRESSURE)


@scenario(slow=True, **AT_ONCE)
async def late_sub_agent(stage: Stage) -> None:
    """Answer without the sub-agent, because it has missed its deadline."""
    stage.hide(ESTIMATED)
    stage.model.script(plan=[BOTH], report=[Hang()], answer=[ROSE])
    run_id = await stage.begin(COMPARE, deep=True)
    await stage.until_hanging()
    stage.durable.clock.advance(PAST_DEADLINE_S)
    await stage.end_of(run_id, COMPARE)


@scenario(**AT_ONCE)
async def cancelled_sub_agent(stage: Stage) -> None:
    """Cancel a run while its sub-agent works."""
    stage.model.script(plan=[BOTH], report=[Hang()])
    run_id = await stage.begin(COMPARE, deep=True)
    await stage.until_hanging()
    await stage.cancel(run_id)
    await stage.end_of(run_id, COMPARE)
