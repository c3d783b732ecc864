"""Data models of a run: request, record, answer, clarifications and feedback."""

from datetime import date, datetime, timedelta
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, model_validator

from shared.access.models import UserContext
from shared.access.security_filter import in_thread
from shared.evidence.models import AnswerFigure, Citation
from shared.platform.models import Model
from shared.platform.settings_groups.values import TimezoneName
from shared.runs.agents import AGENT_NAME, AgentDefinition
from shared.runs.plan import TodoItem


class ConversationTurn(Model):
    """A question and its answer, as context for later questions.

    Attributes:
        question: the user's wording.
        answer: the answer's text, shortened for prompts; empty if the run failed.
        doc_ids: ids of the cited documents, in the order of their citations.
        filenames: their file names, in the same order.
        block_ids: ids of the cited blocks, which a follow-up question may read again.
    """

    question: str
    answer: str
    doc_ids: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    block_ids: tuple[str, ...] = ()


class Conversation(Model):
    """Earlier turns of a thread that precede a question, oldest first.

    Attributes:
        summary: summary of the turns before `turns`; empty if there are none.
        web_allowed: the user's reply to the request to search the web; None = never asked.
    """

    summary: str = ""
    turns: tuple[ConversationTurn, ...] = ()
    web_allowed: bool | None = None


ProfileName = Literal["doc_reader", "comparator", "evidence_builder", "web_verifier"]
SubagentTool = Literal["retrieve_documents", "query_metadata", "web_search"]

GateCode = Literal[
    "SUBAGENTS_DISABLED",
    "SUBAGENTS_UNAVAILABLE",
    "RECURSION_LIMIT_REACHED",
    "TARGET_NOT_READABLE",
    "LATENCY_BUDGET_EXHAUSTED",
    "TOKEN_BUDGET_EXHAUSTED",
    "COST_BUDGET_EXHAUSTED",
    "CIRCUIT_OPEN",
    "REQUIRED_TOOLS_RESTRICTED",
    "REQUIRED_TOOLS_UNHEALTHY",
]

NegativeCode = Literal[
    "CONFIDENT_FACT_LOOKUP",
    "FITS_WHOLE",
    "DEGRADED_MODE",
    "ACTIVE_LIMIT_REACHED",
    "REQUEST_LIMIT_REACHED",
    "CHILD_LATENCY_TOO_SHORT",
]

PositiveCode = Literal[
    "INTENT_DOC_SUMMARY",
    "INTENT_COMPARE_DOCS",
    "INTENT_EVIDENCE_TRACE",
    "FULL_DOCUMENT_REQUIRED",
    "LOW_RETRIEVAL_CONFIDENCE",
    "AMBIGUOUS_RETRIEVAL",
    "MULTI_DOCUMENT",
    "DEEP_MODE_REQUESTED",
    "MODEL_REQUESTED",
]

NoteCode = Literal["NO_TRIGGER", "QUEUE_FULL", "PROFILE_REDUCED", "TOOLS_RESTRICTED", "POLICY_EVAL_ERROR"]
ReasonCode = GateCode | NegativeCode | PositiveCode | NoteCode
Count = Annotated[int, Field(ge=0)]
ChildStatus = Literal["running", "done", "partial", "failed", "late"]
"""`partial`: stopped by its budget, with some results. `late`: stopped by the parent at the deadline."""


def counts_as_success(status: ChildStatus) -> bool:
    """Return whether the circuit breaker counts a status as a success.

    `partial` counts: there are findings, and the budget (time, tokens, money or turns) ended the work as
    intended. `failed` returned nothing, `late` missed its deadline, and `running` was abandoned.
    """
    return status in ("done", "partial")


class ToolUse(Model):
    """A summary of one tool call by a sub-agent, without arguments or results."""

    turn: Count = Field(description="Turn that made the call, counted from 0.")
    tool: str = Field(description="Name of the tool.")
    success: bool = Field(description="Whether the call succeeded.")
    result_count: Count = Field(default=0, description="Number of results.")
    duration_ms: Count = Field(default=0, description="Duration in milliseconds.")
    error_type: str | None = Field(default=None, description="Code of the error; null if there is none.")


