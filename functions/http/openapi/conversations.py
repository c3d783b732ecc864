"""The call of chat channels. A table: one row per route."""

from functions.http.models import (
    CachedHeaders,
    ChatHeaders,
    IfMatchHeaders,
    KeyHeaders,
    ListQuery,
    MessagesQuery,
    ResumeHeaders,
    RunStreamEvent,
    SummaryHeaders,
)
from functions.http.openapi.operation import JSON, STREAM, Operation, Reply, json_reply
from shared.conversations.models import (
    MemoriesDeleted,
    MemoryList,
    MessageList,
    NewThread,
    ThreadList,
    ThreadRename,
    ThreadView,
)
from shared.platform.errors import (
    CallerError,
    ConflictError,
    IdempotencyKeyReusedError,
    NotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    SlowBodyError,
)
from shared.runs.models import ChatRequest, ClarificationAnswer, Feedback, FeedbackBody, RunView, SourceOpened
from shared.summaries.models import SummaryOrder, SummaryView
from shared.teams.activities import ActivityAnswer, ChannelActivity

_BODY = (CallerError, PayloadTooLargeError, SlowBodyError)
_REPLAYED = "Idempotency-Replayed"
_QUESTIONS, _SUMMARIES, _THREADS, _MEMORY = "Questions", "Summaries", "Threads", "Memory"

QUESTIONS = (
    Operation(
        "POST",
        "chat",
        "chat",
        _QUESTIONS,
        "Ask a question",
        (
            Reply(
                200,
                "The run's events as they come; with `stream` false the run when it has ended.",
                ((STREAM, RunStreamEvent), (JSON, RunView)),
                ("X-Run-Id", _REPLAYED),
            ),
            json_reply(
                202, "The run goes on, or waits for a choice.", RunView, "Location", "X-Run-Id", _REPLAYED
            ),
        ),
        (*_BODY, NotFoundError, ConflictError, IdempotencyKeyReusedError),
        body=ChatRequest,
        headers=ChatHeaders,
        costs=True,
        ends_as=RunView,
    ),
    Operation(
        "GET",
        "runs/{run_id}",
        "get_run",
        _QUESTIONS,
        "A run: status, todo list, answer",
        (json_reply(200, "The run as it is now.", RunView),),
        (NotFoundError,),
    ),
    Operation(
        "GET",
        "runs/{run_id}/events",
        "get_run_events",
        _QUESTIONS,
        "The events of a run, from the first or after one",
        (
            Reply(200, "The events.", ((STREAM, RunStreamEvent),), ("X-Run-Id",)),
            Reply(204, "The run has ended, and the caller has seen its last event."),
        ),
        (CallerError, NotFoundError),
        headers=ResumeHeaders,
    ),
    Operation(
        "POST",
        "runs/{run_id}/answer",
        "answer_run",
        _QUESTIONS,
        "Answer what a run asks",
        (json_reply(202, "The run goes on.", RunView, "Location"),),
        (*_BODY, NotFoundError, ConflictError),
        body=ClarificationAnswer,
    ),
    Operation(
        "POST",
        "runs/{run_id}/cancel",
        "cancel_run",
        _QUESTIONS,
        "End a run and its sub-agents",
        (json_reply(200, "The run, cancelled.", RunView),),
        (NotFoundError, ConflictError),
    ),
    Operation(
        "PUT",
        "runs/{run_id}/feedback",
        "put_feedback",
        _QUESTIONS,
        "Rate a run that has ended",
        (json_reply(200, "What is kept.", Feedback),),
        (*_BODY, NotFoundError, ConflictError),
        body=FeedbackBody,
    ),
    Operation(
        "GET",
        "runs/{run_id}/feedback",
        "get_feedback",
        _QUESTIONS,
        "The rating of a run",
        (json_reply(200, "What was said.", Feedback),),
        (NotFoundError,),
    ),
    Operation(
        "DELETE",
        "runs/{run_id}/feedback",
        "delete_feedback",
        _QUESTIONS,
        "Take a rating back",
        (Reply(204, "It is gone, or never was."),),
        (NotFoundError,),
    ),
    Operation(
        "POST",
        "runs/{run_id}/openings",
        "post_opening",
        _QUESTIONS,
        "Say that the source of a citation was opened",
        (Reply(204, "It counts, once."),),
        (*_BODY, NotFoundError),
        body=SourceOpened,
    ),
)

