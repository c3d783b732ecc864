"""Helpers that perform queued work immediately, instead of the app's queue functions."""

from shared.conversations.models import EraseTask, RememberTask
from shared.conversations.remembering import remember
from shared.erasure.threads import erase
from shared.platform.instances import StopRun
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE
from shared.wiring import Services
from tests.fakes.stores import InMemoryTaskQueues


async def stop_nothing(_: str) -> None:
    """Do nothing. Used where an erasure would stop an orchestration, but none exists."""


async def remember_queued(services: Services) -> None:
    """Add the turns in the queue to the memory of their users."""
    assert isinstance(services.queues, InMemoryTaskQueues)
    for message in services.queues.take(TURNS_QUEUE):
        await remember(RememberTask.model_validate_json(message), services)


async def erase_queued(services: Services, stop: StopRun = stop_nothing) -> list[float]:
    """Perform the queued erasure passes. Return the delay, in seconds, with which each was queued."""
    assert isinstance(services.queues, InMemoryTaskQueues)
    queued = services.queues.messages.pop(ERASURES_QUEUE, [])
    for message, _ in queued:
        await erase(EraseTask.model_validate_json(message), services, stop)
    return [delay_s for _, delay_s in queued]
