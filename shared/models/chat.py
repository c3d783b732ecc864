"""Bodies of the chat and run endpoints."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from shared.models.base import Model
from shared.models.clarification import Clarification
from shared.models.feedback import Feedback
from shared.models.plan import TodoItem
from shared.models.runs import RunAnswer, RunStatus
from shared.models.subagents import SubagentView

ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"


class ChatRequest(Model):
    """A question. Its length limit is the setting MAX_QUESTION_CHARS."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="The question, in any language."
    )
    thread_id: str | None = Field(default=None, pattern=ID_PATTERN, description="Thread to go on with.")
    project_id: str | None = Field(default=None, max_length=128, description="Limit to one project.")
    doc_ids: tuple[str, ...] = Field(default=(), max_length=100, description="Limit to these documents.")
    deep: bool = Field(default=False, description="Ask for deeper work: sub-agents, where there is cause.")
    stream: bool = Field(default=True, description="Server-sent events (default), or one JSON answer.")


class RunView(Model):
    """A run as its owner sees it.

    `answer` is there once the run is completed, `clarification` while it waits for its owner to choose,
    `sub_agents` as soon as there are any, also while they work.
    """

    run_id: str
    thread_id: str
    question: str
    status: RunStatus
    created_at: datetime
    finished_at: datetime | None = None
    error: str | None = None
    error_type: str | None = None
    todo: tuple[TodoItem, ...] = ()
    answer: RunAnswer | None = None
    sub_agents: tuple[SubagentView, ...] = ()
    clarification: Clarification | None = None
    feedback: Feedback | None = None
    events_url: str
