"""Tool use of sub-agents: one call for what the passages at hand do not hold, or none.

A call that was made is not made again, whatever it brought.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.model_server.answers.rows import names_of_documents
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import Document
from local.model_server.protocol.replies import Reply, ToolCall
from local.model_server.protocol.requests import ChatRequest, FunctionSpec
from local.model_server.reports.assignment import Assignment, read_assignment
from local.model_server.reports.gaps import find_gaps
from local.model_server.text.asked import asked_of
from local.model_server.text.aspects import subject_of
from local.model_server.tools import arguments_for

if TYPE_CHECKING:
    from pydantic import JsonValue

RETRIEVE = "retrieve_documents"
WEB = "web_search"
METADATA = "query_metadata"
MAX_QUERY_CHARS = 200
READY = "READY"  # the word that the prompts ask for when nothing more is needed
_FIELDS = {
    "author": ("wrote", "author", "authored", "verfasser", "autor", "geschrieben"),
    "upload_date": ("uploaded", "published", "hochgeladen", "veröffentlicht", "erschienen"),
    "department": ("department", "abteilung"),
}


@dataclass(frozen=True)
class Lookup:
    """One thing to look for, in some documents or in all."""

    tool: str
    query: str
    doc_ids: tuple[str, ...] = ()


def take_turn(request: ChatRequest, embedder: EmbeddingService) -> Reply:
    """A call of the first tool that is needed and may be used; else READY."""
    assignment = read_assignment(request.messages, embedder)
    tools = {tool.function.name: tool.function for tool in request.tools}
    made = _calls_made(request)
    for lookup in _wanted(assignment):
        function = tools.get(lookup.tool)
        if function is None or request.tool_choice == "none":
            continue
        call = ToolCall(function.name, _arguments(function, lookup))
        if _key(call.name, call.arguments) not in made:
            return Reply(tool_call=call, finish_reason="tool_calls")
    return Reply(READY)


def _wanted(assignment: Assignment) -> Iterator[Lookup]:
    """What is lacking, the most telling first: whole documents, then things asked about."""
    # Without the names of documents, which a search within them would look for everywhere.
    subject = subject_of(asked_of(assignment.question), names_of_documents(assignment.documents)).strip(" ?.")
    if not subject:
        return
    if not assignment.pages:
        yield Lookup(WEB, subject)
    gaps = find_gaps(assignment)
    if gaps.unread:
        yield Lookup(RETRIEVE, subject, _ids(gaps.unread))
    elif not assignment.read and not assignment.pages:
        yield Lookup(RETRIEVE, subject)
    if assignment.read:
        yield from (Lookup(RETRIEVE, aspect, assignment.targets) for aspect in gaps.open_aspects)
    if len(assignment.targets) > 1 and gaps.silent:
        yield Lookup(RETRIEVE, subject, _ids(gaps.silent))
    if lacking := _without_field(assignment):
        yield Lookup(METADATA, subject, _ids(lacking))


def _ids(documents: Sequence[Document]) -> tuple[str, ...]:
    return tuple(document.doc_id for document in documents)


def _without_field(assignment: Assignment) -> list[Document]:
    """The documents whose author, date or department is asked for and not given."""
    words = set(assignment.question.lower().replace("?", " ").split())
    asked = [name for name, cues in _FIELDS.items() if words & set(cues)]
    return [one for one in assignment.documents if any(not one.attributes.get(name) for name in asked)]


def _arguments(function: FunctionSpec, lookup: Lookup) -> str:
    """The tool's own parameters: the query, and the documents in whichever way it takes them."""
    arguments = arguments_for(function, _cut(lookup.query))
    properties = function.parameters.get("properties")
    names = set(properties) if isinstance(properties, dict) else set()
    ids: list[JsonValue] = list(lookup.doc_ids)
    if ids and (several := names & {"doc_ids", "document_ids"}):
        arguments[min(several)] = ids
    elif ids and (single := names & {"doc_id", "document_id"}):
        arguments[min(single)] = ids[0]
    elif ids and "filters" in names:
        arguments["filters"] = {"doc_id": ids}
    return json.dumps(arguments, ensure_ascii=False)


def _cut(query: str) -> str:
    """No longer than a search takes, cut at a word."""
    return query if len(query) <= MAX_QUERY_CHARS else query[:MAX_QUERY_CHARS].rpartition(" ")[0]


def _calls_made(request: ChatRequest) -> set[tuple[str, str]]:
    called = (call.function for message in request.messages for call in message.tool_calls)
    return {_key(function.name, function.arguments) for function in called}


def _key(name: str, arguments: str) -> tuple[str, str]:
    """The same call in whatever order and spacing its arguments are written."""
    try:
        return name, json.dumps(json.loads(arguments), sort_keys=True)
    except json.JSONDecodeError:
        return name, arguments
