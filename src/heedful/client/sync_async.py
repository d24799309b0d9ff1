"""A method written once, for callers that wait and for callers that await.

It is written as *steps*: a generator that yields what is to be done (a `Call`, a `Wait`), is sent what came of it, and
returns its result. It neither sends nor sleeps, so it does not care who does. `either` makes it a plain method where
its owner is `Blocking`, and a coroutine method where its owner is `Awaiting`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from heedful.client.messages import Call, Wait

P = ParamSpec("P")
T = TypeVar("T")
Steps = Generator[Call | Wait, Any, T]


class Blocking(ABC):
    """An owner whose methods return once their steps are done."""

    @abstractmethod
    def _run(self, steps: Steps[T]) -> T:
        """Do all `steps` and return their result."""


class Awaiting(ABC):
    """An owner whose methods are coroutines, to be awaited."""

    @abstractmethod
    async def _run(self, steps: Steps[T]) -> T:
        """Do all `steps` and return their result."""


class either(Generic[P, T]):
    """A decorator that makes a generator of steps a plain method of a `Blocking` owner and a coroutine method of an
    `Awaiting` one."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

        @wraps(steps)
        def blocking(owner: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
            return owner._run(steps(owner, *args, **kwargs))

        @wraps(steps)
        async def awaiting(owner: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
            return await owner._run(steps(owner, *args, **kwargs))

        self._ways = {Blocking: blocking, Awaiting: awaiting}

    @overload
    def __get__(self, owner: None, of: type) -> Callable[..., object]: ...
    @overload
    def __get__(self, owner: Blocking, of: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Awaiting, of: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, owner: Any, of: type) -> Any:
        way = self._ways[Awaiting if issubclass(of, Awaiting) else Blocking]
        return way if owner is None else MethodType(way, owner)
