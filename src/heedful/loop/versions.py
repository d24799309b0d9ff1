"""The version of a fold: what the code that folds a log declares of itself, so that a renaming changes no version.

A version is `MODEL.LEARNER`, such as 1.1: what the model of the interaction declares (how feedback becomes lessons,
with the spaces and kernels below it), then what the learner declares in its property `version`. Whoever changes what is
folded raises the one or the other; golden folds (tests/goldens) fail until then. A learner of somebody else's that
declares none has a digest of its module's source there, in which comments and docstrings do not count.

Two folds of one log agree bit for bit where this, and the builds of Python, numpy and scipy, are the same.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from heedful.loop.old_versions import DIGESTS


def version_of(model_version: int, learner: Any) -> str:
    """The version of the fold of `learner` by a model that declares `model_version`."""
    parts = [_declared(part) or _digest(type(part).__module__) for part in _parts(learner)]
    return ".".join([str(model_version), *filter(None, parts)])


def declared_version(recorded: str) -> str:
    """The version that a log or a snapshot names. Before versions were declared, it was a digest of the source: such
    a one is what its code would declare today; one that is not known stays as it is."""
    return DIGESTS.get(recorded, recorded)


def _parts(value: Any) -> Iterator[Any]:
    """A named tuple, and those in its fields at any depth: a learner, its space, its rule."""
    if hasattr(value, "_fields"):
        yield value
        for part in value:
            yield from _parts(part)


def _declared(part: Any) -> str:
    """What a part of a learner declares; "" where it declares nothing. A field of that name is a hyperparameter."""
    version = None if "version" in part._fields else getattr(part, "version", None)
    return str(version) if isinstance(version, int | str) else ""


def _digest(module: str) -> str:
    """12 characters of the code of a module; "" for the package's own, whose changes the declared versions tell of."""
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
