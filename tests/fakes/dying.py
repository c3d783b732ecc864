"""A process that dies at one of its calls: before the call does anything, or right after it."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from shared.wiring import Services


class Died(BaseException):
    """The process is gone: no `except` of ours sees this."""


class Death:
    """Comes at call number `at`, counted from 0. A dead process calls nothing more."""

    def __init__(self, at: int, *, is_behind: bool = False) -> None:
        self.calls: list[str] = []
        self._at = at
        self._is_behind = is_behind

    def mortal(self, services: Services, methods: Mapping[str, Collection[str]]) -> Services:
        """The same services in a process that will die, with the methods of each that count; none = all."""
        ports: dict[str, Any] = {
            name: Mortal(getattr(services, name), names, self) for name, names in methods.items()
        }
        return replace(services, **ports)

    async def call(self, name: str, method: Any, *arguments: Any, **keywords: Any) -> Any:
        """Make a call, unless death comes first."""
        is_last = self.counted(name)
        made = await method(*arguments, **keywords)
        if is_last:
            raise Died
        return made

    def counted(self, name: str) -> bool:
        """Count a call; whether death comes right after it. Raises Died when it comes before."""
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
