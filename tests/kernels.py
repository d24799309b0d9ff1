"""Kernels compiled by themselves, for tests that compare them with their interpreted bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from heedful.jit.cache import reachable
from heedful.jit.overloads import OPTIONS, register


def compile_kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function marked with `@kernel` or `@primitive` with all that it calls (of a primitive, its loop)."""
    register(reachable((), f.__module__))
    compiled: Callable[..., Any] = numba.njit(**OPTIONS)(f.__kernel__)  # type: ignore[attr-defined]
    return compiled