SUMMARIES = (
    Operation(
        "POST",
        "summaries",
        "create_summary",
        _SUMMARIES,
        "Begin a summary of 1-20 documents",
        (
            json_reply(200, "The summary with its result.", SummaryView, "Location", _REPLAYED),
            json_reply(202, "It is being made.", SummaryView, "Location", _REPLAYED),
        ),
        (*_BODY, NotFoundError, IdempotencyKeyReusedError),
        body=SummaryOrder,
        headers=SummaryHeaders,
        costs=True,
        ends_as=SummaryView,
    ),
    Operation(
        "GET",
        "summaries/{summary_id}",
        "get_summary",
        _SUMMARIES,
        "How far a summary is, and its result",
        (json_reply(200, "The summary as it is now.", SummaryView),),
        (NotFoundError,),
    ),
    Operation(
        "POST",
        "summaries/{summary_id}/cancel",
        "cancel_summary",
        _SUMMARIES,
        "End a summary",
        (json_reply(200, "The summary, cancelled.", SummaryView),),
        (NotFoundError, ConflictError),
    ),
    Operation(
        "DELETE",
        "summaries/{summary_id}",
        "delete_summary",
        _SUMMARIES,
        "Delete a summary and everything made of it",
        (Reply(204, "It is gone."),),
        (NotFoundError,),
    ),
)

THREADS = (
    Operation(
        "POST",
        "threads",
        "create_thread",
        _THREADS,
        "Begin a thread",
        (json_reply(201, "The thread.", ThreadView, "Location", _REPLAYED),),
        (*_BODY, NotFoundError, IdempotencyKeyReusedError),
        body=NewThread,
        headers=KeyHeaders,
        costs=True,
    ),
    Operation(
        "GET",
        "threads",
        "get_threads",
        _THREADS,
        "The caller's threads, the one that was last asked in first",
        (json_reply(200, "A page of threads.", ThreadList),),
        (CallerError,),
        query=ListQuery,
    ),
    Operation(
        "GET",
        "threads/{thread_id}",
        "get_thread",
        _THREADS,
        "One thread, without its turns",
        (
            json_reply(200, "The thread.", ThreadView, "ETag"),
            Reply(304, "The caller has this state already.", (), ("ETag",)),
        ),
        (NotFoundError,),
        headers=CachedHeaders,
    ),
    Operation(
        "PATCH",
        "threads/{thread_id}",
        "patch_thread",
        _THREADS,
        "Rename a thread",
        (json_reply(200, "The thread.", ThreadView, "ETag"),),
        (*_BODY, NotFoundError, ConflictError, PreconditionFailedError),
        body=ThreadRename,
        headers=IfMatchHeaders,
    ),
    Operation(
        "DELETE",
        "threads/{thread_id}",
        "delete_thread",
        _THREADS,
        "Delete a thread and everything made of it",
        (Reply(204, "Nobody sees it any more."),),
        (NotFoundError, ConflictError, PreconditionFailedError),
        headers=IfMatchHeaders,
    ),
    Operation(
        "POST",
        "threads/{thread_id}/clear",
        "clear_thread",
        _THREADS,
        "Delete the turns of a thread, and keep the thread",
        (json_reply(200, "The empty thread.", ThreadView),),
        (NotFoundError, ConflictError),
    ),
    Operation(
        "GET",
        "threads/{thread_id}/messages",
        "get_thread_messages",
        _THREADS,
        "Questions and answers of a thread, a page at a time from the newest",
        (json_reply(200, "A page of turns, oldest first.", MessageList),),
        (CallerError, NotFoundError),
        query=MessagesQuery,
    ),
)

MEMORY = (
    Operation(
        "GET",
        "memory",
        "get_memory",
        _MEMORY,
        "What is remembered of the caller's questions",
        (json_reply(200, "A page of memories, newest first.", MemoryList),),
        (CallerError,),
        query=ListQuery,
    ),
    Operation(
        "DELETE",
        "memory",
        "delete_memory",
        _MEMORY,
        "Forget all of it",
        (json_reply(200, "How many there were.", MemoriesDeleted),),
    ),
)

CHANNELS = (
    Operation(
        "POST",
        "messages",
        "receive_activity",
        "Channels",
        "What Teams and other chat channels send, with a token of the Bot Service",
        (
            Reply(202, "Taken down; the answer is written into the conversation."),
            json_reply(200, "An answer that the channel waits for.", ActivityAnswer),
        ),
        (CallerError, PayloadTooLargeError, SlowBodyError),
        body=ChannelActivity,
    ),
)
