"""A run: one question on its way to an answer."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.citations import Citation, Conflict
from shared.models.conversation import Conversation
from shared.models.feedback import Feedback
from shared.models.figures import AnswerFigure
from shared.models.identity import UserContext
from shared.models.plan import TodoItem
from shared.models.subagents import SubagentView

RunStatus = Literal["running", "waiting", "completed", "failed", "cancelled"]


class RunRequest(Model):
    """Input of the `answer_question` orchestration: all that a run needs to know.

    Attributes:
        run_id: also the orchestration's instance id and the name of the run log.
        doc_ids, project_id: limits that the caller set on retrieval; empty and None mean no limit.
        created_at: when the question arrived, with zone.
        conversation: what was said before in the thread.
        deep: deeper work was asked for, which may take longer and cost more.
    """

    run_id: str
    thread_id: str
    user: UserContext
    question: str
    project_id: str | None = None
    doc_ids: tuple[str, ...] = ()
    created_at: datetime
    conversation: Conversation = Conversation()
    deep: bool = False

    def with_rights_of(self, asker: UserContext | None) -> "RunRequest":
        """The same as asked now, after a wait; None = those who asked did not have to wait."""
        return self if asker is None else self.model_copy(update={"user": asker})


class RunAnswer(Model):
    """A committed answer.

    Attributes:
        text: Markdown, as it was streamed.
        abstained: the documents do not hold the answer; citations are of what is near it.
        missing, next_step: what is not in the documents, and what the reader can do; an answer to a part of
            the question has them, too. The text says the same.
        unsupported_claims: statements whose quotation could not be verified, marked in the text.
        truncated: the model stopped at its length limit, failed, or was late; the text says so.
        figures: the pictures that the text shows, in its order; signed addresses only when it is read.
        conflicts: citations of different documents that say different things of the same.
        sub_agents: those that worked on it, as people see them.
        warnings: what did not go as it should, in words; the text says the same at its end.
    """

    run_id: str
    text: str
    citations: tuple[Citation, ...] = ()
    abstained: bool = False
    missing: str = ""
    next_step: str = ""
    unsupported_claims: int = 0
    truncated: bool = False
    figures: tuple[AnswerFigure, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    sub_agents: tuple[SubagentView, ...] = ()
    warnings: tuple[str, ...] = ()


class RunRecord(Model):
    """What is kept of a run beside its log and its answer.

    Attributes:
        owner_id: the only one who may read it.
        ask_step: the step that asked its owner something last; 0 = none did.
        feedback: what its owner says of it; None = nothing.
        turn: its number in the thread; 0 = it belongs to none that is stored.
        has_log: its log and its working memory are still there.
    """

    run_id: str
    thread_id: str
    owner_id: str
    question: str
    status: RunStatus = "running"
    created_at: datetime
    finished_at: datetime | None = None
    error: str | None = None
    error_type: str | None = None
    todo: tuple[TodoItem, ...] = Field(default=())
    turn: int = 0
    has_log: bool = True
    ask_step: int = 0
    feedback: Feedback | None = None
