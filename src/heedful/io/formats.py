"""The formats of others that a loop's events can be written in (`heedful export --as`) and read from (`import --as`).

One table, `FORMATS`. A format is a function that writes, one that reads, or both:

- `write(loop, report, options)` yields (what it is, JSON object) for each line of the file, in order.
- `read(loop, files, report, options)` yields the lines of `heedful.io.import_lines`: items, decisions and feedback. It
  looks at all of the files before it yields the first, so that nothing is imported from a malformed one.

Both count in `report` what they used, and why they left the rest out. `options` are the format's own, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from heedful.data.row_report import Report
from heedful.io import ltr, ubi_export
from heedful.io.langfuse_import import OPTIONS as SCORE_OPTIONS
from heedful.io.langfuse_import import read_score_lines
from heedful.io.preference_export import write_pairs, write_thumbs
from heedful.io.preference_import import read_pair_lines, read_thumb_lines
from heedful.loop import Loop

Options: TypeAlias = Mapping[str, str]
Write: TypeAlias = Callable[[Loop, Report, Options], Iterator[tuple[str, Mapping[str, Any]]]]
Read: TypeAlias = Callable[[Loop, Sequence[Path], Report, Options], Iterator[dict[str, Any]]]


class Format(NamedTuple):
    """A file format of another program: what it is, and how it is written and read."""

    name: str
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


_TEXTS = {
    "text": "the column of an item that has its text",
    "prompt": "the field of a decision's context that has the prompt",
    "aside": "the column that says which rows do not count; none: all do",
    "without-prompt": "yes: also rows of decisions without a prompt",
}

FORMATS: Mapping[str, Format] = {
    format.name: format
    for format in (
        Format(
            "preference-data",
            "prompt, chosen, rejected: which of two answers is better",
            write_pairs,
            read_pair_lines,
            _TEXTS,
        ),
        Format("langfuse", "scores of Langfuse", read=read_score_lines, options=SCORE_OPTIONS),
        Format("unpaired", "prompt, completion, label: a thumb on one answer", write_thumbs, read_thumb_lines, _TEXTS),
        Format(
            "opensearch",
            "a learning-to-rank model of OpenSearch's plugin",
            ltr.write_opensearch,
            options=ltr.OPTIONS,
            document=True,
            script=ltr.shell_script,
        ),
        Format(
            "elasticsearch",
            "a learning-to-rank model of the plugin for Elasticsearch",
            ltr.write_elasticsearch,
            options=ltr.OPTIONS,
            document=True,
            script=ltr.shell_script,
        ),
        Format(
            "ubi",
            "OpenSearch's User Behavior Insights: queries and events",
            ubi_export.write_ubi,
            options=ubi_export.OPTIONS,
        ),
    )
}
"""The formats, by the names that `--as` takes."""


def find_format(name: str, verb: str) -> Format:
    """Return the format `name`, which can be written (`verb` "write") or read ("read").

    Raise ValueError, with the names of those that can be, if there is none."""
    able = {format.name: format for format in FORMATS.values() if getattr(format, verb) is not None}
    if name not in able:
        raise ValueError(f"--as: expected {', '.join(able)}, got {name!r}")
    return able[name]


def check_options(format: Format, options: Mapping[str, str]) -> None:
    """Raise ValueError if `options`, by name, have one that `format` does not know."""
    prefixes = tuple([name.partition(":")[0] + ":" for name in format.options if ":" in name])
    for name in options:
        if name not in format.options and not (prefixes and name.startswith(prefixes)):
            names = ", ".join(format.options) or "none"
            raise ValueError(f"--option: expected {names} with --as {format.name}, got {name!r}")
