"""The call of chat channels. A table: one row per route."""

from functions.openapi.operation import Operation, Reply, json_reply
from shared.errors import CallerError, PayloadTooLargeError, SlowBodyError
from shared.models.activities import ActivityAnswer, ChannelActivity

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
