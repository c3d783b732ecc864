"""The activity of `reply_in_channel`: one step of a reply in, the next one out. Raises only for defects."""

from typing import TYPE_CHECKING, Any

import azure.durable_functions as df

from orchestrations.payloads import Payload
from orchestrations.traces import at_work, split
from shared.platform.instances import Instances

if TYPE_CHECKING:
    from shared.access.models import UserContext
    from shared.teams.context import ChannelWorld
    from shared.teams.models import BotAttachment, BotConversation, BotSender
    from shared.wiring import Services

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def reply_step(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Perform one step of a reply. Input and output: ReplyStep."""
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.teams.models import ReplyStep
    from shared.teams.steps import perform_reply
    from shared.wiring import get_services

    given, link = split(payload)
    step = ReplyStep.from_payload(given)
    async with at_work(f"reply_step {step.kind}", link, run_id=step.run_id or step.reply_key):
        following = await perform_reply(step, _world(get_services(), client))
    return following.model_dump(mode="json")


def _world(services: "Services", client: df.DurableOrchestrationClient) -> "ChannelWorld":
    from shared.teams.context import ChannelWorld, channel_parts
    from shared.teams.dropped_files import take_dropped
    from shared.teams.identity import person_in_chat

    async def find_user(conversation: "BotConversation", sender: "BotSender") -> "tuple[UserContext, bool]":
        return await person_in_chat(conversation, sender, services.settings, services.directory)

    async def store_file(
        attachment: "BotAttachment", conversation: "BotConversation", user: "UserContext"
    ) -> str:
        state, _ = await take_dropped(attachment, conversation, user, services)
        return state.doc_id

    async def prepare() -> None:
        await services.ensure_prepared()

    outbox, turns = channel_parts(services.bot_outbox, services.bot_turns)
    return ChannelWorld(
        services=services,
        outbox=outbox,
        turns=turns,
        orchestrations=Instances(client),
        find_user=find_user,
        store_file=store_file,
        prepare=prepare,
    )
