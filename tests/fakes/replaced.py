"""A port with some replaced methods; all others are those of the inner port."""

from typing import Any


class Replaced:
    """Passes every call on, but for the methods that are given."""

    def __init__(self, inner: object, **methods: Any) -> None:
        self._inner = inner
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
