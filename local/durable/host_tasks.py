"""The tasks of the host's own replay: leaves that a history event ends, and the tasks made of them.

Mirrors what .NET's Task, Task.WhenAll and Task.WhenAny do for DurableTask.Core. A task finishes once, and
says so at once: the order in which sequence numbers are given out follows from that.
"""

from collections.abc import Callable, Sequence


class HostTask:
    """A task that is finished from outside, by `finish`: an activity, child, timer or awaited event."""

    def __init__(self) -> None:
        self.done = False
        self.failed = False
        self._callback: Callable[[bool], None] | None = None

    def then(self, callback: Callable[[bool], None]) -> None:
        """Call back with `failed` when this task ends, or now if it has. A task has one parent."""
        if self.done:
            callback(self.failed)
        else:
            self._callback = callback

    def finish(self, *, failed: bool = False) -> None:
        """End this task, and whatever ends with it. A second call changes nothing."""
        if self.done:
            return
        self.done, self.failed = True, failed
        if self._callback is not None:
            self._callback(failed)


class CompoundTask(HostTask):
    """Done when `needed` of the children are: all of them for WhenAll, one for WhenAny.

    Failed children count as finished: on the host a WhenAll waits for all, also after an error.
    """

    def __init__(self, children: Sequence[HostTask], *, needed: int) -> None:
        super().__init__()
        self._missing = min(needed, len(children))
        if self._missing == 0:
            self.finish()
        for child in children:
            child.then(self._child_finished)

    def _child_finished(self, _failed: bool) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self.finish()


class RetriedTask(HostTask):
    """attempt, timer, attempt, ... and one more timer, due at once, after the last failure.

    That last timer is a fault of early DurableTask which had to stay; the SDK waits for it.
    Source: DurableTask.Core/RetryInterceptor.cs.

    Args:
        max_attempts: at least 1.
        start_attempt: schedules one attempt and returns its task.
        start_timer: schedules a timer; its argument says whether it is the last one, due at once.
    """

    def __init__(
        self,
        max_attempts: int,
        start_attempt: Callable[[], HostTask],
        start_timer: Callable[[bool], HostTask],
    ) -> None:
        super().__init__()
        self._attempts_left = max_attempts
        self._start_attempt = start_attempt
        self._start_timer = start_timer
        self._attempt()

    def _attempt(self) -> None:
        self._attempts_left -= 1
        self._start_attempt().then(self._attempt_ended)

    def _attempt_ended(self, failed: bool) -> None:
        if not failed:
            self.finish()
            return
        self._start_timer(self._attempts_left == 0).then(self._timer_fired)

    def _timer_fired(self, _failed: bool) -> None:
        if self._attempts_left == 0:
            self.finish(failed=True)
        else:
            self._attempt()
