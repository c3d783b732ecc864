"""Scenarios in which the model calls tools."""

import json
import re
from typing import Any

from shared.platform.language_models.models import CallLimits, ModelTurn, ToolCall
from shared.tools.models import WebHit
from shared.tools.web_search import WebSearch
from tests.contract.ingestion.driving import drop, ingest
from tests.contract.ingestion.models import METADATA
from tests.golden.answers import PRESSURE, PROVED
from tests.golden.scenario import plan, scenario
from tests.golden.stage import Stage

SALES = "Region,Revenue\nNorth,120\nSouth,80\nNorth,10\n"
BY_REGION = "SELECT region, SUM(revenue) AS total FROM {name} GROUP BY region ORDER BY total DESC"
_TABLE = re.compile(r'"table_id": "([^"]+)", "name": "([^"]+)"')
AGENT = """---
name: mechanic
description: Knows pumps.
tools: [rag_semantic_search]
access: [engineering]
proof: optional
---
You are a mechanic. Be brief.
"""


class FixedSearch(WebSearch):
    """A web search that returns the same page for every query."""

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        """Return the fixed page."""
        return [WebHit(url="https://pumps.example/a", title="Pumps", text="Pumps may run at 16 bar.")]


def calls(*requests: tuple[str, dict[str, Any]], text: str = "") -> ModelTurn:
    """Return a turn that calls tools."""
    return ModelTurn(
        text=text,
        tool_calls=tuple(
            ToolCall(call_id=f"c{place}-{name}", name=name, arguments=json.dumps(arguments))
            for place, (name, arguments) in enumerate(requests)
        ),
    )


@scenario(inline=True)
async def second_search(stage: Stage) -> None:
    """Search a second time, after a few words to the reader."""
    search = calls(("rag_semantic_search", {"query": "revenue"}), text="I look at the reports, too.")
    stage.model.script(plan=[plan()], answer=[search, PROVED])
    await stage.ask(PRESSURE)


@scenario(inline=True)
async def parallel_calls(stage: Stage) -> None:
    """Call two tools concurrently: an existing tool with invalid arguments, and a tool that doesn't exist."""
    both = calls(
        ("rag_semantic_search", {"query": "revenue", "top_k": "many"}),
        ("delete_all", {}),
        ("rag_get_document", {"doc_id": "report-2023"}),
    )
    stage.model.script(plan=[plan()], answer=[both, PROVED])
    await stage.ask(PRESSURE)


@scenario(inline=True)
async def pages_read(stage: Stage) -> None:
    """Read pages of a readable document, and then of a forbidden one."""
    await stage.world.add("secret", "The valve opens at 99 bar.", readers=("board",))
    reads = calls(
        ("read_pages", {"doc_id": "manual", "first": 1, "last": 2}),
        ("read_pages", {"doc_id": "secret", "first": 1, "last": 1}),
    )
    stage.model.script(plan=[plan()], answer=[reads, PROVED])
    await stage.ask(PRESSURE)


@scenario(inline=True)
async def memory_recalled(stage: Stage) -> None:
    """Search the memory of earlier questions, which is still empty."""
    recall = calls(("recall_memory", {"query": "pumps"}))
    stage.model.script(plan=[plan()], answer=[recall, PROVED])
    await stage.ask("What did I ask about pumps last week?")


@scenario(inline=True)
async def too_many_turns(stage: Stage) -> None:
    """Call tools until no turns are left."""
    searches = [calls(("rag_semantic_search", {"query": f"part {number}"})) for number in range(5)]
    stage.model.script(plan=[plan()], answer=[*searches, PROVED])
    await stage.ask(PRESSURE)


@scenario(inline=True)
async def table_query(stage: Stage) -> None:
    """Calculate with the rows of a file, and check every number in the answer."""
    answer = '<answer>The North leads with 130 <cite result="q1"/>, the South has 80 <cite result="q1"/>.'
    await _ask_by_region(stage, answer)


@scenario(inline=True)
async def wrong_number(stage: Stage) -> None:
    """Calculate, and state a number in the answer that differs from the result."""
    answer = '<answer>The North leads with 131 <cite result="q1"/>. The South has 80 <cite result="q1"/>.'
    await _ask_by_region(stage, answer)


@scenario(inline=True, agent_tools="python")
async def python_program(stage: Stage) -> None:
    """Run a Python program."""
    sums = calls(("python", {"code": "sum(prices) / len(prices)", "inputs": {"prices": [10, 20, 60]}}))
    stage.model.script(plan=[plan()], answer=[sums, "<answer>The average is 30."])
    await stage.ask("What is the average of 10, 20 and 60?")


@scenario(parts={"web_search": FixedSearch}, agent_tools="web_search", web_consent="ask")
async def web_search_allowed(stage: Stage) -> None:
    """Allow a web search when the run asks for consent."""
    await _ask_the_web(stage, 1)


@scenario(parts={"web_search": FixedSearch}, agent_tools="web_search", web_consent="ask")
async def web_search_refused(stage: Stage) -> None:
    """Refuse a web search when the run asks for consent."""
    await _ask_the_web(stage, 2)


@scenario(inline=True)
async def agent_file(stage: Stage) -> None:
    """Ask an agent that is defined in a file."""
    (stage.folder / "mechanic.agent.md").write_text(AGENT, encoding="utf-8")
    search = calls(("rag_semantic_search", {"query": "pump pressure"}))
    stage.model.script(plan=[plan()], answer=[search, f"{PROVED} That is not much."])
    await stage.ask(PRESSURE, agent="mechanic")


async def _ask_by_region(stage: Stage, answer: str) -> None:
    await drop(stage.services, "sales.csv", SALES, {"acl": "anna"})
    stage.model.script(metadata=[METADATA.model_dump()])
    result = await ingest(stage.services, "sales.csv")
    assert result.outcome == "ready", result
    question = "Revenue by region?"

    def query(prompt: str) -> ModelTurn:
        match = _TABLE.search(prompt)
        assert match, prompt
        table_id, name = match.groups()
        return calls(("run_sql", {"sql": BY_REGION.format(name=name), "table_ids": [table_id]}))

    table_plan = plan(standalone_question=question, needs_tables=True, search_queries=[], todo=[])
    stage.model.script(plan=[table_plan], answer=[query, answer])
    await stage.ask(question)


async def _ask_the_web(stage: Stage, choice: int) -> None:
    search = calls(("web_search", {"query": "pump pressure standard"}))
    stage.model.script(plan=[plan()], answer=[search, PROVED])
    question = "At what pressure may pumps run?"
    run_id = await stage.begin_and_wait(question)
    await stage.reply(run_id, choice=choice)
    await stage.end_of(run_id, question)
