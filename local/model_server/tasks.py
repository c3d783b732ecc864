"""What a request asks for, by name: for the statistics, and for the knob `only`. Pure."""

from local.model_server.answers import asked_with_documents
from local.model_server.prompt_reader import has_element
from local.model_server.protocol.requests import ChatRequest
from local.model_server.reports import REPORT_HANDLERS
from local.model_server.schemas import HANDLERS

SUB_AGENT_TURN = "sub_agent"
TASK_NAMES = frozenset({*HANDLERS, SUB_AGENT_TURN, "documents", "tools", "vision", "plain", "embeddings"})
TASK_GROUPS: dict[str, tuple[str, ...]] = {
    "plan": ("QuestionPlan",),
    "answer": ("documents",),
    SUB_AGENT_TURN: (SUB_AGENT_TURN, *REPORT_HANDLERS),
}


def task_of(request: ChatRequest) -> str:
    """The name of a chat request's task: its schema's, or by what it holds."""
    shape = request.response_format
    if shape and shape.json_schema:
        return shape.json_schema.name
    if asked_with_documents(request):
        return "documents"
    if request.tools:
        asked = (message for message in request.messages if message.role == "user")
        return SUB_AGENT_TURN if any(has_element(message.text, "task") for message in asked) else "tools"
    message = request.last_user_message
    if message.image_urls:
        return "vision"
    return "documents" if has_element(message.text, "documents") else "plain"