class SubagentView(Model):
    """A sub-agent as shown to users, in a run's status and with its answer.

    Attributes:
        badge: display name of the profile.
        reasons, reason_codes: reasons for starting it.
        doc_ids: documents that it has read. Users who may no longer read all of them don't see `uncertainty`.
        claims: number of statements.
        proved: number of statements with a verified proof.
        warnings: problems, in words.
    """

    child_id: str = Field(description="The sub-agent's id.")
    profile: ProfileName = Field(description="Profile of the sub-agent.")
    badge: str
    status: ChildStatus = Field(description="Status of the sub-agent.")
    reason_codes: tuple[ReasonCode, ...] = ()
    reasons: tuple[str, ...] = ()
    started_at: datetime | None = Field(default=None, description="Start time; null until then.")
    ended_at: datetime | None = Field(default=None, description="End time; null until then.")
    turns: Count = Field(default=0, description="Number of turns taken so far.")
    tokens: Count = Field(default=0, description="Tokens used by its model calls.")
    cost_usd: float = Field(default=0.0, description="Cost of its model calls in US dollars.")
    tool_calls: tuple[ToolUse, ...] = Field(default=(), description="Tool calls of the sub-agent.")
    doc_ids: tuple[str, ...] = ()
    claims: Count = 0
    proved: Count = 0
    uncertainty: tuple[str, ...] = Field(default=(), description="Questions that remain open.")
    warnings: tuple[str, ...] = ()


MAX_ANSWER_CHARS = 500


