"""Tables that are imported into a loop: of answers, which become events, or of items, which are put on offer."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.files import cut_list, first_lines
from heedful.data.set_aside import item_rows
from heedful.data.table import Table, open_table
from heedful.io.line_schema import KINDS
from heedful.loop import Loop
from heedful.loop.records import AnsweredItem


class TableImport(NamedTuple):
    """What a table brings into a loop: the `lines` of its events, and `answered` many `answers`; or the rows of
    its `items`, and `notes` on these."""

    lines: Sequence[dict[str, Any]]
    items: list[dict[str, Any]]
    notes: list[str]
    answered: int = 0
    answers: Iterable[AnsweredItem] = ()


def first_two(path: Path) -> list[str]:
    """Return the first two lines of a file that are not blank; none of a pipe, which can be read only once."""
    first = list[str]()
    if path.is_file():
        with suppress(ValueError):  # that it is cut off is said where it is read
            first.extend(islice(first_lines(path), 2))
    return first


def holds_events(path: Path) -> bool:
    """Return whether a file is one of events, a JSON object a line, and no table: whether one of its first two lines
    that are not blank begins an object, and the first one has a kind or is broken. A pipe is taken for one, since it
    can be read only once."""
    if not path.is_file():
        return True
    first = first_two(path)
    if not any(text.startswith("{") for text in first) or first[0].startswith("["):
        return not first
    with suppress(ValueError, RecursionError):
        record = json.loads(first[0])
        return not isinstance(record, dict) or "kind" in record
    return True


def read_import(
    loop: Loop,
    path: Path,
    columns: Mapping[str, Sequence[str]],
    worth: Mapping[str, float],
    missing: Collection[str],
) -> TableImport:
    """Return what the table at `path` brings into `loop`.

    `columns`, `worth` and `missing` are those of tables of ratings (`read_ratings`). Raise ValueError as the readers of
    tables do, and if a table of items lacks the column that names them."""
    table = open_table(path)
    if "kind" in table.header and set(table.columns(["kind"])[0].values) <= set(KINDS):
        events = [row for _, row in open_table(path, texts=True).located()]
        return TableImport(events, [], [])
    found = loop.projection.interaction.table_answers(table, columns, worth, missing, loop.items)
    if found is not None:
        new, answered, answers = found
        return TableImport([{"kind": "item", "id": name} for name in new], [], [], answered, answers)
    if columns or worth or missing:
        raise ValueError(f"{path.name}: expected a table of items, of which no columns are named, in this loop")
    return TableImport([], *_items(loop, table))


def _items(loop: Loop, table: Table) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a table of items, and notes on columns that are not those of the loop."""
    encoding = loop.manifest.encoding
    if encoding.identifier not in table.header:
        expected = f"the column {encoding.identifier}, which names items in this loop"
        raise ValueError(f"{table.name}: expected {expected}, got {cut_list(table.header)}")
    columns = {column.name for column in encoding.columns}
    new = [name for name in table.header if name not in columns and name != encoding.identifier] if columns else []
    missing = [c.name for c in encoding.columns if c.kind != "ignored" and c.name not in table.header]
    notes = []
    if missing:
        was = f"; was {cut_list(new)} one of them? Then rename it, and import again" if new else ""
        notes.append(
            f"{table.name}: columns of the loop that are missing, and so without a value: {cut_list(missing)}{was}"
        )
    elif new:
        notes.append(f"{table.name}: new columns, of which this loop learns nothing: {cut_list(new)}")
    return item_rows(table), notes
