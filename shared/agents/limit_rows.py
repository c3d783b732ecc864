"""Rows of what people used up, changed by compare-and-swap: for all calls of a person that wait, at once.

While one write is under way, whoever else changes the same row waits, and the next write makes all their
changes. So nobody waits for longer than two writes, however many there are. A process remembers the rows that
it wrote of late, so that mostly one write is all: if another instance was quicker, the write is refused, and
the row is read. Neither a refusal, nor that nothing is to be done, is believed of what is only remembered.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from shared.errors import ConflictError, TooManyRequestsError
from shared.models.limits import UserLimits
from shared.ports import UserLimitStore

LIMIT_S = 2.0  # of one write with all its tries: rather let in than kept waiting
_MAX_TRIES = 12  # as many instances that write for one person at the same moment; see sub_agents/control.py
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_REMEMBERED = 1000  # people of one process, a few hundred bytes each

Decide = Callable[[UserLimits], UserLimits]
"""The row as it is to be, or TooManyRequestsError."""

Outcome = UserLimits | TooManyRequestsError


@dataclass(frozen=True)
class _Waiting:
    decide: Decide
    outcome: "asyncio.Future[UserLimits]"


class _Rows:
    """What this process knows of one store's rows, and who waits for which."""

    def __init__(self) -> None:
        self.remembered: OrderedDict[str, UserLimits] = OrderedDict()
        self.waiting: dict[str, list[_Waiting]] = {}
        self.at_work: set[asyncio.Task[None]] = set()  # else nothing holds them


_known: WeakKeyDictionary[UserLimitStore, _Rows] = WeakKeyDictionary()


async def changed(user_id: str, store: UserLimitStore, decide: Decide) -> UserLimits:
    """The row as `decide` makes it of what is stored.

    Raises:
        TooManyRequestsError: `decide` raised it.
        GroundworkError, TimeoutError: the store failed, or was slow.
    """
    rows = _known.setdefault(store, _Rows())
    waiting = _Waiting(decide, asyncio.get_running_loop().create_future())
    if user_id in rows.waiting:
        rows.waiting[user_id].append(waiting)
    else:
        rows.waiting[user_id] = [waiting]
        task = asyncio.create_task(_work(user_id, store, rows))
        rows.at_work.add(task)
        task.add_done_callback(rows.at_work.discard)
    return await waiting.outcome


def would_change(user_id: str, store: UserLimitStore, decide: Decide) -> bool:
    """Whether what is remembered of the row makes for a change, and no refusal."""
    rows = _known.get(store)
    state = rows.remembered.get(user_id) if rows is not None else None
    if state is None:
        return False
    outcomes, _ = _applied([decide], state)
    return _is_believed(outcomes, state)


async def _work(user_id: str, store: UserLimitStore, rows: _Rows) -> None:
    """Make the changes of all who wait, until nobody does."""
    batch: list[_Waiting] = []
    try:
        while batch := rows.waiting[user_id]:
            rows.waiting[user_id] = []
            try:
                async with asyncio.timeout(LIMIT_S):
                    outcomes = await _swapped(user_id, store, rows, [one.decide for one in batch])
            except Exception as failed:  # noqa: BLE001  # whoever asked raises it
                _tell(batch, [failed] * len(batch))
            else:
                _tell(batch, outcomes)
    finally:
        # Without an end here whoever waits would wait for ever.
        left = [*batch, *rows.waiting.pop(user_id)]
        _tell(left, [ConflictError("The process ends.")] * len(left))


def _tell(batch: Sequence[_Waiting], outcomes: Sequence[UserLimits | Exception]) -> None:
    for one, outcome in zip(batch, outcomes, strict=True):
        if one.outcome.done():
            continue  # its caller has gone
        if isinstance(outcome, UserLimits):
            one.outcome.set_result(outcome)
        else:
            one.outcome.set_exception(outcome)


async def _swapped(
    user_id: str, store: UserLimitStore, rows: _Rows, decisions: Sequence[Decide]
) -> list[Outcome]:
    for tries in range(_MAX_TRIES):
        state = rows.remembered.pop(user_id, None)
        outcomes, final = _applied(decisions, state or UserLimits())
        if state is None or not _is_believed(outcomes, state):
            state = await store.read(user_id)
            outcomes, final = _applied(decisions, state)
        try:
            written = final if final == state else await store.write(user_id, final)
        except ConflictError:
            await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
        else:
            _remember(rows.remembered, user_id, written)
            return outcomes
    raise ConflictError("Too many calls of one person at the same time.", "Try again in a moment.")


def _applied(decisions: Sequence[Decide], state: UserLimits) -> tuple[list[Outcome], UserLimits]:
    """What each decision makes of the row as the ones before it left it, and the row in the end."""
    outcomes: list[Outcome] = []
    for decide in decisions:
        try:
            state = decide(state)
        except TooManyRequestsError as refused:
            outcomes.append(refused)
        else:
            outcomes.append(state)
    return outcomes, state


def _is_believed(outcomes: Sequence[Outcome], state: UserLimits) -> bool:
    before: Outcome = state
    for outcome in outcomes:
        if isinstance(outcome, TooManyRequestsError) or outcome == before:
            return False
        before = outcome
    return True


def _remember(remembered: OrderedDict[str, UserLimits], user_id: str, state: UserLimits) -> None:
    remembered[user_id] = state
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)
