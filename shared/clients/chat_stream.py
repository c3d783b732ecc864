"""What the chunks of a streamed answer say, in the OpenAI protocol.

Called where errors are translated: the SDK does not check what it reads.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.clients.conversing import read_usage
from shared.clients.dependency import Dependency
from shared.clients.translate_openai import filtered, not_the_protocol
from shared.errors import ModelFixableError, OutputCutError
from shared.models.conversing import ModelUsage

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk


@dataclass(frozen=True)
class Delta:
    """What one chunk says. `answering`: it belongs to an answer, be it an empty one."""

    text: str
    ending: str | None
    answering: bool
    refused: bool
    usage: ModelUsage | None


@dataclass
class Heard:
    """What the chunks of one answer said beside its text."""

    usage: ModelUsage | None = None
    ending: str | None = None
    answering: bool = False
    refused: bool = False

    def note(self, delta: Delta) -> None:
        """Learn of one more chunk."""
        self.usage = delta.usage or self.usage
        self.ending = delta.ending or self.ending
        self.answering = self.answering or delta.answering
        self.refused = self.refused or delta.refused

    def check(self, endpoint: Dependency) -> None:
        """Once it has ended.

        Raises:
            OutputCutError: at its largest length.
            ModelFixableError: filtered, or refused.
            DependencyError: it was no answer at all.
        """
        if not self.answering:
            raise not_the_protocol(endpoint)
        if self.ending == "content_filter":
            raise filtered()
        if self.refused:
            raise ModelFixableError("The model refused to answer.")
        if self.ending == "length":
            raise OutputCutError(
                "The answer was cut off at its largest length.",
                "Ask for less at once, or raise MAX_ANSWER_TOKENS.",
            )


def read_delta(chunk: "ChatCompletionChunk") -> Delta:
    """What a chunk says."""
    # No choices are in the chunk with the usage, and in Azure's first one.
    return Delta(
        text="".join(choice.delta.content or "" for choice in chunk.choices),
        ending=next((choice.finish_reason for choice in chunk.choices if choice.finish_reason), None),
        answering=bool(chunk.choices),
        refused=any(choice.delta.refusal for choice in chunk.choices),
        usage=read_usage(chunk.usage),
    )
