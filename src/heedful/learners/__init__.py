"""The learners, one file per family. Nothing is listed by hand: whoever wants them walks this folder."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def families() -> Iterator[ModuleType]:
    """The modules of this folder, by name."""
    for folder in __path__:
        os.listdir(folder)  # OSError where that cannot be looked into: pkgutil passes over it as if it were empty
    for module in pkgutil.iter_modules(__path__):
        yield importlib.import_module(f"{__name__}.{module.name}")


def __getattr__(name: str) -> Any:
    """`from heedful.learners import SecondOrderPerceptron`, whichever file it is in."""
    if not name.startswith("_"):
        for module in families():
            found = vars(module).get(name)
            if getattr(found, "__module__", None) == module.__name__:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
