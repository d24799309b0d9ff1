"""The formats of others that a loop's events can be written in (`heedful export --as`) and read from (`import --as`).

A format is declared in the module of this folder that writes and reads it, and found there: a new one changes no other
file. A format is a function that writes, one that reads, or both:

- `write(loop, report, options)` yields (what it is, JSON object) for each line of the file, in order.
- `read(loop, files, report, options)` yields the lines of `heedful.io.import_lines`: items, decisions and feedback. It
  looks at all of the files before it yields the first, so that nothing is imported from a malformed one.

Both count in `report` what they used, and why they left the rest out. `options` are the format's own, by name.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from heedful.core.validation import describe
from heedful.data.row_report import Report
from heedful.loop import Loop

Options: TypeAlias = Mapping[str, str]
Write: TypeAlias = Callable[[Loop, Report, Options], Iterator[tuple[str, Mapping[str, Any]]]]
Read: TypeAlias = Callable[[Loop, Sequence[Path], Report, Options], Iterator[dict[str, Any]]]


class Format(NamedTuple):
    """A file format of another program: what it is, and how it is written and read."""

    name: str
    """what `--as` takes"""
    about: str
    """what it is, in one line"""
    write: Write | None = None
    read: Read | None = None
    options: Mapping[str, str] = {}
    """the names of its own options, each with what it says"""
    document: bool = False
    """true: `write` yields one object, written as indented JSON; false: JSON lines or, to a .parquet file, a table"""
    script: Callable[[Mapping[str, Any]], str] | None = None
    """how the document becomes a shell script, for a file whose name ends in .sh; None if it does not"""


def formats_for(verb: str) -> dict[str, Format]:
    """Return the formats that can be written (`verb` "write") or read ("read"), by name."""
    return {name: format for name, format in FORMATS.items() if getattr(format, verb) is not None}


def find_format(name: str, verb: str, options: Options = {}) -> Format:  # noqa: B006  # nobody writes to it
    """Return the format `name`, which can be written (`verb` "write") or read ("read") with these `options`.

    Raise ValueError, with the names of those that can be, if there is none, and for an option that it does not know."""
    able = formats_for(verb)
    if name not in able:
        raise ValueError(f"--as: expected {', '.join(able)}, got {name!r}")
    check_options(able[name], options)
    return able[name]


def check_options(format: Format, options: Mapping[str, str]) -> None:
    """Raise ValueError if `options`, by name, have one that `format` does not know."""
    prefixes = tuple([name.partition(":")[0] + ":" for name in format.options if ":" in name])
    for name in options:
        if name not in format.options and not (prefixes and name.startswith(prefixes)):
            names = ", ".join(format.options) or "none"
            raise ValueError(f"--option: expected {names} with --as {format.name}, got {name!r}")


def is_yes(options: Options, name: str, default: bool) -> bool:
    """Return whether the option `name` is yes. Raise ValueError, naming it, if it is neither that nor no."""
    value = options.get(name, "yes" if default else "no")
    if value not in ("yes", "no"):
        raise ValueError(f"{name}: expected yes or no, got {describe(value)}")
    return value == "yes"


def _declared() -> dict[str, Format]:
    modules = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Format)]
    return {format.name: format for format in sorted(found, key=lambda format: format.name)}


FORMATS: Mapping[str, Format] = _declared()
"""The formats, by the names that `--as` takes."""
