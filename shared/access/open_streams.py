"""How many streams each person has open in this process."""

from weakref import WeakSet

from shared.platform.errors import TooManyRequestsError
from shared.platform.settings import LimitSettings

_SOON_S = 5.0


class OpenStreams:
    """Which streams of one process are open, by person; one that nobody holds any more does not count."""

    def __init__(self) -> None:
        self._streams: dict[str, WeakSet[object]] = {}

    def open(self, user_id: str, stream: object, rules: LimitSettings) -> None:
        """Count a stream.

        Raises:
            TooManyRequestsError: they have as many open as they may.
        """
        self._streams = {one: streams for one, streams in self._streams.items() if streams}
        mine = self._streams.setdefault(user_id, WeakSet())
        if rules.max_open_streams and len(mine) >= rules.max_open_streams:
            raise TooManyRequestsError(
                f"You have reached the limit of open streams ({len(mine)}).",
                "Close some of them.",
                retry_after_s=_SOON_S,
            )
        mine.add(stream)
