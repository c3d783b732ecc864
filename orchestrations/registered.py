"""The orchestrations and activities of the app, as one list for `function_app`, nothing else."""

from orchestrations import (
    agent_activities,
    channel_activities,
    fan_out_activities,
    ingest_activities,
    orchestrators,
    payloads,
    summary_activities,
)

DURABLE = (
    orchestrators,
    agent_activities,
    ingest_activities,
    summary_activities,
    fan_out_activities,
    channel_activities,
    payloads,
)
