"""A wrapper that replaces some methods of a port and forwards all other calls to it."""

from typing import Any


class Replaced:
    """A wrapper of a port in which the given methods are replaced."""

    def __init__(self, inner: object, **methods: Any) -> None:
        self._inner = inner
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
