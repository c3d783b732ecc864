"""The clients and stores that `shared.runs` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.documents.services import DocumentServices


class RunServices(DocumentServices, Protocol):
    """What runs needs of the outside world."""
