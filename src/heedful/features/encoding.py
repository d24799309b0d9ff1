"""A catalogue's columns as vectors, frozen: an encoding is data that goes to a file and comes back the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.decoding import decoder
from heedful.features.columns import Column, Prose, describe_value, item_name

Features: TypeAlias = npt.NDArray[np.float32]


class Description(NamedTuple):
    """A column in words, for a table."""

    column: str
    kind: str
    features: int
    example: str
    missing: int
    why: str


class Encoding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Rows as float32 vectors, frozen: the same row gives the same bits, on any machine, for good.

    `identifier` is the column that names the item, "" where rows have no names (contexts).
    """

    version: int = 1
    columns: tuple[Column, ...]
    identifier: str

    def __post_init__(self) -> None:
        if self.version != 1:
            raise ValueError(f"version: expected 1, got {self.version}: written by a later heedful?")
        name, times = Counter(column.name for column in self.columns).most_common(1)[0] if self.columns else ("", 1)
        if times > 1:
            raise ValueError(f"columns: expected each name once, got {describe_value(name)} {times} times")

    @cached_property
    def names(self) -> list[str]:
        """The names of the features, N, none twice."""
        seen = Counter[str]()
        found = []
        for name in [name for column in self.columns for name in column.features()]:
            seen[name] += 1
            found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return found

    @cached_property
    def size(self) -> int:
        """How many features there are, N."""
        return len(self.names)

    @cached_property
    def places(self) -> dict[str, range]:
        """The places of each column's features."""
        found, at = {}, 0
        for column in self.columns:
            found[column.name] = range(at, at := at + len(column.features()))
        return found

    @cached_property
    def _plan(self) -> list[tuple[str, Any, int, int]]:
        """(column's name, what writes it, the place of its first feature, that of its flag or -1)."""
        each = [(column, self.places[column.name]) for column in self.columns]
        return [(c.name, c.write, at.start, at.stop - 1 if c.missing else -1) for c, at in each if at]

    def encode(self, row: Mapping[str, Any], unknown: Counter[str] | None = None, *, whole: bool = False) -> Features:
        """The features of a row, N. Categories that are none of the levels are counted in `unknown`, "column=value".

        ValueError, by column, for what its kind does not take: text or infinity as a number, a vector of another
        length, an object; where the row is to be `whole`, also for what is missing in a column that always had a value.
        Columns that the encoding does not know are not looked at.
        """
        if not isinstance(row, Mapping):
            raise ValueError(f"row: expected values by column, got {describe_value(row)}")
        out = [0.0] * self.size
        get = row.get
        for name, write, at, flag in self._plan:
            if not write(get(name), out, at, unknown):
                if flag >= 0:
                    out[flag] = 1.0
                elif whole:
                    got = "nothing" if get(name) is None else describe_value(get(name))
                    raise ValueError(f"{name}: expected a value, got {got}")
        return np.array(out, np.float32)

    def encode_many(self, rows: Iterable[Mapping[str, Any]], unknown: Counter[str] | None = None) -> Features:
        """The features of rows, m x N; ValueError as in `encode`, with the row's number from 1."""
        rows = list(rows)
        X = np.empty((len(rows), self.size), np.float32)
        for i, row in enumerate(rows):
            try:
                X[i] = self.encode(row, unknown)
            except ValueError as error:
                raise ValueError(f"row {i + 1}: {error}") from None
        return X

    def name_of(self, row: Mapping[str, Any]) -> str:
        """The name of the item in a row: the text, or the whole number as text, in the column `identifier`."""
        return item_name(self.identifier, row.get(self.identifier))

    def describe(self) -> list[Description]:
        """What each column became and why."""
        return [Description(c.name, c.kind, len(c.features()), c.example, c.missing, c.why) for c in self.columns]

    def to_json(self) -> bytes:
        """The encoding as JSON; `from_json` gives the same back, bit for bit."""
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(written: bytes | str) -> Encoding:
        """The encoding that `to_json` wrote. ValueError, by field, for anything else."""
        try:
            return decoder(Encoding).decode(written)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"encoding: expected what Encoding.to_json writes, got: {error}") from None


UNSEEN = Encoding(columns=(), identifier="id")
"""Items of which nothing is looked at but the name, {"id": ...}: what else they have is kept as it is."""
TEXTS = Encoding(columns=(Prose(name="text", why="built in"),), identifier="id")
"""Bare texts, {"id": ..., "text": ...}, by how they are written."""
