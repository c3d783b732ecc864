"""Runs episodes: one at a time per instance, several instances concurrently."""

import asyncio
import logging
from collections.abc import Callable, Collection

from local.durable.clock import Clock
from local.durable.episode import Completion, Episode, completion_of_failure, conclude, frame_events
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
    """A runner of episodes. It replays an instance for its pending events and commits the outcome, until no
    events are pending.

    Args:
        on_commit: called after each episode with the work it scheduled.
    """

    def __init__(
        self,
        store: Store,
        functions: AppFunctions,
        limits: TimerLimits,
        clock: Clock,
        on_commit: Callable[[Committed], None],
    ) -> None:
        self._store = store
        self._functions = functions
        self._limits = limits
        self._clock = clock
        self._on_commit = on_commit
        self._running: dict[str, asyncio.Task[None]] = {}
        self._news: set[str] = set()
        self._stopping = False
        self._is_held = False

    def hold(self) -> None:
        """Defer all new episodes until `release` is called."""
        self._is_held = True

    def release(self, but: Collection[str]) -> None:
        """Start the deferred episodes. Instances in `but` remain deferred until another call of `wake`."""
        self._is_held = False
        for instance_id in self._news - set(but):
            self.wake(instance_id)

    def wake(self, instance_id: str) -> None:
        """Schedule an episode for the pending events of an instance. It starts after the current one,
        if any.
        """
        self._news.add(instance_id)
        if instance_id in self._running or self._stopping or self._is_held:
            return
        task = asyncio.create_task(self._run(instance_id), name=f"episodes of {instance_id}")
        self._running[instance_id] = task

    async def stop(self) -> None:
        """Wait for the running episodes to end, without starting new ones."""
        self._stopping = True
        await asyncio.gather(*self._running.values())

    async def _run(self, instance_id: str) -> None:
        try:
            while instance_id in self._news and not self._stopping:
                # Yield to the event loop, so that results that are already pending arrive before the replay.
                await asyncio.sleep(0)
                self._news.discard(instance_id)
                await self._run_episode(instance_id)
        except Exception:  # noqa: BLE001  # a defect in one instance must not end the others
            # The failed episode has written nothing, so it is retried at the next event or start.
            _LOG.exception("durable.episode_broken instance_id=%s", instance_id)
        finally:
            del self._running[instance_id]

    async def _run_episode(self, instance_id: str) -> None:
        instance = self._store.find(instance_id)
        if instance is None or instance.ended:
            return
        waiting = self._store.waiting(instance_id)
        if not waiting:
            return
        episode = await self._decide(instance, [item.event for item in waiting])
        self._on_commit(self._store.commit(instance, [item.position for item in waiting], episode))

    async def _decide(self, instance: Instance, events: list[HistoryEvent]) -> Episode:
        timestamp = utc_text(self._clock.now())
        kinds = [event.event_type for event in events]
        try:
            if EventType.EXECUTION_TERMINATED not in kinds:
                return await self._replay(instance, events, timestamp)
            place = kinds.index(EventType.EXECUTION_TERMINATED)
            events = events[: place + 1]
            ending = Completion(RuntimeStatus.TERMINATED, events[place].input or "")
        except ReplayFailed as error:
            ending = completion_of_failure(error)
        return Episode(frame_events(events, [], ending, timestamp), instance.custom_status, ending=ending)

    async def _replay(self, instance: Instance, events: list[HistoryEvent], timestamp: str) -> Episode:
        started = HistoryEvent(event_type=EventType.ORCHESTRATOR_STARTED, timestamp=timestamp)
        past = self._store.history(instance.instance_id)
        history = [*past, started, *events]
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
            # As in the real dispatcher, the first episode after continue_as_new keeps the custom status.
            custom_status = instance.custom_status
        outcome = replay(history, state.actions[0], scope)
        _warn_if_ahead(instance, outcome)
        ending = conclude(instance, state, outcome)
        completion = ending if isinstance(ending, Completion) else None
        return Episode(
            events=frame_events(events, outcome.requests, completion, timestamp),
            requests=outcome.requests,
            cancelled_timers=outcome.cancelled_timers,
            custom_status=custom_status,
            ending=ending,
        )


def _warn_if_ahead(instance: Instance, outcome: ReplayOutcome) -> None:
    if outcome.unreached:
        # The SDK and this host count actions independently, so their sequence numbers may differ from here
        # on.
        _LOG.warning(
            "durable.generator_ahead orchestrator=%s instance_id=%s unreached=%d: the orchestrator continued "
            "while the host still awaits an earlier task; see Traps in docs/internals/durable-executor.md",
            instance.name,
            instance.instance_id,
            outcome.unreached,
        )
