"""What a model endpoint supports of the protocol: set by MODEL_FEATURES, else learned from what it refuses.

A refusal is only a suspicion. It is remembered when the same request went through without the part that was
refused, so that a request that is wrong for another reason takes nothing away for good.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from shared.platform.telemetry import get_logger
from shared.platform.tracing import outgoing

if TYPE_CHECKING:
    from openai import APIStatusError

    from shared.platform.calls import Deadline

Answer = TypeVar("Answer")

Effort = Literal["none", "minimal", "low", "medium", "high"]
"""How much a reasoning model may think, unseen and paid for, before it answers."""


@dataclass(frozen=True)
class Efforts:
    """Efforts by the kind of call; None = the model's own default.

    Attributes:
        tools: turns with tools.
        short: plans, rewritten questions, repairs, judgements of passages, summaries of turns.
        writing: everything else: reports, summaries of documents, descriptions.
    """

    tools: Effort | None = None
    short: Effort | None = None
    writing: Effort | None = None


Feature = Literal[
    "json_schema",  # response_format of that type
    "json_object",  # response_format of that type
    "tools",  # tools, tool_choice, messages of role tool
    "stream_usage",  # stream_options: token usage at the end of a stream
    "max_completion_tokens",  # the newer name of the limit of an answer
    "max_tokens",  # its older name
    "reasoning_effort",  # how much the model may think
    "system_role",  # messages of role system
    "images",  # pictures as parts of a message
    "base64_vectors",  # encoding_format of embeddings
    "dimensions",  # vectors that are shortened on demand
]

ALL_FEATURES: frozenset[Feature] = frozenset(get_args(Feature))

# OpenAI and LM Studio say 400, OpenRouter 404, what is built on pydantic 422, llama.cpp 501.
_REFUSALS = frozenset({400, 404, 422, 501})
_MOST_CHARS = 2000  # of a refusal; some quote the whole request

# What a refusal says of each part, the likeliest first: of two formats the one that was sent is meant.
_SIGNS: tuple[tuple[Feature, re.Pattern[str]], ...] = (
    ("reasoning_effort", re.compile(r"reasoning.?effort")),
    ("stream_usage", re.compile(r"stream_options|include_usage")),
    ("max_completion_tokens", re.compile(r"max_completion_tokens")),
    ("max_tokens", re.compile(r"max_tokens")),
    ("json_schema", re.compile(r"json_schema|response_format|structured.?output|grammar|guided")),
    ("json_object", re.compile(r"json_object|response_format|json.?mode")),
    ("tools", re.compile(r"\btools?\b|tool_choice|tool.?call|function.?call")),
    # Strongly worded: a picture may also be too large, or of a kind that is not read.
    (
        "images",
        re.compile(
            r"(not|n't|that) (support|accept|enable)\w* (the |any )?(image|vision|multi-?modal)"
            r"|(image|vision)[ _]?(input|content|url)?s? (is|are) (not|only) (supported|enabled|allowed)"
            r"|not a (multi-?modal|vision) model"
        ),
    ),
    (
        "system_role",
        re.compile(
            r"system.{0,20}(role|message|prompt)|role.{0,40}system|developer instruction"
            r"|messages\W{1,6}0\W{1,6}role"
        ),
    ),
    ("base64_vectors", re.compile(r"encoding_format|base64")),
    ("dimensions", re.compile(r"dimension|matryoshka")),
)

_LIMITS: frozenset[Feature] = frozenset({"max_completion_tokens", "max_tokens"})

# Not the field is unknown then: this model does not know the value, or takes none together with tools.
_OTHER_EFFORT = re.compile(r"value|one of|\btools?\b|enum|literal")
_INSTEAD: dict[Effort, Effort] = {"none": "minimal", "minimal": "none"}

# Not the limit's name is wrong then, but its value: without it the answer would have none.
_TOO_MUCH = re.compile(r"too large|too long|at most|maximum|exceed|context")


class FeatureMemory:
    """What one model of one endpoint has. Shared by all calls of a process."""

    def __init__(self, configured: frozenset[Feature] | None = None) -> None:
        """`configured`: what it supports, then nothing is learned; None = everything until it is refused."""
        self._is_configured = configured is not None
        self._features = ALL_FEATURES if configured is None else configured
        self._efforts: dict[tuple[Effort, bool], Effort | None] = {}

    @property
    def features(self) -> frozenset[Feature]:
        return self._features

    async def call(
        self,
        create: Callable[..., Awaitable[Answer]],
        model: str,
        render: "Callable[[frozenset[Feature]], tuple[dict[str, Any], frozenset[Feature]]]",
        deadline: "Deadline",
        effort: Effort | None = None,
    ) -> "tuple[Answer, frozenset[Feature]]":
        """The SDK's answer, and what its request was rendered for: without what the endpoint refuses.

        Args:
            render: from what the endpoint has, the arguments of `create`, and what of the protocol they use.
            effort: how much the model should think. Where it does not know that much, `minimal` and `none`
                stand for each other; else none is sent. None = none is sent.
        """
        from openai import APIStatusError

        features = self._features
        refused: set[Effort] = set()
        while True:
            arguments, used = render(features)
            with_tools = "tools" in used
            level = self._effort(effort, with_tools, refused)
            if level is not None and "reasoning_effort" in features:
                arguments, used = {**arguments, "reasoning_effort": level}, used | {"reasoning_effort"}
            try:
                async with asyncio.timeout_at(deadline.at):
                    timeout_s = max(deadline.remaining_s, 0.001)
                    answer = await create(
                        model=model, timeout=timeout_s, extra_headers=outgoing(), **arguments
                    )
            except APIStatusError as error:
                missing = self.refused(error, used)
                if missing is None:
                    raise
                if level and missing == "reasoning_effort" and _OTHER_EFFORT.search(_said(error)):
                    refused.add(level)
                else:
                    features -= {missing}
            else:
                self.learn(features, model)
                if effort and refused:
                    self._efforts[effort, with_tools] = level
                return answer, features

    def _effort(self, wanted: Effort | None, with_tools: bool, refused: set[Effort]) -> Effort | None:
        """What to send: what is wanted, or worked instead of it, and was not refused; None = nothing."""
        if wanted is None:
            return None
        level = self._efforts.get((wanted, with_tools), wanted)
        for _ in range(2):
            if level is None or level not in refused:
                return level
            level = _INSTEAD.get(level)
        return None

    def refused(self, error: "APIStatusError", used: frozenset[Feature]) -> Feature | None:
        """The part, of those that a request used, that the endpoint does not have, as its refusal reads."""
        if self._is_configured or error.status_code not in _REFUSALS:
            return None
        words = _said(error)
        if used & _LIMITS and _TOO_MUCH.search(words):
            used -= _LIMITS
        return next((feature for feature, sign in _SIGNS if feature in used and sign.search(words)), None)

    def learn(self, features: frozenset[Feature], model: str) -> None:
        """A request went through that used only these."""
        missing = self._features - features
        if not missing or self._is_configured:
            return
        self._features &= features
        get_logger().warning("model.feature_missing", model=model, features=sorted(missing))


def _said(error: "APIStatusError") -> str:
    return " ".join(_words(error.body))[:_MOST_CHARS].lower()


def _words(body: object) -> Iterator[str]:
    """What a refusal says, in any of the shapes it comes in; never what it quotes of the request."""
    if isinstance(body, str):
        yield body
    if not isinstance(body, dict):
        return
    for name in ("param", "code", "message", "error", "raw"):
        if isinstance(said := body.get(name), str):
            yield said
    if isinstance(inside := body.get("metadata"), dict):  # OpenRouter: what the provider said
        yield from _words(inside)
    yield from _details(body.get("detail"))


def _details(detail: object) -> Iterator[str]:
    """FastAPI's: a sentence, or a list of places with what is wrong there."""
    if isinstance(detail, str):
        yield detail
    for problem in detail if isinstance(detail, list) else ():
        if isinstance(problem, dict):
            yield f"{problem.get('loc')} {problem.get('msg')}"
