"""The clients and stores that `shared.platform` uses, a part of `shared.wiring.Services`."""

from typing import Protocol


class PlatformServices(Protocol):
    """What platform needs of the outside world."""
