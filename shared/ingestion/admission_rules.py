"""Rules that decide which documents of the backlog may be ingested at the same time. Pure.

The number is small because orchestrations slow down questions: with 200 at once a question took a minute,
with eight little more than a second.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from shared.documents.open_work import OpenWork, Place, Urgency

PLACES = 8
PLACES_WHILE_ASKED = 4
# Grace period before an execution is first checked, so that it has time to start.
FIRST_LOOK = timedelta(seconds=1)
_URGENCIES: tuple[Urgency, ...] = ("change", "upload", "background")


def assign_places(
    backlog: Collection[OpenWork], occupied: Sequence[Place], *, is_asked: bool, now: datetime
) -> list[Place]:
    """Return new places for documents of the backlog, in addition to the occupied ones.

    The person with the fewest documents in progress comes first, then the more urgent and older document.
    One place is kept for uploads and changes by people who have none in progress. Long files of one person
    take at most half of the places, so that others don't wait for minutes; short texts end within a second
    and may take all but the kept one.

    Args:
        is_asked: whether a person is waiting for an answer.
    """
    places = PLACES_WHILE_ASKED if is_asked else PLACES
    at_work = Counter(place.whose for place in occupied)
    long = Counter(place.whose for place in occupied if place.is_long)
    free = places - 1 - sum(not place.is_kept for place in occupied)
    is_kept_free = not any(place.is_kept for place in occupied)
    occupied_ids = {place.doc_id for place in occupied}
    waiting = {
        work.doc_id: work for work in backlog if work.doc_id not in occupied_ids and _is_due(work, now)
    }
    assigned: list[Place] = []
    while free > 0 or is_kept_free:
        may = [work for work in waiting.values() if not work.is_long or long[work.whose] < places // 2]
        if free <= 0:
            may = [work for work in may if work.urgency != "background" and not at_work[work.whose]]
        if not may:
            break
        work = min(may, key=lambda one: (at_work[one.whose], _URGENCIES.index(one.urgency), one.asked_at))
        assigned.append(
            Place(
                **work.model_dump(include={"doc_id", "blob_name", "whose", "is_long"}),
                is_kept=free <= 0,
                look_at=now + FIRST_LOOK,
            )
        )
        is_kept_free = is_kept_free and free > 0
        free -= 1
        at_work[work.whose] += 1
        long[work.whose] += work.is_long
        del waiting[work.doc_id]
    return assigned


def _is_due(work: OpenWork, now: datetime) -> bool:
    return work.due_at is None or work.due_at <= now
