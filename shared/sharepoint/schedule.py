"""Rules for when a library is enumerated, reread or hidden. Pure.

`verified_at` limits the age of every effective permission list: each was read at that time or later.
"""

from datetime import datetime, timedelta

from shared.sharepoint.state import Library

CLOSE_AFTER = timedelta(
    hours=24
)  # docs/sharepoint.md promises that a narrowed permission takes effect within this time
NIGHTLY_AFTER = timedelta(hours=12)  # minimum age, at night or for a library that takes this long to read
NIGHTLY_AT_LATEST = timedelta(hours=22, minutes=45)  # the timer may add 10 minutes, and slow work an hour
SLOW_AFTER = timedelta(hours=1)  # allows for pauses that a throttling service requests
NIGHT_HOURS = range(5)  # UTC; SharePoint throttles less then
ITEMS_PER_MINUTE = 200  # 1,250 units a minute at 5 units for each list, for 8 of 10 minutes
FULL_EVERY = timedelta(days=7)  # a full enumeration finds changes that delta lost


def is_enumeration_due(library: Library, now: datetime) -> bool:
    """Return whether a full enumeration must start."""
    return library.enumerated_at is None or now - library.enumerated_at >= FULL_EVERY


def is_pass_due(library: Library, now: datetime) -> bool:
    """Return whether a pass over all permissions must start. Passes over large libraries start earlier."""
    last = library.permissions_at or library.enumerated_at
    if library.is_closed or last is None:
        return True
    if now.hour in NIGHT_HOURS and now - last >= NIGHTLY_AFTER:
        return True
    duration = timedelta(minutes=library.counts.files / ITEMS_PER_MINUTE)
    return now - last >= max(NIGHTLY_AFTER, NIGHTLY_AT_LATEST - duration)


def has_expired_grants(library: Library, now: datetime) -> bool:
    """Return whether a grant of a stored document has expired since it was read."""
    return library.expires_at is not None and library.expires_at <= now


def has_failed_too_long(library: Library, now: datetime) -> bool:
    """Return whether no run has succeeded for a day.

    A closed library is closed again after another day, because failed runs may have reopened parts of it.
    """
    last = _latest(library.succeeded_at or library.first_started_at, library.closed_at)
    return last is not None and now - last > CLOSE_AFTER


def is_too_slow(library: Library, now: datetime) -> bool:
    """Return whether permissions are older than a day although runs succeed.

    After the app was down, the first run gets an hour to reread all permissions.
    """
    last = _latest(library.verified_at or library.first_started_at, library.closed_at)
    work = library.started_at if library.permissions_cursor is None else library.permissions_at
    if last is None or work is None:
        return False
    return now - last > CLOSE_AFTER and now - work > SLOW_AFTER


def _latest(first: datetime | None, second: datetime | None) -> datetime | None:
    return max((moment for moment in (first, second) if moment is not None), default=None)
