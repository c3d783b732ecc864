"""Activity that performs the steps of a reply in a chat channel."""

from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, activity_scope, report_defect, split
from shared import wiring
from shared.access.models import UserContext
from shared.platform.instances import Instances
from shared.teams.context import ReplyDependencies, channel_clients
from shared.teams.dropped_files import store_attachment
from shared.teams.models import BotAttachment, BotConversation, ReplyStep, apology
from shared.teams.steps import perform_reply


async def reply_step(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Perform one step of a reply to a chat message, and return the next step. Input and output:
    ReplyStep.
    """
    fields, link = split(payload)
    step, services = ReplyStep.from_payload(fields), wiring.get_services()

    async def store_file(
        attachment: BotAttachment, conversation: BotConversation, user: UserContext, thread_id: str
    ) -> str:
        return (await store_attachment(attachment, conversation, user, thread_id, services)).doc_id

    try:
        async with activity_scope(f"reply_step {step.kind}", link, run_id=step.run_id or step.reply_key):
            outbox, turns = channel_clients(services)
            deps = ReplyDependencies(services, outbox, turns, Instances(client), store_file)
            following = await perform_reply(step, deps)
    except Exception:  # noqa: BLE001  # a defect: the sender gets a reply all the same
        report_defect("reply_step", step.run_id or step.reply_key)
        following = apology(step, "InternalError")
    return following.model_dump(mode="json")
