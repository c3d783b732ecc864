"""The todo list of a run as it advances. Pure: each function gives the list after something happened.

An item is begun when all that it depends on is done. Items that others depend on are about finding something
out: they are done when evidence is there. The others are done when the answer is.
"""

from collections.abc import Sequence

from shared.models.plan import TodoItem, TodoStatus

Todo = tuple[TodoItem, ...]


def started(todo: Sequence[TodoItem]) -> Todo:
    """The plan is made: what depends on nothing is begun."""
    return _with_ready_begun(tuple(todo))


def evidence_found(todo: Sequence[TodoItem]) -> Todo:
    """There is evidence: what others depend on is done, and these are begun."""
    needed = {position for item in todo for position in item.dependencies}
    found = tuple(
        _with_status(item, "done") if item.status == "in_progress" and item.position in needed else item
        for item in todo
    )
    return _with_ready_begun(found)


def tried_again(todo: Sequence[TodoItem]) -> Todo:
    """What is in progress is tried once more."""
    return tuple(
        item.model_copy(update={"attempts": item.attempts + 1}) if item.status == "in_progress" else item
        for item in todo
    )


def closed(todo: Sequence[TodoItem], *, succeeded: bool) -> Todo:
    """The run has ended: nothing is left pending. What was found is worth nothing without an answer."""
    return tuple(_with_status(item, "done" if succeeded else "failed") for item in todo)


def _with_ready_begun(todo: Todo) -> Todo:
    done = {item.position for item in todo if item.status == "done"}
    return tuple(
        _with_status(item, "in_progress")
        if item.status == "pending" and done.issuperset(item.dependencies)
        else item
        for item in todo
    )


def _with_status(item: TodoItem, status: TodoStatus) -> TodoItem:
    return item.model_copy(update={"status": status, "attempts": max(item.attempts, 1)})
