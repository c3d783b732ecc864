"""The activity of `reply_in_channel`: one step of a reply in, the next one out. Raises only for defects."""

from typing import TYPE_CHECKING, Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, at_work, split
from shared.platform.instances import Instances

if TYPE_CHECKING:
    from shared.access.models import UserContext
    from shared.teams.models import BotAttachment, BotConversation

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def reply_step(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Perform one step of a reply. Input and output: ReplyStep."""
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.teams.context import ReplyDependencies, channel_clients
    from shared.teams.dropped_files import take_dropped
    from shared.teams.models import ReplyStep
    from shared.teams.steps import perform_reply
    from shared.wiring import get_services

    given, link = split(payload)
    step, services = ReplyStep.from_payload(given), get_services()

    async def store_file(
        attachment: "BotAttachment", conversation: "BotConversation", user: "UserContext"
    ) -> str:
        return (await take_dropped(attachment, conversation, user, services)).doc_id

    async with at_work(f"reply_step {step.kind}", link, run_id=step.run_id or step.reply_key):
        outbox, turns = channel_clients(services)
        deps = ReplyDependencies(services, outbox, turns, Instances(client), store_file)
        following = await perform_reply(step, deps)
    return following.model_dump(mode="json")
