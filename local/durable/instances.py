"""Data model of stored orchestration instances, and the error for an instance id that is in use."""

from dataclasses import dataclass
from enum import StrEnum


class RuntimeStatus(StrEnum):
    """The status of an instance, with the names of the client API."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"


ENDED = frozenset({RuntimeStatus.COMPLETED, RuntimeStatus.FAILED, RuntimeStatus.TERMINATED})


@dataclass(frozen=True)
class ParentTask:
    """The task of a parent instance that waits for a sub-orchestration."""

    instance_id: str
    execution_id: str
    task_id: int


@dataclass(frozen=True)
class Instance:
    """An orchestration instance. Each continue-as-new or restart changes its `execution_id`.

    input: JSON text as posted, or None; SDK clients post a JSON string that contains JSON.
    output: JSON text, or the plain reason of a failure or termination.
    custom_status: JSON text. created_at, updated_at: wire timestamps.
    """

    instance_id: str
    execution_id: str
    name: str
    version: str
    input: str | None
    runtime_status: RuntimeStatus
    created_at: str
    updated_at: str
    output: str | None = None
    custom_status: str | None = None
    parent: ParentTask | None = None

    @property
    def ended(self) -> bool:
        return self.runtime_status in ENDED


class InstanceExists(Exception):  # noqa: N818  # the caller's mistake, with the real host's message
    """Error raised if an instance with the same id exists and has not ended."""

    def __init__(self, status: RuntimeStatus) -> None:
        super().__init__(f"An Orchestration instance with the status {status} already exists.")
