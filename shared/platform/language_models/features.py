"""The protocol features that a model endpoint supports, as configured in MODEL_FEATURES or learned from
rejected requests.

A refusal is only a suspicion. It is remembered once the same request succeeds without the refused feature, so
that a request that is wrong for another reason disables nothing.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from shared.platform.calls import Deadline
from shared.platform.language_models.protocol import ALL_FEATURES, Effort, Feature
from shared.platform.loading import load
from shared.platform.telemetry import get_logger
from shared.platform.tracing import outgoing

if TYPE_CHECKING:
    from openai import APIStatusError

Answer = TypeVar("Answer")

# Statuses for unsupported features: 400 by OpenAI and LM Studio, 404 by OpenRouter, 422 by servers based on
# pydantic, 501 by llama.cpp.
_REFUSALS = frozenset({400, 404, 422, 501})
# Limit on the part of an error message that is searched; some endpoints echo the whole request.
_MOST_CHARS = 2000

# Patterns of error messages by feature, most likely first. Only features that the request used are
# considered.
_SIGNS: tuple[tuple[Feature, re.Pattern[str]], ...] = (
    ("reasoning_effort", re.compile(r"reasoning.?effort")),
    ("stream_usage", re.compile(r"stream_options|include_usage")),
    ("max_completion_tokens", re.compile(r"max_completion_tokens")),
    ("max_tokens", re.compile(r"max_tokens")),
    ("json_schema", re.compile(r"json_schema|response_format|structured.?output|grammar|guided")),
    ("json_object", re.compile(r"json_object|response_format|json.?mode")),
    ("tools", re.compile(r"\btools?\b|tool_choice|tool.?call|function.?call")),
    # These patterns are strict, because a picture may also be rejected as too large or as an unsupported
    # type.
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

# Matches errors of endpoints that know the field but reject this value, or any effort in combination with
# tools.
_OTHER_EFFORT = re.compile(r"value|one of|\btools?\b|enum|literal")
_INSTEAD: dict[Effort, Effort] = {"none": "minimal", "minimal": "none"}

# Matches errors about a value that is too large. The field is supported, and without it the answer would be
# unlimited.
_TOO_MUCH = re.compile(r"too large|too long|at most|maximum|exceed|context")


class FeatureMemory:
    """The supported features of one model at one endpoint, shared by all calls of a process."""

    def __init__(self, configured: frozenset[Feature] | None = None) -> None:
        """Store the features set by the operator. With None, every feature is assumed to work until a request
        with it is rejected.
        """
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
        deadline: Deadline,
        effort: Effort | None = None,
    ) -> "tuple[Answer, frozenset[Feature]]":
        """Send a request, and repeat it without any feature that the endpoint rejects. Return the response
        and the features that remain.

        Args:
            render: returns the arguments of `create` for a set of features, and the features they use.
            effort: reasoning effort. An endpoint that rejects `minimal` or `none` gets the other one, then no
                effort. None = send none.
        """
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
            except load("openai", "APIStatusError") as error:
                missing = self.rejected_feature(error, used)
                if missing is None:
                    raise
                if level and missing == "reasoning_effort" and _OTHER_EFFORT.search(_message_of(error)):
                    refused.add(level)
                else:
                    features -= {missing}
            else:
                self.learn(features, model)
                if effort and refused:
                    self._efforts[effort, with_tools] = level
                return answer, features

    def _effort(self, effort: Effort | None, with_tools: bool, refused: set[Effort]) -> Effort | None:
        """Return the effort to send: the requested one or a substitute that was not rejected. None means that
        the field is omitted.
        """
        if effort is None:
            return None
        level = self._efforts.get((effort, with_tools), effort)
        for _ in range(2):
            if level is None or level not in refused:
                return level
            level = _INSTEAD.get(level)
        return None

    def rejected_feature(self, error: "APIStatusError", used: frozenset[Feature]) -> Feature | None:
        """Return the first of the `used` features that an error message reports as unsupported, or None if
        the error has another cause.
        """
        if self._is_configured or error.status_code not in _REFUSALS:
            return None
        words = _message_of(error)
        if used & _LIMITS and _TOO_MUCH.search(words):
            used -= _LIMITS
        return next((feature for feature, sign in _SIGNS if feature in used and sign.search(words)), None)

    def learn(self, features: frozenset[Feature], model: str) -> None:
        """Record that a request with only these features succeeded."""
        missing = self._features - features
        if not missing or self._is_configured:
            return
        self._features &= features
        get_logger().warning("model.feature_missing", model=model, features=sorted(missing))


def _message_of(error: "APIStatusError") -> str:
    return " ".join(_words(error.body))[:_MOST_CHARS].lower()


def _words(body: object) -> Iterator[str]:
    """Yield the texts of an error response, in any known format. If the response echoes the request, the echo
    is left out.
    """
    if isinstance(body, str):
        yield body
    if not isinstance(body, dict):
        return
    for name in ("param", "code", "message", "error", "raw"):
        if isinstance(text := body.get(name), str):
            yield text
    # OpenRouter puts the error message of the provider into this field
    if isinstance(inside := body.get("metadata"), dict):
        yield from _words(inside)
    yield from _details(body.get("detail"))


def _details(detail: object) -> Iterator[str]:
    """Yield the details of a FastAPI error: a sentence, or the location and message of each problem."""
    if isinstance(detail, str):
        yield detail
    for problem in detail if isinstance(detail, list) else ():
        if isinstance(problem, dict):
            yield f"{problem.get('loc')} {problem.get('msg')}"
