"""Descriptions of the events in the app's log. `make docs` writes them to docs/logs-and-traces.md."""

from collections.abc import Mapping
from typing import Literal, NamedTuple


class LogEvent(NamedTuple):
    """The level and the meaning of a log event."""

    level: Literal["info", "warning", "error"]
    text: str


LOG_EVENTS: Mapping[str, LogEvent] = {
    "activity.defect": LogEvent("error", "a bug in a step, with traceback"),
    "answer.degraded": LogEvent(
        "warning", "the model failed; the answer is partial or consists of quotations"
    ),
    "audit.write_failed": LogEvent("error", "an audit entry could not be written; `kind` names the action"),
    "bot.stream_ended": LogEvent(
        "info",
        "a channel closed a streamed message; `reason`: `stopped`, `late`, `unsupported`",
    ),
    "bot.token_refused": LogEvent("warning", "a chat request had no valid token; `reason` names the check"),
    "bot.update_failed": LogEvent(
        "warning",
        "an update of a streamed message failed; the next one includes its text",
    ),
    "channel.question_left_open": LogEvent(
        "warning",
        "a clarification could not be cancelled; it times out",
    ),
    "channel.rating_ignored": LogEvent("info", "a rating of an unknown message, or by another user"),
    "channel.step_failed": LogEvent(
        "warning",
        "a step of a chat reply failed; it is retried or reported",
    ),
    "channel.stream_failed": LogEvent("warning", "streaming failed; the answer is sent at the end"),
    "child.terminate_failed": LogEvent(
        "warning",
        "a sub-agent could not be terminated before its deadline",
    ),
    "citations.read_failed": LogEvent("warning", "passages cited before could not be reloaded"),
    "delegation.editions_late": LogEvent("warning", "the search for other editions of a document timed out"),
    "delegation.failed": LogEvent("warning", "the delegation policy failed; no sub-agents are used"),
    "delegation.sizes_late": LogEvent(
        "warning",
        "measuring documents timed out; page counts are used",
    ),
    "document.copies_failed": LogEvent(
        "warning", "a change was stored but not copied to the indexes; an ingestion copies it"
    ),
    "document.reconcile_failed": LogEvent("warning", "a document could not be reconciled; it is retried"),
    "documents.metadata_late": LogEvent("warning", "loading titles and dates timed out"),
    "documents.read_failed": LogEvent("warning", "documents could not be read in full; passages are used"),
    "documents.reconciled": LogEvent(
        "info",
        "a reconciliation finished: `started`, `removed`, `expired_uploads`, `left`, `share`",
    ),
    "figure.caption_fallback": LogEvent(
        "warning",
        "the vision model failed; surrounding text is the caption",
    ),
    "figure.read_failed": LogEvent("warning", "a picture could not be read; only its caption is used"),
    "figure.sign_failed": LogEvent("warning", "a picture's URL could not be signed"),
    "figure.unreadable": LogEvent("warning", "a picture in a PDF could not be decoded"),
    "gap.search_failed": LogEvent("warning", "the search for missing evidence failed"),
    "histories.purge_timed_out": LogEvent("warning", "purging histories exceeded 240 s; it continues later"),
    "histories.purged": LogEvent("info", "expired orchestration histories were purged"),
    "http.defect": LogEvent("error", "a bug, with traceback; the caller got a 500"),
    "idempotency.release_failed": LogEvent("warning", "an idempotency key could not be released; it expires"),
    "idempotency.store_failed": LogEvent(
        "warning",
        "a key's result could not be stored; a retry looks it up",
    ),
    "identity.directory_failed": LogEvent("warning", "Microsoft Graph failed; the request was rejected"),
    "identity.names_failed": LogEvent(
        "warning",
        "Microsoft Graph failed; group ids are shown instead of names",
    ),
    "index.changed": LogEvent("info", "an index was created or extended"),
    "index.outdated": LogEvent(
        "warning",
        "an index must be [moved](operate.md#move-an-index); `reason` names the missing part",
    ),
    "index.written": LogEvent("info", "index rows were written or deleted"),
    "ingestion.cleanup_failed": LogEvent(
        "warning", "cleanup failed; leftovers remain until the next ingestion"
    ),
    "ingestion.defect": LogEvent("error", "a bug in the ingestion of a file, with traceback"),
    "ingestion.died_again": LogEvent(
        "warning", "an ingestion died four times in a row; it restarts after five minutes"
    ),
    "ingestion.place_kept": LogEvent(
        "warning", "an ended ingestion could not pass on its place; the next check does so within seconds"
    ),
    "ingestion.step_failed": LogEvent(
        "warning",
        "a step failed; it is retried, or the document is `failed`",
    ),
    "instance.restart_failed": LogEvent(
        "warning",
        "a lost orchestration could not be restarted; it is retried",
    ),
    "instance.restarted": LogEvent("warning", "a lost reply was restarted"),
    "metadata.fallback": LogEvent("warning", "the model failed; metadata was extracted by rules"),
    "model.answered": LogEvent("info", "a call to the chat model: `prompt`, `duration_ms`, tokens"),
    "model.feature_missing": LogEvent("warning", "the endpoint rejected a feature; it is no longer used"),
    "page.render_failed": LogEvent("warning", "a page could not be rendered; only its text is shown"),
    "parser.landlock_missing": LogEvent(
        "warning",
        "parsers can read the app's files ([protection](operate.md#parsers))",
    ),
    "parser_service.failed": LogEvent("warning", "the parser service failed; the local parser was used"),
    "plan.fallback": LogEvent("warning", "the model failed; the plan was made by rules"),
    "poison.found": LogEvent("warning", "a poison queue contains messages"),
    "quality.write_failed": LogEvent("warning", "a quality record could not be written; `kind` names it"),
    "retention.finished": LogEvent("info", "records past their retention period were deleted"),
    "retention.purge_failed": LogEvent(
        "error",
        "records of a `kind` could not be purged; it is retried",
    ),
    "run.restarted": LogEvent("warning", "a lost run was restarted; it fails after three restarts"),
    "run.terminate_failed": LogEvent(
        "warning",
        ("a cancelled run's orchestration could not be terminated; its steps do nothing"),
    ),
    "search.answered": LogEvent("info", "a query: `search_query`, `result_count`, `search_latency_ms`"),
    "search.keyword_only": LogEvent("warning", "no query vector is available; only keywords are searched"),
    "search.names_failed": LogEvent("warning", "named documents could not be looked up"),
    "search.ranker_refused": LogEvent(
        "warning", "the semantic ranker rejected a query; unused for ten minutes"
    ),
    "search.retried": LogEvent("warning", "searches exceeded `limit_s`; they are retried once"),
    "search.timed_out": LogEvent("warning", "queries timed out; partial results are used"),
    "sharepoint.address_failed": LogEvent(
        "error",
        "a URL in `SHAREPOINT_LIBRARIES` cannot be resolved",
    ),
    "sharepoint.defect": LogEvent(
        "error",
        ("a bug in the synchronisation of `library_id`"),
    ),
    "sharepoint.library_closed": LogEvent(
        "error",
        "`library_id` is hidden after a day without synchronisation",
    ),
    "sharepoint.run_completed": LogEvent(
        "info",
        "synchronisation of `library_id` completed; `result_count` documents",
    ),
    "sharepoint.run_failed": LogEvent(
        "warning", "synchronisation of `library_id` failed; the next run continues"
    ),
    "sharepoint.start_failed": LogEvent("warning", "a synchronisation could not be started; it is retried"),
    "step.failed": LogEvent(
        "warning", "a step failed; it is retried, ends the run, or leaves out a part of a summary"
    ),
    "stream.reader_stalled": LogEvent("warning", "a client that stalled for a minute was disconnected"),
    "sub_agent.control_failed": LogEvent("warning", "the store of slots and circuit breakers is unavailable"),
    "sub_agent.defect": LogEvent("error", "a bug in a sub-agent; the answer doesn't use it"),
    "sub_agent.event_lost": LogEvent(
        "warning", "a sub-agent's event could not be appended to the run's journal"
    ),
    "sub_agent.start_failed": LogEvent("warning", "a sub-agent could not start"),
    "sub_agent.state_unreadable": LogEvent("error", "a sub-agent's state cannot be read and is ignored"),
    "sub_agent.turn": LogEvent("info", "a finished turn: `status`, `tokens`, `findings`"),
    "summary.reduce_failed": LogEvent("warning", "merging findings failed; they are listed unmerged"),
    "table.database_failed": LogEvent("warning", "a database is unavailable; its views are left out"),
    "table.recompute_failed": LogEvent("warning", "a query could not be repeated; its numbers are withheld"),
    "table.rows_failed": LogEvent("warning", "the cited rows could not be marked on the page"),
    "tables.search_failed": LogEvent("warning", "the search for tables failed"),
    "telemetry.export_failed": LogEvent("warning", "exporting to a receiver failed (once per outage)"),
    "telemetry.export_resumed": LogEvent("info", "exporting works again"),
    "telemetry.receiver_invalid": LogEvent("error", "the setting of a telemetry receiver is invalid"),
    "texts.embedded": LogEvent("info", "a call to the embedding model"),
    "tool.defect": LogEvent("error", "a bug in a tool; the model gets an error"),
    "tool.failed": LogEvent("info", "an expected error in a tool; the model gets the reason"),
    "trace.incomplete": LogEvent("warning", "spans of a run are missing"),
    "turn.dropped": LogEvent("warning", "a turn could not be queued and is not remembered"),
    "turn.store_failed": LogEvent("warning", "a turn could not be remembered; it is retried"),
    "user_erasure.continued": LogEvent("info", "a pass exceeded its time limit and continues later"),
    "user_erasure.ended": LogEvent(
        "info",
        "an erasure finished; `failed`: the user is still active",
    ),
    "user_erasure.requested": LogEvent(
        "info",
        "`user_id` requested the erasure of `subject` (both pseudonyms)",
    ),
    "user_erasure.unreadable": LogEvent(
        "error", "a stored item cannot be read; it expires or is erased by id"
    ),
    "user_limits.failed": LogEvent("warning", "the store of limits is unavailable; the caller was admitted"),
}