class ClarificationOption(Model):
    """An option of a clarification: a document that may be meant, or an answer suggested by a model.

    Attributes:
        number: counted from 1; users may choose by it.
        doc_id, filename, date: document metadata, or empty. The date is the upload date, YYYY-MM-DD.
        title: the document's title, or the text of an answer.
        details: up to three differences from the other documents, such as the department.
    """

    number: int
    doc_id: str = ""
    filename: str = ""
    title: str = ""
    date: str = ""
    details: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Title and file name. Titles alone may be ambiguous."""
        if self.title and self.filename:
            return f"{self.title} ({self.filename})"
        return self.title or self.filename

    @property
    def name(self) -> str:
        """Display text: a document such as `Travel policy (travel.pdf, 2026-01-01)`, or a suggested
        answer.
        """
        details = ", ".join(filter(None, (self.filename, *self.details, self.date)))
        return f"{self.title or self.filename} ({details})" if details else self.title


class Clarification(Model):
    """A question to the user. It can be answered until `expires_at`."""

    question: str = Field(description="Question to the user.")
    options: tuple[ClarificationOption, ...] = Field(description="Options to choose from.")
    expires_at: datetime = Field(description="Time until which a reply is accepted.")


class ClarificationAnswer(Model):
    """Body of `POST /api/runs/{run_id}/answer`: the number of an option, or a reply in words."""

    choice: int | None = Field(default=None, description="Number of an option.")
    text: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ANSWER_CHARS)]
        | None
    ) = Field(default=None, description='Reply in words, such as "the second", "the 2024 one" or "both".')

    @model_validator(mode="after")
    def _check_one_is_given(self) -> Self:
        if (self.choice is None) == (self.text is None):
            raise ValueError('Give either "choice" or "text".')
        return self


class Choice(Model):
    """A reply to a clarification, interpreted as chosen options or as free text.

    Attributes:
        said: the reply's text; empty after a timeout.
        numbers: the chosen options; empty = all of them.
        extra_words: text that matches no option and is added to the question.
        asker: the user who replied, with their permissions at that time; None after a timeout.
    """

    said: str = ""
    numbers: tuple[int, ...] = ()
    extra_words: str = ""
    asker: UserContext | None = None


MAX_COMMENT_CHARS = 2000
Thumb = Literal["up", "down"]

Reason = Literal[
    "helpful",
    "complete",
    "well_sourced",
    "wrong",
    "incomplete",
    "wrong_source",
    "missing_figure",
    "outdated",
    "unclear",
    "too_slow",
]

Rating = Annotated[int, Field(ge=1, le=5, strict=True)]
Comment = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_COMMENT_CHARS)]


class FeedbackBody(Model):
    """Body of PUT /api/runs/{run_id}/feedback: a rating, a thumb, or both. It replaces earlier feedback."""

    rating: Rating | None = Field(default=None, description="1 (useless) to 5 (perfect).")
    thumb: Thumb | None = Field(default=None, description="`up` or `down`.")
    reasons: tuple[Reason, ...] = Field(default=(), max_length=10, description="Reasons, from a fixed list.")
    comment: Comment | None = Field(default=None, description="Free text; stored and erased with the run.")

    @model_validator(mode="after")
    def _check_one_is_given(self) -> Self:
        if self.rating is None and self.thumb is None:
            raise ValueError('Give "rating", "thumb" or both.')
        return self


class Feedback(FeedbackBody):
    """Feedback as stored with the run, with the time at which it was given."""

    given_at: datetime = Field(description="Time of the feedback.")


class SourceOpened(Model):
    """Body of POST /api/runs/{run_id}/openings, sent when a user opens the source of a citation."""

    n: int = Field(ge=1, le=9999, strict=True, description="Number of the citation.")


RunStatus = Literal["running", "waiting", "completed", "failed", "cancelled"]


MAX_SUMMARISED = 20
DocId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128)]


class SummaryOrder(Model):
    """Body of POST /api/summaries."""

    doc_ids: tuple[DocId, ...] = Field(
        min_length=1, max_length=MAX_SUMMARISED, description="Documents, 1-20; repeated ones count once."
    )
    focus: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)] = Field(
        default="", description="A question for the summary to focus on."
    )
    language: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$",
        description="Language of the summary, such as `de`; omitted = the documents' language.",
    )


RunProfile = Literal["answer", "document_summary"]
"""The kind of a run: a question of a thread, or a summary of documents, which has no thread."""


class RunRequest(Model):
    """The complete input of a run, stored before the run starts.

    Attributes:
        run_id: also the orchestration's instance id and the name of the run log.
        doc_ids, project_id: limits that the caller set on retrieval; empty and None mean no limit.
        created_at: when the question arrived, with zone.
        conversation: earlier turns of the thread.
        deep: the user allowed deeper work, which may take longer and cost more.
        timezone: IANA name of the user's time zone.
        origin: the client's IP address, or the channel, for the audit trail.
        agent: definition of the agent at the time of the question; None = the default, which answers from all
            documents.
        replaces: the run whose question is asked again; later questions see neither its turn nor successors.
        summary: the order, if the run is a summary; its focus is also the question.
        has_files: whether the thread has files of its own, which may still be being read.
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
    timezone: str = "UTC"
    origin: str = ""
    agent: AgentDefinition | None = None
    replaces: str | None = None
    summary: SummaryOrder | None = None
    has_files: bool = False

    @property
    def today(self) -> date:
        """The date of the question in the user's time zone."""
        return self.created_at.astimezone(ZoneInfo(self.timezone)).date()

    def with_rights_of(self, asker: UserContext | None) -> "RunRequest":
        """Return a copy of the request with the permissions of `asker`, which were read after the user
        replied. None leaves the request unchanged.
        """
        if asker is None:
            return self
        narrowed = self.agent.restrict_user(asker) if self.agent else asker
        narrowed = in_thread(narrowed, self.user.thread_id)
        return self.model_copy(update={"user": narrowed})

    @property
    def proof_is_optional(self) -> bool:
        """Whether the agent may make statements that are not proved by a document."""
        return self.agent is not None and self.agent.proof == "optional"


class RunAnswer(Model):
    """The final answer of a run, as stored and shown.

    Attributes:
        text: Markdown, as streamed.
        language: ISO 639-1 code.
        abstained: the documents don't contain the answer; citations only refer to related passages.
        missing, next_step: missing information and advice to the reader, also contained in `text`; also set
            for partial answers.
        unsupported_claims: number of statements whose quotation could not be verified, marked in the text.
        truncated: the model reached its length limit, failed or ran out of time, as stated in `text`.
        figures: figures shown in the text, in order; URLs are signed on reading only.
        sub_agents: sub-agents that contributed, as shown to users.
        warnings: problems, in words.
        next_questions: at most two questions that the reader may ask next: plain text from a model.
        tokens: input and output tokens of all model calls, where reported.
    """

    run_id: str = Field(description="Id of the run.")
    text: str
    language: str = "en"
    citations: tuple[Citation, ...] = Field(
        default=(), description="Citations, in the order of their numbers."
    )
    abstained: bool = False
    missing: str = ""
    next_step: str = ""
    unsupported_claims: int = 0
    truncated: bool = False
    figures: tuple[AnswerFigure, ...] = ()
    sub_agents: tuple[SubagentView, ...] = ()
    warnings: tuple[str, ...] = ()
    next_questions: tuple[str, ...] = ()
    tokens: Count = 0


