"""Encodings: immutable descriptions of how the columns of a table become feature vectors, saved as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.decoding import decoder
from heedful.core.validation import describe
from heedful.features.columns import Column, Prose, item_name

Features: TypeAlias = npt.NDArray[np.float32]


class Description(NamedTuple):
    """How an encoding treats one column of a table.

    - `column`: the name of the column.
    - `kind`: number, logarithm, category, tags, text, prose, vector or ignored.
    - `features`: the number of features that it becomes.
    - `example`: one of its values, as text.
    - `missing`: the number of rows without a value when the encoding was inferred.
    - `why`: the reason in words why the column is of this kind.
    """

    column: str
    kind: str
    features: int
    example: str
    missing: int
    why: str


class Encoding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """An encoding of the rows of a table as vectors of N float32 features. It is immutable: a row gives the same bits
    on every machine.

    - `version`: the version of the format in JSON.
    - `columns`: for each column of the table, which features it becomes.
    - `identifier`: the column with the names of the items; "" if rows have no names (rows that describe a context).
    """

    version: int = 1
    columns: tuple[Column, ...]
    identifier: str

    def __post_init__(self) -> None:
        if self.version != 1:
            raise ValueError(f"version: expected 1, got {self.version}: written by a later heedful?")
        name, times = Counter(column.name for column in self.columns).most_common(1)[0] if self.columns else ("", 1)
        if times > 1:
            raise ValueError(f"columns: expected each name once, got {describe(name)} {times} times")

    @cached_property
    def names(self) -> list[str]:
        """Names of the N features, all different."""
        counts = Counter[str]()
        unique = []
        for name in [name for column in self.columns for name in column.features()]:
            counts[name] += 1
            unique.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
        return unique

    @cached_property
    def size(self) -> int:
        """Number of features, N."""
        return len(self.names)

    @cached_property
    def places(self) -> dict[str, range]:
        """Indices of each column's features, by the column's name."""
        ranges, start = {}, 0
        for column in self.columns:
            ranges[column.name] = range(start, start := start + len(column.features()))
        return ranges

    @cached_property
    def _plan(self) -> list[tuple[str, Any, int, int]]:
        """For each column that has features, what `encode` needs: (its name, its `write`, the index of its first
        feature, the index of its feature for missing values or -1)."""
        placed = [(column, self.places[column.name]) for column in self.columns]
        return [
            (c.name, c.write, indices.start, indices.stop - 1 if c.missing else -1) for c, indices in placed if indices
        ]

    def encode(
        self, row: Mapping[str, object], unknown: Counter[str] | None = None, *, complete: bool = False
    ) -> Features:
        """Return the N features (N,) of a row, a mapping from column to value.

        `unknown`: if given, values that are no level of their category are counted in it, as "column=value". Columns of
        the row that the encoding does not have are ignored. Raise ValueError, naming the column, for a value that does
        not fit its kind, such as a word as a number or a vector of another length. With `complete`, a missing value is
        also an error in a column that had none missing when the encoding was inferred.
        """
        if not isinstance(row, Mapping):
            raise ValueError(f"row: expected values by column, got {describe(row)}")
        out = [0.0] * self.size
        get = row.get
        for name, write, start, flag in self._plan:
            if not write(get(name), out, start, unknown):
                if flag >= 0:
                    out[flag] = 1.0
                elif complete:
                    description = "nothing" if get(name) is None else describe(get(name))
                    raise ValueError(f"{name}: expected a value, got {description}")
        return np.array(out, np.float32)

    def encode_many(self, rows: Iterable[Mapping[str, object]]) -> Features:
        """Return the N features of each of m rows (m x N), mappings from column to value.

        Raise ValueError, beginning with the number of the row, from 1, and naming the column, for a value that does not
        fit its kind.
        """
        rows = list(rows)
        X = np.empty((len(rows), self.size), np.float32)
        for i, row in enumerate(rows):
            try:
                X[i] = self.encode(row)
            except ValueError as error:
                raise ValueError(f"row {i + 1}: {error}") from None
        return X

    def name_of(self, row: Mapping[str, object]) -> str:
        """Return the name of the item in a row, from the column `identifier`: a text, or a whole number as text.

        Raise ValueError for any other value.
        """
        return item_name(self.identifier, row.get(self.identifier))

    def describe(self) -> list[Description]:
        """Describe each column: its kind (number, category, ...), the reason for it, the number of its features, an
        example.
        """
        return [Description(c.name, c.kind, len(c.features()), c.example, c.missing, c.why) for c in self.columns]

    def to_json(self) -> bytes:
        """Return the encoding as JSON; `from_json` restores it, bit for bit."""
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(content: bytes | str) -> Encoding:
        """Return the encoding that `to_json` returned as `content`. Raise ValueError, naming the field, if `content` is
        no JSON of an encoding."""
        try:
            return decoder(Encoding).decode(content)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"encoding: expected what Encoding.to_json writes, got: {error}") from None


UNSEEN = Encoding(columns=(), identifier="id")
"""The encoding of items by name only, {"id": ...}; they have no features."""
TEXTS = Encoding(columns=(Prose(name="text", why="built in"),), identifier="id")
"""The encoding of plain texts, {"id": ..., "text": ...}, by their style."""
