"""Counts of what was asked of the server, for tests that count calls. Touched by the event loop only."""

from collections import Counter, deque
from dataclasses import dataclass

from local.model_server.protocol.replies import Json, Usage

LATEST_CALLS = 200  # more than any one question makes


@dataclass
class Call:
    """One chat request with the tokens that a provider would bill: of what was delivered, to its last piece.

    A request that was answered with an error costs nothing.
    """

    task: str
    prompt_tokens: int
    completion_tokens: int = 0

    @property
    def body(self) -> list[object]:
        return [self.task, self.prompt_tokens, self.completion_tokens]


class Stats:
    """Counters since the start or the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Set everything to zero, the counts behind `fail=STATUS:COUNT` too."""
        self._requests: Counter[str] = Counter()
        self._tasks: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._struck: Counter[str] = Counter()
        self._drawn: Counter[str] = Counter()
        self._texts_embedded = 0
        self._tokens: Counter[str] = Counter()
        self._failures = 0
        self._call_count = 0
        self._calls: deque[Call] = deque(maxlen=LATEST_CALLS)

    def count_request(self, kind: str, model: str, *, is_struck: bool = True) -> int:
        """Note a request; return its number, from 1, among those with this full model name that it is for."""
        self._requests[kind] += 1
        self._models[model] += 1
        self._struck[model] += is_struck
        return self._struck[model]

    def count_draw(self, fault: str) -> None:
        """Note what `chaos` drew; empty = no fault."""
        self._drawn[fault or "none"] += 1

    def count_failure(self) -> None:
        self._failures += 1

    def count_reply(self, task: str, usage: Usage) -> None:
        """Note an answered chat request by what it asked for: a schema's name, "documents", "tools", ..."""
        self._tasks[task] += 1
        self._tokens["prompt"] += usage.prompt_tokens
        self._tokens["completion"] += usage.completion_tokens

    def begin_call(self, task: str, prompt_tokens: int) -> Call:
        """Note a chat request whose reply is on its way; what of it arrives is added as it does."""
        call = Call(task, prompt_tokens)
        self._call_count += 1
        self._calls.append(call)
        return call

    def count_embeddings(self, texts: int, tokens: int) -> None:
        self._texts_embedded += texts
        self._tokens["embedding"] += tokens

    @property
    def body(self) -> Json:
        return {
            "requests": {kind: self._requests[kind] for kind in ("chat", "embeddings")},
            "by_task": dict(sorted(self._tasks.items())),
            "by_model": dict(sorted(self._models.items())),
            "texts_embedded": self._texts_embedded,
            "tokens": {kind: self._tokens[kind] for kind in ("prompt", "completion", "embedding")},
            "calls": {"count": self._call_count, "latest": [call.body for call in self._calls]},
            "failures_injected": self._failures,
            "faults_drawn": dict(sorted(self._drawn.items())),
        }
