"""The events of the app's log. `make docs` writes them into docs/logs-and-traces.md."""

from collections.abc import Mapping
from typing import Literal, NamedTuple


class LogEvent(NamedTuple):
    """The level of an event, and what happened."""

    level: Literal["info", "warning", "error"]
    text: str


LOG_EVENTS: Mapping[str, LogEvent] = {
    "activity.defect": LogEvent("error", "a bug in a step, with its traceback"),
    "answer.degraded": LogEvent("warning", "the model failed; the answer is partial, or quotations"),
    "audit.write_failed": LogEvent("error", "an audit entry could not be written; `kind` is its action"),
    "bot.stream_ended": LogEvent(
        "info",
        "a channel ended a streamed message; `reason`: `stopped`, `late`, `unsupported`",
    ),
    "bot.token_refused": LogEvent("warning", "a chat request had no valid token; `reason` names the check"),
    "bot.update_failed": LogEvent(
        "warning",
        "an update of a streamed message failed; a later one has its text",
    ),
    "channel.question_left_open": LogEvent(
        "warning",
        "a waiting question could not be ended; it ends by itself",
    ),
    "channel.rating_ignored": LogEvent("info", "a thumb on an unknown message, or not by its owner"),
    "channel.step_failed": LogEvent(
        "warning",
        "a step of a chat reply failed; it is retried, or the person gets a message",
    ),
    "channel.stream_failed": LogEvent("warning", "streaming a message failed; the whole answer is sent"),
    "child.terminate_failed": LogEvent(
        "warning",
        "a sub-agent could not be ended; it ends by its deadline",
    ),
    "citations.read_failed": LogEvent("warning", "passages of the previous answer could not be read again"),
    "delegation.editions_late": LogEvent("warning", "other editions of a document were not found in time"),
    "delegation.failed": LogEvent("warning", "the policy failed: no sub-agent"),
    "delegation.sizes_late": LogEvent(
        "warning",
        "documents were not measured in time; page counts are used",
    ),
    "document.reconcile_failed": LogEvent("warning", "a document failed; the next run retries"),
    "documents.metadata_late": LogEvent("warning", "titles and dates came too late"),
    "documents.read_failed": LogEvent("warning", "documents could not be read whole; passages were used"),
    "documents.reconciled": LogEvent(
        "info",
        "a reconciliation ended: `started`, `removed`, `expired_uploads`, `left`, `share`",
    ),
    "figure.caption_fallback": LogEvent(
        "warning",
        "the vision model failed; the caption is the surrounding text",
    ),
    "figure.read_failed": LogEvent("warning", "a picture could not be read; the model got its caption"),
    "figure.sign_failed": LogEvent("warning", "a picture got no signed address"),
    "figure.unreadable": LogEvent("warning", "a PDF's picture cannot be decoded"),
    "gap.search_failed": LogEvent("warning", "the search for a gap failed"),
    "histories.purge_timed_out": LogEvent("warning", "purging took over 240 s; it continues next hour"),
    "histories.purged": LogEvent("info", "old histories were deleted"),
    "http.defect": LogEvent("error", "a bug, with its traceback; the caller got a 500"),
    "idempotency.release_failed": LogEvent("warning", "a key could not be freed; it expires after a day"),
    "idempotency.store_failed": LogEvent(
        "warning",
        "a key's result could not be stored; a repeat finds it",
    ),
    "identity.directory_failed": LogEvent("warning", "Microsoft Graph failed; the caller was refused"),
    "identity.names_failed": LogEvent(
        "warning",
        "Microsoft Graph failed; the web page shows groups by their ids",
    ),
    "index.changed": LogEvent("info", "an index was created or extended"),
    "index.outdated": LogEvent(
        "warning",
        "an index needs [a move](operate.md#move-an-index); `reason` names what it lacks",
    ),
    "index.written": LogEvent("info", "rows were written or deleted"),
    "ingestion.cleanup_failed": LogEvent("warning", "leftovers stay until the next ingestion"),
    "ingestion.defect": LogEvent("error", "a bug while reading a file, with its traceback"),
    "ingestion.step_failed": LogEvent(
        "warning",
        "a step failed; it is retried, or the document or summary is `failed`",
    ),
    "instance.restart_failed": LogEvent(
        "warning",
        "a lost orchestration could not restart; the timer retries",
    ),
    "instance.restarted": LogEvent("warning", "a lost reply, summary or ingestion restarted"),
    "metadata.fallback": LogEvent("warning", "rules extracted the metadata"),
    "model.answered": LogEvent("info", "a call of the chat model: `prompt`, `duration_ms`, tokens"),
    "model.feature_missing": LogEvent("warning", "the endpoint refused a feature; it is not used again"),
    "page.render_failed": LogEvent("warning", "a page has no picture, only text"),
    "parser.landlock_missing": LogEvent(
        "warning",
        ("the kernel cannot keep parser processes from the app's files ([what remains](operate.md#parsers))"),
    ),
    "parser_service.failed": LogEvent("warning", "the parser service failed; the local parser was used"),
    "plan.fallback": LogEvent("warning", "rules made the plan"),
    "poison.found": LogEvent("warning", "a poison queue holds messages"),
    "quality.write_failed": LogEvent("warning", "a quality record is missing; `kind` names it"),
    "retention.finished": LogEvent("info", "records older than their retention were deleted"),
    "retention.purge_failed": LogEvent(
        "error",
        "records of a `kind` could not be purged; the next hour tries again",
    ),
    "run.restarted": LogEvent("warning", "a lost run restarted; the fourth time it fails"),
    "run.terminate_failed": LogEvent(
        "warning",
        "a cancelled run's orchestration is still there; it writes nothing more",
    ),
    "search.answered": LogEvent("info", "a query: `search_query`, `result_count`, `search_latency_ms`"),
    "search.keyword_only": LogEvent("warning", "no vector: keyword search only"),
    "search.names_failed": LogEvent("warning", "named documents could not be looked up"),
    "search.ranker_refused": LogEvent("warning", "the semantic ranker refused; it pauses ten minutes"),
    "search.retried": LogEvent("warning", "searches exceeded `limit_s`; they are repeated once"),
    "search.timed_out": LogEvent("warning", "queries took too long; partial results are used"),
    "sharepoint.address_failed": LogEvent(
        "error",
        "an address of `SHAREPOINT_LIBRARIES` cannot be resolved; its libraries keep their state",
    ),
    "sharepoint.defect": LogEvent(
        "error",
        (
            "a bug in the synchronisation of `library_id`, which is hidden: nothing could be "
            "synchronised for a day"
        ),
    ),
    "sharepoint.library_closed": LogEvent(
        "error",
        "everything of `library_id` is hidden: nothing could be synchronised for a day",
    ),
    "sharepoint.run_completed": LogEvent(
        "info",
        "a run over `library_id` completed; `result_count` documents",
    ),
    "sharepoint.run_failed": LogEvent("warning", "a run over `library_id` failed; the next one continues"),
    "sharepoint.start_failed": LogEvent("warning", "a run was not started; the next timer tries again"),
    "step.failed": LogEvent("warning", "a step failed; it is retried, or the run ends"),
    "stream.reader_stalled": LogEvent("warning", "a reader stalled for a minute and was disconnected"),
    "sub_agent.control_failed": LogEvent("warning", "slots or circuit breaker are unavailable"),
    "sub_agent.defect": LogEvent("error", "a bug in a sub-agent; the answer comes without it"),
    "sub_agent.event_lost": LogEvent("warning", "a sub-agent's event is missing in the run's log"),
    "sub_agent.metrics_failed": LogEvent("warning", "a sub-agent's record is missing"),
    "sub_agent.start_failed": LogEvent("warning", "a sub-agent could not start"),
    "sub_agent.state_unreadable": LogEvent("error", "a sub-agent's state cannot be read and is ignored"),
    "sub_agent.turn": LogEvent("info", "one turn: `status`, `tokens`, `findings`"),
    "summary.purge_failed": LogEvent("warning", "a deleted summary's history remains; it holds only ids"),
    "summary.reduce_failed": LogEvent("warning", "findings were not merged"),
    "summary.step_failed": LogEvent(
        "warning",
        "a step failed; it is retried, or the document or summary is `failed`",
    ),
    "summary.terminate_failed": LogEvent("warning", "a cancelled summary could not be ended"),
    "summary.window_failed": LogEvent(
        "warning",
        "part of a document failed; it is retried, or skipped with a warning",
    ),
    "table.database_failed": LogEvent("warning", "a database's views were left out"),
    "table.recompute_failed": LogEvent("warning", "a query failed when repeated; its numbers are withheld"),
    "table.rows_failed": LogEvent("warning", "the page opens without marks"),
    "tables.search_failed": LogEvent("warning", "the search for tables failed"),
    "telemetry.export_failed": LogEvent("warning", "a receiver fails; logged once"),
    "telemetry.export_resumed": LogEvent("info", "it works again"),
    "telemetry.receiver_invalid": LogEvent("error", "a receiver's setting is wrong"),
    "texts.embedded": LogEvent("info", "a call of the embedding model"),
    "tool.defect": LogEvent("error", "a bug in a tool; the model got an error"),
    "tool.failed": LogEvent("info", "an expected failure of a tool; the model got the reason"),
    "trace.incomplete": LogEvent("warning", "spans of a run are missing"),
    "turn.dropped": LogEvent("warning", "a turn is not remembered: its message was not sent"),
    "turn.store_failed": LogEvent("warning", "remembering failed; it is retried"),
    "user_erasure.continued": LogEvent("info", "a pass took too long; the next message continues"),
    "user_erasure.ended": LogEvent(
        "info",
        "the end, with counts in `erased`; `failed`: the person still uses the app",
    ),
    "user_erasure.requested": LogEvent(
        "info",
        "`user_id` asked to erase the person `subject` (both pseudonyms)",
    ),
    "user_erasure.unreadable": LogEvent(
        "error", "a stored item cannot be read; runs, summaries are erased by id, others expire"
    ),
    "user_limits.failed": LogEvent("warning", "limits are unavailable; the caller was admitted"),
}
