"""Arrays and sets that grow while a log is read, in few bytes an entry: a log of ten million events has five million
decisions, and a Python object for each would take gigabytes."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Floats, Ints

MORE = 1 << 12
"""By how many entries, at least, something grows that is full."""


class GrowingTable:
    """Rows of `width` numbers each, of which more can be appended; 8 bytes a number, 4 if they are `small`, and half as
    many again in reserve."""

    def __init__(self, width: int, small: bool = False) -> None:
        self._rows: Floats = np.zeros((1, width), np.float32 if small else np.float64)
        self.n = 0
        """how many rows there are"""

    def append(self, row: npt.ArrayLike) -> None:
        """Append a copy of `row` (width,)."""
        self._room()
        self._rows[self.n] = row
        self.n += 1

    def add(self, i: int, row: npt.ArrayLike) -> None:
        """Add `row` (width,) to the numbers of row `i`; `i` may be one more than the last, which is 0 until then."""
        if i == self.n:
            self._room()
            self.n += 1
        into = self._rows[i]
        into += row

    def _room(self) -> None:
        if self.n == len(self._rows):
            more = np.zeros((max(self.n // 2, MORE), self._rows.shape[1]), self._rows.dtype)
            self._rows = np.concatenate([self._rows, more])

    @property
    def rows(self) -> Floats:
        """the rows so far (n, width), not copied"""
        return self._rows[: self.n]


class Marks:
    """A set of numbers from 0 on, such as sequence numbers of events; one byte for each number up to the greatest."""

    def __init__(self) -> None:
        self._marks = bytearray()
        self.n = 0
        """how many numbers there are"""

    def __contains__(self, number: int) -> bool:
        return number < len(self._marks) and self._marks[number] == 1

    def add(self, number: int) -> None:
        """Put `number` into the set."""
        if number >= len(self._marks):
            self._marks.extend(bytes(number + MORE - len(self._marks)))
        self.n += 1 - self._marks[number]
        self._marks[number] = 1


class People:
    """Numbers people from 0 in order of first appearance.

    A person is a name, or the sequence number of a decision that was for nobody in particular, which counts as a person
    of its own; of those each takes 4 bytes."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._nobody = array("i")
        self.n = 0
        """how many people there are"""

    def number(self, who: str | int) -> int:
        """Return the number of the person `who`."""
        if isinstance(who, str):
            found = self._names.setdefault(who, self.n)
        else:
            if who >= len(self._nobody):
                self._nobody.frombytes(bytes(self._nobody.itemsize * (who + MORE - len(self._nobody))))
            found = (self._nobody[who] or self.n + 1) - 1  # 0: not seen yet
            self._nobody[who] = found + 1
        if found == self.n:
            self.n += 1
        return found


class Column:
    """Whole numbers below 2^31, of which more can be appended; 4 bytes each."""

    def __init__(self) -> None:
        self._numbers = array("i")

    def append(self, number: int) -> None:
        """Append `number`."""
        self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> Ints:
        """a copy of the numbers so far (n,)"""
        return np.array(self._numbers, np.int64)
