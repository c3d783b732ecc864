"""Checks of every registered tool: each person calls it for all documents and must get only permitted
results.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from shared.platform.hashing import digest
from shared.tools.base import ToolResult
from shared.tools.registry import TOOLS, bound_tool
from shared.wiring import Services
from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import ABSENT, PAPERS, PEOPLE, QUESTION, Person, foreign, leaked, readable
from tests.e2e.access.probes import keeps_to_own_runs

ToolProbe = Callable[[AccessCorpus, Services, str], Awaitable[None]]


async def call(services: Services, person: Person, tool: str, **arguments: Any) -> ToolResult:
    """Call a tool, check that the result contains no document forbidden to the person, and return the
    result.
    """
    result = await bound_tool(tool, services, person.context).execute(**arguments)
    assert leaked(person, str(result)) == [], (person, tool, arguments)
    return result


def keys(world: AccessCorpus, rows: list[dict[str, Any]]) -> set[str]:
    keys_by_id = {world.doc_id(key): key for key in PAPERS}
    return {keys_by_id[one["doc_id"]] for one in rows if one["doc_id"] in keys_by_id}


async def searches(world: AccessCorpus, services: Services, name: str) -> None:
    person = PEOPLE[name]
    result = await call(services, person, "rag_semantic_search", query=QUESTION, top_k=50)
    assert keys(world, result["results"]) == readable(person), name
    aimed = [world.doc_id(paper.key) for paper in foreign(person)]
    nothing = await call(services, person, "rag_semantic_search", query="zq", filters={"doc_id": aimed})
    assert nothing == {"success": True, "results": [], "result_count": 0}


async def lists(world: AccessCorpus, services: Services, name: str) -> None:
    person = PEOPLE[name]
    listed = await call(services, person, "rag_list_documents", limit=100)
    assert keys(world, listed["documents"]) == readable(person), name
    assert listed["count"] == len(listed["documents"])
    hidden = await call(services, person, "rag_list_documents", filters={"project_id": "hidden"})
    assert hidden["count"] == (1 if "project" in readable(person) else 0)


async def gets(world: AccessCorpus, services: Services, name: str) -> None:
    person = PEOPLE[name]
    absent = await call(services, person, "rag_get_document", doc_id=ABSENT)
    assert absent["type"] == "DocumentNotFoundError"
    for key in PAPERS:
        doc_id = world.doc_id(key)
        result = await call(services, person, "rag_get_document", doc_id=doc_id)
        assert result["success"] == (key in readable(person)), (name, key)
        if not result["success"]:
            assert str(result).replace(doc_id, "ID") == str(absent).replace(ABSENT, "ID")


async def reads(world: AccessCorpus, services: Services, name: str) -> None:
    """Check that the result for a forbidden document equals the result for a missing document."""
    person = PEOPLE[name]
    absent = await call(services, person, "read_pages", doc_id=ABSENT, last=10)
    assert absent["type"] == "DocumentNotFoundError"
    for key in PAPERS:
        doc_id = world.doc_id(key)
        result = await call(services, person, "read_pages", doc_id=doc_id, last=10)
        if key in readable(person):
            assert keys(world, result["results"]) == {key}, (name, key)
        else:
            assert str(result).replace(doc_id, "ID") == str(absent).replace(ABSENT, "ID"), (name, key)


async def views(world: AccessCorpus, services: Services, name: str) -> None:
    """Check that the result for a forbidden picture equals the result for a missing picture."""
    person = PEOPLE[name]
    absent = await call(services, person, "view_figure", block_id="absent")
    for key, ids in world.block_ids.items():
        results = [await call(services, person, "view_figure", block_id=one) for one in ids]
        assert key in readable(person) or all(result == absent for result in results), (name, key)
    mine = [one for key, ids in world.block_ids.items() if key in readable(person) for one in ids]
    seen = [await call(services, person, "view_figure", block_id=one) for one in mine]
    assert all(result["success"] or result == absent for result in seen), name


async def looks_up(world: AccessCorpus, services: Services, name: str) -> None:
    person = PEOPLE[name]
    result = await call(services, person, "rag_metadata_search", query="turbine", limit=100)
    assert keys(world, result["documents"]) == readable(person), name
    marks = " ".join(paper.mark for paper in foreign(person))
    aimed = await call(services, person, "rag_metadata_search", query=marks, limit=100)
    assert keys(world, aimed["documents"]) <= readable(person)


async def counts(world: AccessCorpus, services: Services, name: str) -> None:
    """Check that counts and values come only from documents that the person may read."""
    person = PEOPLE[name]
    listed = await call(services, person, "rag_list_documents", limit=100)
    counted = await call(services, person, "rag_facets", limit=100)
    assert counted["document_count"] == listed["count"], name
    projects = {value["value"] for value in counted["facets"]["project_id"]}
    assert ("hidden" in projects) == ("project" in readable(person)), name
    for values in counted["facets"].values():
        assert all(value["count"] <= listed["count"] for value in values)


async def judges(world: AccessCorpus, services: Services, name: str, tool: str) -> None:
    """Call the tool with the ids of all blocks, including blocks that only other people can find."""
    person = PEOPLE[name]
    every = world.block_ids
    theirs = [block_id for key, ids in every.items() if key in readable(person) for block_id in ids]
    result = await call(
        services, person, tool, query=QUESTION, block_ids=[one for ids in every.values() for one in ids]
    )
    assert result["success"], result
    assert keys(world, result["results"]) <= readable(person), name
    assert {hit["block_id"] for hit in result["results"]} <= set(theirs), name
    assert result.get("graded_count", len(theirs)) == len(theirs), name


async def reranks(world: AccessCorpus, services: Services, name: str) -> None:
    await judges(world, services, name, "rerank")


async def grades(world: AccessCorpus, services: Services, name: str) -> None:
    await judges(world, services, name, "grade")


async def recalls(world: AccessCorpus, services: Services, name: str) -> None:
    person = PEOPLE[name]
    result = await call(services, person, "recall_memory", query=QUESTION)
    run_ids = {memory["memory_id"] for memory in result["memories"]}
    keeps_to_own_runs(world, name, run_ids)


async def lists_tables(world: AccessCorpus, services: Services, name: str) -> None:
    person = PEOPLE[name]
    for query in ("", "calibration interval of the turbine in days", PAPERS["table"].mark):
        listed = await call(services, person, "list_tables", query=query, limit=100)
        assert keys(world, listed["tables"]) == {"table"} & readable(person), (name, query)


async def queries_a_table(
    world: AccessCorpus, services: Services, name: str, tool: str, **arguments: str
) -> None:
    """Check that the result for a forbidden table equals the result for a missing table."""
    person, table_id, absent_id = PEOPLE[name], f"{world.doc_id('table')}.1", f"{ABSENT}.1"
    result = await call(services, person, tool, table_ids=[table_id], **arguments)
    absent = await call(services, person, tool, table_ids=[absent_id], **arguments)
    assert absent["type"] == "DocumentNotFoundError"
    if "table" not in readable(person):
        assert str(result).replace(table_id, "ID") == str(absent).replace(absent_id, "ID"), name


async def runs_sql(world: AccessCorpus, services: Services, name: str) -> None:
    reader = PEOPLE["department"].context
    listed = await bound_tool("list_tables", services, reader).execute()
    (table,) = [one for one in listed["tables"] if one["doc_id"] == world.doc_id("table")]
    sql = f"SELECT sum(days) FROM {table['name']}"
    await queries_a_table(world, services, name, "run_sql", sql=sql)
    result = await bound_tool("run_sql", services, reader).execute(sql=sql, table_ids=[table["table_id"]])
    assert result["rows"] == [[PAPERS["table"].days]]


async def asks_tables(world: AccessCorpus, services: Services, name: str) -> None:
    await queries_a_table(world, services, name, "query_structured_data", question=QUESTION)
    result = await call(services, PEOPLE[name], "query_structured_data", question=QUESTION)
    assert not result["success"]  # the local model can't write SQL


async def leaks_nothing(world: AccessCorpus, services: Services, name: str, tool: str) -> None:
    """Call a tool that reads no documents, and check its result for leaks."""
    await call(services, PEOPLE[name], tool, **json.loads(TOOLS[tool].example))


def with_workspaces(services: Services) -> Services:
    return services.using(settings=services.settings.changed(agent_tools="file_read,file_write"))


async def writes_files(world: AccessCorpus, services: Services, name: str) -> None:
    off = await call(services, PEOPLE[name], "file_write", path="notes.md", text=name)
    assert off["type"] == "ConfigurationError"
    on = with_workspaces(services)
    result = await call(on, PEOPLE[name], "file_write", path="notes.md", text=name, mode="replace")
    assert result["success"], result
    read = await call(on, PEOPLE[name], "file_read", path="notes.md")
    assert read["text"] == name


async def reads_files(world: AccessCorpus, services: Services, name: str) -> None:
    """Check that the result for another person's workspace file equals the result for a missing file."""
    on, own = with_workspaces(services), f"only-{digest(name)[:8]}.md"
    await call(on, PEOPLE[name], "file_write", path=own, text="mine", mode="replace")
    for other in PEOPLE.keys() - {name}:
        foreign_file = await call(on, PEOPLE[other], "file_read", path=own)
        absent = await call(on, PEOPLE[other], "file_read", path="absent.md")
        assert absent["type"] == "DocumentNotFoundError"
        assert str(foreign_file).replace(own, "FILE") == str(absent).replace("absent.md", "FILE"), other


TOOL_PROBES: Mapping[str, ToolProbe] = {
    "rag_semantic_search": searches,
    "rag_list_documents": lists,
    "rag_get_document": gets,
    "read_pages": reads,
    "view_figure": views,
    "rag_metadata_search": looks_up,
    "rag_facets": counts,
    "rerank": reranks,
    "grade": grades,
    "recall_memory": recalls,
    "file_read": reads_files,
    "file_write": writes_files,
    "list_tables": lists_tables,
    "query_structured_data": asks_tables,
    "run_sql": runs_sql,
}


def probe_of(tool: str) -> ToolProbe:
    return TOOL_PROBES.get(tool) or partial(leaks_nothing, tool=tool)
