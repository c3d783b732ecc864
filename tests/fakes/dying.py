"""A process that dies at one of its calls, either before the call has any effect or right after it."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from shared.wiring import Services


class Died(BaseException):
    """The death of the process. It is a BaseException, so that no `except` clause of the app catches it."""


class Death:
    """The death of a process at call number `at`, counted from 0. Later calls raise as well."""

    def __init__(self, at: int, *, is_behind: bool = False) -> None:
        self.calls: list[str] = []
        self._at = at
        self._is_behind = is_behind

    def mortal(self, services: Services, methods: Mapping[str, Collection[str]]) -> Services:
        """Return the services of a process that will die. Only calls of the given methods count, by port; an
        empty collection means all methods of the port.
        """
        ports: dict[str, Any] = {
            name: Mortal(getattr(services, name), names, self) for name, names in methods.items()
        }
        return replace(services, **ports)

    async def call(self, name: str, method: Any, *arguments: Any, **keywords: Any) -> Any:
        """Make a call, unless the process dies first."""
        is_last = self.counted(name)
        result = await method(*arguments, **keywords)
        if is_last:
            raise Died
        return result

    def counted(self, name: str) -> bool:
        """Count a call, and return whether the process dies right after it. Raise Died if it dies before."""
        left = self._at - len(self.calls)
        if left >= 0:
            self.calls.append(name)
        if left < 0 or (left == 0 and not self._is_behind):
            raise Died
        return left == 0


class Mortal:
    """A port of a process that will die."""

    def __init__(self, inner: Any, methods: Collection[str], death: Death) -> None:
        self._inner, self._methods, self._death = inner, methods, death

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if self._methods and name not in self._methods:
            return method
        if inspect.iscoroutinefunction(method):

            async def call(*arguments: Any, **keywords: Any) -> Any:
                return await self._death.call(name, method, *arguments, **keywords)

            return call
        if inspect.isasyncgenfunction(method):

            async def look(*arguments: Any, **keywords: Any) -> Any:
                self._death.counted(name)
                async for one in method(*arguments, **keywords):
                    yield one

            return look
        return method
