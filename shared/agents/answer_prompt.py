"""The prompt of the agent that answers from documents. It replaces a generic agent's prompt whole.

Its parameters are described in `prompts/README.md`. Rules stand in the system message; the question, who
asks, the date and the documents are data in the user message, each escaped.
"""

from collections.abc import Sequence

from shared.agents.prompt_files import load
from shared.core.prompts import documents_with_blocks, documents_with_summaries, element, render
from shared.models.identity import UserContext
from shared.models.plan import QueryType, QuestionPlan
from shared.models.prompts import Prompt
from shared.models.runs import RunRequest
from shared.models.working import Evidence

DOCUMENT_QUESTIONS: frozenset[QueryType] = frozenset({"LISTING", "METADATA_SEARCH"})
_FOUND_BY_CONTENT = ("rag_semantic_search (passages and figures by meaning and by words)",)
_FOUND_BY_METADATA = ("rag_list_documents (documents by their attributes)",)


def answer_prompt(
    request: RunRequest, plan: QuestionPlan, documents: str, organisation: str, findings: str = ""
) -> Prompt:
    """The prompt for one answer.

    Args:
        documents: what `documents_xml` made of the evidence.
        organisation: whose documents these are: a name from a setting, no data.
        findings: `<findings>` of sub-agents (core/delegation_findings.py); empty = there are none.
    """
    is_about_documents = plan.query_type in DOCUMENT_QUESTIONS
    system = rag_system_prompt(
        organisation, plan.query_type, _FOUND_BY_METADATA if is_about_documents else _FOUND_BY_CONTENT
    )
    user = "\n".join(
        (
            element("question", plan.standalone_question or request.question),
            element("query_type", plan.query_type),
            element("today", request.created_at.date().isoformat()),
            *_asker(request.user),
            documents,
            *([findings] if findings else ()),
            element("output_rules", load("output_rules")),
        )
    )
    if findings:
        system = f"{system}\n\n{load('findings')}"
    return Prompt(name="answer", system=system, user=user)


def rag_system_prompt(organisation: str, query_type: QueryType, tools: Sequence[str]) -> str:
    """The rules for a question of one type.

    Args:
        tools: what found the material, each with what it does.
    """
    return render(
        load("answer"),
        {
            "organisation": organisation,
            "type_rules": load(f"rules/{query_type}"),
            "tools": "; ".join(tools),
        },
    )


def documents_xml(evidence: Evidence) -> str:
    """`<documents>`: blocks where there are any, else descriptions of documents."""
    if not evidence.hits:
        return documents_with_summaries(evidence.records, evidence.total)
    return documents_with_blocks(evidence.hits, {record.doc_id: record for record in evidence.records})


def _asker(user: UserContext) -> list[str]:
    """What helps to understand the question; never an id, a group or a role."""
    known = {"asker_name": user.name, "asker_department": user.department}
    return [element(tag, value) for tag, value in known.items() if value]
