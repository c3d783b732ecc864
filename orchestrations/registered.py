"""The orchestrations and activities of the app, as one list for `function_app`, nothing else."""

from orchestrations import (
    agent_activities,
    answer_question,
    channel_activities,
    fan_out_activities,
    ingest_activities,
    ingest_document,
    reply_in_channel,
    run_sub_agent,
    summarize_documents,
    summary_activities,
    traces,
)

DURABLE = (
    answer_question,
    agent_activities,
    run_sub_agent,
    ingest_document,
    ingest_activities,
    summarize_documents,
    summary_activities,
    fan_out_activities,
    reply_in_channel,
    channel_activities,
    traces,
)