class RunRecord(Model):
    """Metadata of a run in the table of runs. Its events and answer are stored elsewhere.

    Attributes:
        owner_id: the only user who may read it.
        ask_step: the step of the latest clarification; 0 = none.
        feedback: the owner's feedback; None = none given.
        turn: number of the run's turn in the thread; 0 = no stored turn.
        has_log: whether its journal and files still exist.
        profile: a summary has no thread and no answer; its result is in its journal.
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
    profile: RunProfile = "answer"


ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"


class ChatRequest(Model):
    """Body of POST /api/chat. The setting `max_question_chars` limits the length of the question."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="The question, in any language."
    )
    thread_id: str | None = Field(
        default=None, pattern=ID_PATTERN, description="Id of the thread to continue."
    )
    replaces: str | None = Field(
        default=None,
        pattern=ID_PATTERN,
        description=(
            "Id of an earlier run of the thread to ask again; requires `thread_id`. Later questions ignore "
            "that run and its successors."
        ),
    )
    project_id: str | None = Field(default=None, max_length=128, description="Id of the project to search.")
    doc_ids: tuple[str, ...] = Field(
        default=(), max_length=100, description="Ids of the documents to search."
    )
    deep: bool = Field(default=False, description="Allow deeper work by sub-agents.")
    agent: str | None = Field(
        default=None, pattern=AGENT_NAME, description="Agent to ask; GET /agents lists them."
    )
    timezone: TimezoneName | None = Field(
        default=None,
        description="IANA time zone of the user, such as `Europe/Berlin`, which determines today's date.",
    )
    stream: bool = Field(
        default=True, description="Return server-sent events (default) or a single JSON answer."
    )

    @model_validator(mode="after")
    def _require_thread_of_replaced_run(self) -> Self:
        if self.replaces is not None and self.thread_id is None:
            raise ValueError("`replaces` requires `thread_id`, the thread of the replaced run")
        return self


class RunView(Model):
    """A run as shown to its owner.

    `answer` is set once the run is completed, `clarification` while it waits for its owner's choice, and
    `sub_agents` as soon as any have started.
    """

    run_id: str = Field(description="Id of the run.")
    thread_id: str = Field(description="Id of the thread.")
    question: str = Field(description="The question.")
    status: RunStatus = Field(description="Status of the run.")
    created_at: datetime = Field(description="Creation time.")
    finished_at: datetime | None = Field(default=None, description="End time; null until then.")
    error: str | None = Field(
        default=None, description="Reason for the failure, in words; null if there is none."
    )
    error_type: str | None = Field(default=None, description="Code of the error; null if there is none.")
    todo: tuple[TodoItem, ...] = Field(default=(), description="Todo list of the run.")
    answer: RunAnswer | None = Field(default=None, description="The answer, once it is committed.")
    sub_agents: tuple[SubagentView, ...] = Field(
        default=(), description="Sub-agents that contributed, including those in progress."
    )
    clarification: Clarification | None = Field(
        default=None, description="Pending question to the user; null if there is none."
    )
    feedback: Feedback | None = Field(default=None, description="The owner's rating; null if there is none.")
    events_url: str = Field(description="URL of the event stream.")


# Group claims in Entra ID tokens expire after 60 to 90 minutes, so permissions older than this are looked up
# again.
RIGHTS_HOLD = timedelta(hours=1)


def asker_after_wait(request: RunRequest, choice: Choice, now: datetime) -> UserContext | None:
    """Return the user whose permissions apply after a clarification, or None if the permissions in the
    request are still valid.

    After a long wait without a reply, the user's group memberships may have changed, so the groups are
    dropped.
    """
    if choice.asker is not None or now - request.created_at <= RIGHTS_HOLD:
        return choice.asker
    return UserContext(user_id=request.user.user_id, name=request.user.name)


class WritingFacts(Model):
    """Metrics that only the writing step knows. They are stored in the journal with the answer.

    Attributes:
        first_token_ms: time from the question, or from the reply to a clarification, to the first text sent;
            None = no model wrote.
        figures_available: number of figures in the evidence and on its pages.
    """

    first_token_ms: Count | None = None
    figures_available: Count = 0
