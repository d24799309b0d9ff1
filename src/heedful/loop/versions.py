"""Versions of the code that makes a model from a log, declared by that code, so that renaming something changes no
version.

A version is `MODEL.LEARNER`, such as 1.1: first what the interaction's model declares (for how feedback becomes
lessons, and for the spaces and kernels below it), then what the learner declares in `version`. A change of what is
learned from a log raises one of them; golden logs (tests/goldens) fail until then. A learner of the user's own that
declares no version has a digest of its module's source there, without comments and docstrings.

The models made from one log are equal bit for bit if these versions and the builds of Python, numpy and scipy are
equal.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any


def version_of(model_version: int, learner: Any) -> str:
    """Return the version of the code that turns a log into a state, as the text "MODEL.LEARNER".

    MODEL is `model_version`, that of the model of the loop's kind of feedback; LEARNER is the version that `learner`
    declares."""
    parts = [_declared_version(part) or _digest(type(part).__module__) for part in _parts(learner)]
    return ".".join([str(model_version), *filter(None, parts)])


def _parts(value: Any) -> Iterator[Any]:
    """Yield a named tuple and the named tuples in its fields at any depth: a learner, then its space or its update
    rule."""
    if hasattr(value, "_fields"):
        yield value
        for part in value:
            yield from _parts(part)


def _declared_version(part: Any) -> str:
    """Return the version that a part of a learner declares in its class; "" if it declares none."""
    version = None if "version" in part._fields else getattr(part, "version", None)
    return str(version) if isinstance(version, int | str) else ""


def _digest(module: str) -> str:
    """Return a digest (12 hexadecimal digits) of the source of a module; "" for heedful's own modules, which declare
    versions."""
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return ""
    return hashlib.sha256(_code(module).encode()).hexdigest()[:12]


@cache
def _code(module: str) -> str:
    try:
        tree = ast.parse(inspect.getsource(import_module(module)))
    except (ImportError, OSError, TypeError, SyntaxError):
        return ""  # typed at a prompt: there is no source to compare
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0].value.value = ""
    return ast.dump(tree)
