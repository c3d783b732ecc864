"""Episodes run: one at a time for an instance, side by side for different instances."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from local.durable.episode import Completion, Episode, Intake, conclude, failed, framed, take_in
from local.durable.episode_writer import Committed
from local.durable.functions import AppFunctions
from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.instances import Instance, RuntimeStatus
from local.durable.protocol import TimerLimits, custom_status_text, run_generator, trigger_json
from local.durable.replay import replay
from local.durable.store import Store
from local.durable.work import ReplayFailed, ReplayOutcome, ReplayScope

_LOG = logging.getLogger(__name__)


class EpisodeRunner:
    """Takes what waits for an instance, replays it, writes the outcome, until nothing waits any more.

    Args:
        on_commit: called after each episode with the work that it set going.
    """

    def __init__(
        self,
        store: Store,
        functions: AppFunctions,
        limits: TimerLimits,
        on_commit: Callable[[Committed], None],
    ) -> None:
        self._store = store
        self._functions = functions
        self._limits = limits
        self._on_commit = on_commit
        self._running: dict[str, asyncio.Task[None]] = {}
        self._news: set[str] = set()
        self._stopping = False

    def wake(self, instance_id: str) -> None:
        """An instance has news. If an episode of it is running, another one follows."""
        self._news.add(instance_id)
        if instance_id in self._running or self._stopping:
            return
        task = asyncio.create_task(self._run(instance_id), name=f"episodes of {instance_id}")
        self._running[instance_id] = task

    async def stop(self) -> None:
        """Let the episodes that have begun end, and begin no other."""
        self._stopping = True
        await asyncio.gather(*self._running.values())

    async def _run(self, instance_id: str) -> None:
        try:
            while instance_id in self._news and not self._stopping:
                # Results that are ready at this moment come along: one replay instead of several.
                await asyncio.sleep(0)
                self._news.discard(instance_id)
                await self._run_episode(instance_id)
        except Exception:  # noqa: BLE001  # a defect in one instance must not end the others
            # The store is as it was before the episode; it is tried again at the next event or start.
            _LOG.exception("durable.episode_broken instance_id=%s", instance_id)
        finally:
            del self._running[instance_id]

    async def _run_episode(self, instance_id: str) -> None:
        instance = self._store.find(instance_id)
        if instance is None or instance.ended:
            return
        waiting = self._store.waiting(instance_id)
        suspended = instance.runtime_status is RuntimeStatus.SUSPENDED
        intake, taken = take_in([item.event for item in waiting], suspended=suspended)
        if not taken:
            return
        episode = await self._decide(instance, intake)
        self._on_commit(self._store.commit(instance, [waiting[index].position for index in taken], episode))

    async def _decide(self, instance: Instance, intake: Intake) -> Episode:
        timestamp = utc_text(datetime.now(UTC))
        former = instance.custom_status
        if intake.terminated is not None:
            ending = Completion(RuntimeStatus.TERMINATED, intake.terminated.input or "")
            return Episode(framed(intake.taken, [], ending, timestamp), former, ending=ending)
        status = RuntimeStatus.SUSPENDED if intake.suspended else RuntimeStatus.RUNNING
        if not intake.concerns_generator:
            return Episode(framed(intake.taken, [], None, timestamp), former, status)
        try:
            return await self._replay(instance, intake, status, timestamp)
        except ReplayFailed as error:
            ending = failed(error)
            return Episode(framed(intake.taken, [], ending, timestamp), former, ending=ending)

    async def _replay(
        self, instance: Instance, intake: Intake, status: RuntimeStatus, timestamp: str
    ) -> Episode:
        started = HistoryEvent(event_type=EventType.ORCHESTRATOR_STARTED, timestamp=timestamp)
        past = self._store.history(instance.instance_id)
        history = [*past, started, *intake.taken]
        trigger = trigger_json(instance, history, self._limits)
        state = await run_generator(self._functions, instance.name, trigger)
        scope = ReplayScope(
            instance_id=instance.instance_id,
            execution_id=instance.execution_id,
            parent_instance_id=instance.parent.instance_id if instance.parent else None,
            orchestrators=self._functions.orchestrators(),
            activities=self._functions.activities(),
        )
        custom_status = custom_status_text(state, instance.name)
        if custom_status is None and not past:
            # The first episode after continue_as_new carries the former one over, as the dispatcher does.
            custom_status = instance.custom_status
        outcome = replay(history, state.actions[0], scope)
        _warn_if_ahead(instance, outcome)
        ending = conclude(instance, state, outcome)
        completion = ending if isinstance(ending, Completion) else None
        return Episode(
            events=framed(intake.taken, outcome.requests, completion, timestamp),
            status=status,
            requests=outcome.requests,
            cancelled_timers=outcome.cancelled_timers,
            custom_status=custom_status,
            ending=ending,
        )


def _warn_if_ahead(instance: Instance, outcome: ReplayOutcome) -> None:
    if outcome.unreached:
        # Both sides count on, each for itself: their sequence numbers may differ from here on.
        _LOG.warning(
            "durable.generator_ahead orchestrator=%s instance_id=%s unreached=%d: the orchestrator went on "
            "while the host still awaits an earlier task; see Traps in docs/durable-executor.md",
            instance.name,
            instance.instance_id,
            outcome.unreached,
        )
