"""The learners: one folder for each kind of feedback (corrections, grades, ratings, choices), one file for each family.
New files are found without being listed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_DEFINED = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)


def families() -> Iterator[ModuleType]:
    """Import every module that defines learners, one after the other, and yield it. Raise OSError if a folder cannot be
    read."""
    for name in _module_names():
        yield importlib.import_module(name)


def _module_names() -> Iterator[str]:
    """Iterate over the full names of the modules that define learners."""
    for folder in __path__:
        os.listdir(folder)  # OSError where the folder cannot be read: pkgutil would treat it as empty
    for package in pkgutil.iter_modules(__path__):
        inside = [os.path.join(folder, package.name) for folder in __path__]
        yield from (f"{__name__}.{package.name}.{module.name}" for module in pkgutil.iter_modules(inside))


@cache
def modules_by_name() -> dict[str, str]:
    """Return a mapping from the name of every class and function that modules of learners define to the full name of
    its module. Sources are read, not imported."""
    modules: dict[str, str] = {}
    for name in _module_names():
        spec = find_spec(name)
        source = spec.loader.get_source(name) if spec and isinstance(spec.loader, InspectLoader) else None
        modules = dict.fromkeys(_DEFINED.findall(source or ""), name) | modules
    return modules


def __getattr__(name: str) -> Any:
    """Return the learner class `name`, imported when it is first used, so that `from heedful.learners import PRank`
    needs no list. Raise AttributeError for other names."""
    if name.startswith("_") or name not in modules_by_name():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(modules_by_name()[name]), name)
