"""Counts of what was asked of the server, for tests that count calls. Touched by the event loop only."""

from collections import Counter, deque
from dataclasses import dataclass, field

from local.model_server.protocol.replies import Json

LATEST_CALLS = 200  # more than any one question makes


@dataclass
class Call:
    """One chat request with the tokens that a provider would bill: of what was delivered, to its last piece.

    A request that was answered with an error costs nothing.
    """

    task: str
    prompt_tokens: int
    completion_tokens: int = 0


@dataclass
class Stats:
    """Counters since the start or the last reset."""

    texts_embedded: int = 0
    failures: int = 0
    _requests: Counter[str] = field(default_factory=Counter)
    _models: Counter[str] = field(default_factory=Counter)
    _struck: Counter[str] = field(default_factory=Counter)
    _call_count: int = 0
    _calls: deque[Call] = field(default_factory=lambda: deque(maxlen=LATEST_CALLS))

    def count_request(self, kind: str, model: str, *, is_struck: bool) -> int:
        """Note a request; return its number, from 1, among those with this full model name that it is for."""
        self._requests[kind] += 1
        self._models[model] += 1
        self._struck[model] += is_struck
        return self._struck[model]

    def begin_call(self, task: str, prompt_tokens: int) -> Call:
        """Note a chat request whose reply is on its way; what of it arrives is added as it does."""
        call = Call(task, prompt_tokens)
        self._call_count += 1
        self._calls.append(call)
        return call

    @property
    def body(self) -> Json:
        latest = [[call.task, call.prompt_tokens, call.completion_tokens] for call in self._calls]
        return {
            "requests": {kind: self._requests[kind] for kind in ("chat", "embeddings")},
            "by_model": dict(sorted(self._models.items())),
            "texts_embedded": self.texts_embedded,
            "calls": {"count": self._call_count, "latest": latest},
            "failures_injected": self.failures,
        }
