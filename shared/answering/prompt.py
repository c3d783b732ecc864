"""Builds the first messages of a model's turns: the system message and the question with its evidence.

The system message is the same for all questions of a deployment, and later messages are only appended, so the
endpoint can cache the prefix.
"""

from collections.abc import Sequence
from functools import cache
from typing import get_args

from shared.answering.planning import attached_files
from shared.answering.profiles import Profile, main_profile
from shared.conversations.window import conversation_element
from shared.evidence.document_prompt import (
    documents_with_blocks,
    documents_with_summaries,
    every_document,
    unreadable,
)
from shared.platform.language_models.models import Message
from shared.platform.prompts import element, load, render
from shared.runs.agents import AgentDefinition
from shared.runs.evidence import Evidence, MissingDocument
from shared.runs.models import RunRequest
from shared.runs.plan import QueryType, QuestionPlan
from shared.tools.semantic_search import SemanticSearch

ORGANISATION = "an organisation"
DOCUMENT_QUESTIONS: frozenset[QueryType] = frozenset({"LISTING", "METADATA_SEARCH"})


def first_messages(
    request: RunRequest,
    plan: QuestionPlan,
    evidence: Evidence,
    organisation: str = ORGANISATION,
    findings: str = "",
    *,
    advice: str = "",
    files: Sequence[str] = (),
) -> tuple[Message, Message]:
    """Return the system message with the rules, and the user message with the question and its evidence.

    Args:
        organisation: name of the documents' owner. It comes from a setting, so it is not escaped.
        findings: `<findings>` of sub-agents; empty = none.
        advice: advice of the delegation policy; empty = none.
        files: names of the thread's own files.
    """
    agent = request.agent
    has_documents = agent is None or SemanticSearch.name in agent.tools
    # The model needs these to understand the question. Ids, groups and roles must not be added.
    user_fields = {"asker_name": request.user.name, "asker_department": request.user.department}
    question = plan.standalone_question or request.question
    asker = [element(tag, value) for tag, value in user_fields.items() if value]
    user = "\n".join(
        part
        for part in (
            conversation_element(request.conversation),
            element("question", question),
            # The rewritten question may lack phrases such as "auf Deutsch bitte" or "as a table".
            element("as_asked", request.question) if question != request.question else "",
            element("query_type", plan.query_type) if has_documents else "",
            element("missing_subject", plan.missing_subject) if plan.missing_subject.strip() else "",
            element("today", request.today.isoformat()),
            *asker,
            attached_files(files) if has_documents else "",
            documents_xml(evidence) if has_documents else "",
            every_document(plan.every, evidence.every, evidence.doc_ids_shown) if evidence.every else "",
            *(element("table", card.text) for card in evidence.tables),
            *(_missing(document) for document in evidence.missing),
            *(element("unreadable_document", unreadable(record)) for record in evidence.unreadable),
            *((load("answering", "findings"), findings) if findings else ()),
            *([element("advice", advice)] if advice else ()),
            # The tags in this text are not escaped, because the model must write them literally.
            ""
            if request.proof_is_optional
            else f"<output_rules>{load('answering', 'output_rules')}</output_rules>",
        )
        if part
    )
    system = system_prompt(main_profile(agent), organisation, agent)
    return Message(role="system", text=system), Message(role="user", text=user)


def system_prompt(
    profile: Profile, organisation: str = ORGANISATION, agent: AgentDefinition | None = None
) -> str:
    """Return the system message of an agent: the prompt templates of its profile, filled in with values.

    Args:
        agent: the agent's definition, if it comes from a file.
    """
    values = {
        "organisation": organisation,
        "type_rules": _type_rules(),
        "rules": load("answering", "report_rules"),
    }
    if agent is not None:
        values |= {"name": agent.name, "instructions": agent.instructions}
    return "\n".join(render(load("answering", name), values) for name in profile.prompts)


@cache
def _type_rules() -> str:
    """Return the answer rules for each query type, as one list item per type."""
    types = [name for name in get_args(QueryType) if name != "CONVERSATION"]
    return "\n".join(f"- {name}: {load('answering', f'rules/{name}')}" for name in types)


def documents_xml(evidence: Evidence) -> str:
    """Render the evidence as `<documents>` with its blocks, or with document summaries if there are no
    blocks.
    """
    if not evidence.blocks:
        return documents_with_summaries(
            evidence.records, evidence.total, evidence.filters, evidence.unmatched
        )
    records = {record.doc_id: record for record in evidence.records}
    return documents_with_blocks(evidence.blocks, records, evidence.whole)


def _missing(document: MissingDocument) -> str:
    nearest = f" Nearest names: {', '.join(document.nearest)}." if document.nearest else ""
    return element("missing_document", f"{document.reference}.{nearest}")
