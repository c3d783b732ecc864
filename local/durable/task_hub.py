"""The operations that clients may perform on instances: start, get, list, raise events, terminate and
purge.
"""

import re
from collections.abc import Callable
from uuid import uuid4

from local.durable import instance_table
from local.durable.clock import Clock
from local.durable.functions import AppFunctions, unknown_function
from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.instance_table import InstanceFilter, InstancePage
from local.durable.instances import Instance, RuntimeStatus
from local.durable.store import Store

_MAX_INSTANCE_ID_LENGTH = 100  # same limit as in DurableClient.cs of the real host
_INVALID_IN_IDS = re.compile(r"[/\\#?\x00-\x1f\x7f]")


class InvalidRequest(Exception):  # noqa: N818  # the caller's mistake, answered with 400
    """Error raised for an argument that the real host would reject. It has the message of the real host."""


class TaskHub:
    """The client operations of one task hub. Changes take effect in the next episode of an instance.

    Args:
        wake: called with the id of an instance that has new pending events.
    """

    def __init__(
        self, store: Store, functions: AppFunctions, clock: Clock, wake: Callable[[str], None]
    ) -> None:
        self._store = store
        self._functions = functions
        self._clock = clock
        self._wake = wake

    def start_new(self, name: str, instance_id: str | None, input_json: str | None, version: str) -> str:
        """Start an instance and return its id. An ended instance with the same id is replaced.

        Raises:
            InvalidRequest: the orchestrator doesn't exist, or the id is invalid.
            InstanceExists: an instance with this id has not ended.
        """
        names = self._functions.orchestrators()
        if name not in names:
            raise InvalidRequest(unknown_function(name, "orchestrator", names))
        now = utc_text(self._clock.now())
        instance = Instance(
            instance_id=_valid_id(instance_id) if instance_id else uuid4().hex,
            execution_id=uuid4().hex,
            name=name,
            version=version,
            input=input_json,
            runtime_status=RuntimeStatus.PENDING,
            created_at=now,
            updated_at=now,
        )
        self._store.create(instance)
        self._wake(instance.instance_id)
        return instance.instance_id

    def find(self, instance_id: str) -> Instance | None:
        return self._store.find(instance_id)

    def history(self, instance_id: str) -> list[HistoryEvent]:
        return self._store.history(instance_id)

    def list_page(self, criteria: InstanceFilter, size: int, token: str | None) -> InstancePage:
        """Return a page of matching instances, ordered by instance id.

        Raises:
            ValueError: the token is invalid.
        """
        return instance_table.list_page(self._store.database, criteria, size, token)

    def raise_event(self, instance_id: str, event_name: str, data_json: str) -> bool:
        """Raise an external event for an instance. Return False if the instance doesn't exist or has
        ended.
        """
        return self._post(instance_id, EventType.EVENT_RAISED, name=event_name, data=data_json)

    def terminate(self, instance_id: str, reason: str) -> bool:
        """Terminate an instance. Return False if it doesn't exist or has ended. As with Azure Storage, its
        sub-orchestrations continue.
        """
        return self._post(instance_id, EventType.EXECUTION_TERMINATED, data=reason)

    def purge(self, instance_id: str) -> bool:
        """Delete an instance, whatever its status. Return False if it doesn't exist."""
        return self._store.purge(instance_id)

    def purge_matching(self, criteria: InstanceFilter) -> int:
        """Delete all matching instances that have ended, and return their number."""
        return instance_table.purge(self._store.database, criteria)

    def _post(
        self,
        instance_id: str,
        event_type: EventType,
        *,
        name: str | None = None,
        data: str | None = None,
        reason: str | None = None,
    ) -> bool:
        event = HistoryEvent(
            event_type=event_type,
            timestamp=utc_text(self._clock.now()),
            name=name,
            input=data,
            reason=reason,
        )
        if not self._store.post(instance_id, event):
            return False
        self._wake(instance_id)
        return True


def _valid_id(instance_id: str) -> str:
    if instance_id.startswith("@"):
        raise InvalidRequest("Orchestration instance ids must not start with @.")
    if _INVALID_IN_IDS.search(instance_id):
        raise InvalidRequest(
            "Orchestration instance ids must not contain /, \\, #, ?, or control characters."
        )
    if len(instance_id) > _MAX_INSTANCE_ID_LENGTH:
        raise InvalidRequest(f"Instance ID lengths must not exceed {_MAX_INSTANCE_ID_LENGTH} characters.")
    return instance_id
