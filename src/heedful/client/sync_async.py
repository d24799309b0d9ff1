"""Methods that are written once, for a blocking and an asynchronous client.

Such a method is written as *steps*: a generator that yields what is to be done (a `Call` to send, a `Wait`), is sent
the outcome, and returns the method's result. It neither sends nor sleeps, so it works with either. `either` makes it a
plain method in a `Blocking` class, and a coroutine method in an `Awaiting` one."""

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
    """A base class whose methods made by `either` block until they are done."""

    @abstractmethod
    def _run(self, steps: Steps[T]) -> T:
        """Run `steps`, a generator of calls to send and pauses, to the end; return its result."""


class Awaiting(ABC):
    """A base class whose methods made by `either` are coroutines."""

    @abstractmethod
    async def _run(self, steps: Steps[T]) -> T: ...


class either(Generic[P, T]):
    """A decorator for methods of a client that are written once and work in the blocking and in the asynchronous one.

    The decorated method, with parameters P, is a generator: it yields each call to send and each pause, receives the
    answer from `yield`, and returns the result, a T. In a subclass of `Blocking` it becomes a plain method, in one of
    `Awaiting` a coroutine method."""

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
    def __get__(self, owner: object, of: type) -> Any:
        way = self._ways[Awaiting if issubclass(of, Awaiting) else Blocking]
        return way if owner is None else MethodType(way, owner)
