"""Kinds of columns (number, logarithm, category, tags, text, prose, vector, ignored): which features each makes of a
value, and which values it rejects.

A column has just the parameters that it needs to make its features. All features of a missing value are 0; if the
column had missing values when it was inferred, one more feature ("horsepower missing") is 1 for them.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias

import msgspec
import numpy as np

from heedful.core.validation import describe
from heedful.data.files import number_in
from heedful.features.texts import TRAITS, hash_words, traits

LIMIT = 1000.0
"""The greatest absolute value of a feature; larger ones are clipped. m values lie within sqrt(m - 1) standard
deviations of their mean, so none of up to a million values that the column was inferred from is clipped.
"""

MOST = sys.float_info.max
"""the greatest float"""
LEAST = math.ulp(0.0)
"""the least float above 0"""


class _Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A column of a table, with what was found in the rows that it was inferred from (for `Encoding.describe`).

    - `name`: the name of the column.
    - `missing`: in how many of these rows its value was missing; if above 0, one more feature, the last, is 1 for a
      missing value and else 0.
    - `example`: one of its values, as text.
    - `why`: the reason in words why it became a column of this kind.
    """

    name: str
    missing: int = 0
    example: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        if self.missing < 0:
            raise ValueError(f"missing: expected 0 or more, got {self.missing}")
        self.check()

    @property
    def kind(self) -> str:
        """Kind of the column: "number", "logarithm", "category", "tags", "text", "prose", "vector" or
        "ignored"."""
        return str(self.__struct_config__.tag)

    def check(self) -> None:
        """Raise ValueError, naming the field, if a field is invalid."""

    def feature_names(self) -> list[str]:
        """Return the names of the column's features, without the one for missing values."""
        raise NotImplementedError

    def features(self) -> list[str]:
        """Return the names of all features of the column, in order; the last is that for missing values, if there is
        one."""
        return [*self.feature_names(), f"{self.name} missing"] if self.missing else self.feature_names()

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        """Write the features of `value` into `out`, which is 0 there, from index `start` on; return False if the value
        is missing.

        `unknown`: if given, a text that is no level of the category is counted in it. Raise ValueError if the value
        does not fit this kind of column.
        """
        raise NotImplementedError


class Number(_Column, frozen=True, tag="number"):
    """A numeric column: one feature, (value - `mean`) / `scale`, clipped to -1000..1000.

    `scale` is above 0. Booleans count as 0 and 1; a text may contain a number.
    """

    mean: float
    scale: float

    def check(self) -> None:
        _check_finite("mean", self.mean, -MOST)
        _check_finite("scale", self.scale, LEAST)

    def feature_names(self) -> list[str]:
        return [self.name]

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        value = number(self.name, value)
        if value is None:
            return False
        scaled = (value - self.mean) / self.scale
        if not -LIMIT <= scaled <= LIMIT:  # the difference may have overflowed; that of halves does not
            scaled = _shorten((value / 2 - self.mean / 2) / self.scale * 2)
        out[start] = scaled
        return True


class Logarithm(Number, frozen=True, tag="logarithm"):
    """A numeric column with a long tail: two features, that of a `Number` and (`logarithm` of the value - `log_mean`) /
    `log_scale`, clipped to -1000..1000. Which of the two counts is learned."""

    log_mean: float
    log_scale: float

    def check(self) -> None:
        super().check()
        _check_finite("log_mean", self.log_mean, -MOST)
        _check_finite("log_scale", self.log_scale, LEAST)

    def feature_names(self) -> list[str]:
        return [self.name, f"log {self.name}"]

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        value = number(self.name, value)
        if value is None:
            return False
        out[start + 1] = _shorten((logarithm(value) - self.log_mean) / self.log_scale)
        return super().write(value, out, start, unknown)


class Category(_Column, frozen=True, tag="category", dict=True):
    """A categorical column: one feature for each of `levels`, the known values; it is 1 if the value is this level, or
    a list that has it, else 0."""

    levels: tuple[str, ...]

    def check(self) -> None:
        if len(set(self.levels)) < len(self.levels) or "" in self.levels:
            raise ValueError(f"levels: expected different texts, none empty, got {describe(self.levels)}")

    def feature_names(self) -> list[str]:
        return [f"{self.name}={level}" for level in self.levels]

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        several = levels(self.name, value)
        if several is None:
            return False
        for level in several:
            if level in self._places:
                out[start + self._places[level]] = 1.0
            elif unknown is not None:
                unknown[f"{self.name}={level}"] += 1
        return True

    @cached_property
    def _places(self) -> dict[str, int]:
        return {level: place for place, level in enumerate(self.levels)}


class Tags(Category, frozen=True, tag="tags", dict=True):
    """A column of tags, such as "Animation|Comedy": a category whose value has several levels at once, with `separator`
    between them."""

    separator: str

    def check(self) -> None:
        super().check()
        if not self.separator:
            raise ValueError("separator: expected what stands between two tags, got nothing")

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        several = levels(self.name, value)
        return super().write(None if several is None else split(several, self.separator), out, start, unknown)


class Text(_Column, frozen=True, tag="text"):
    """A column of texts, by their words, which are hashed into buckets. There is one feature for each bucket: the
    square root of the share of the text's words that fall into it.

    - `words`: for each bucket the most frequent word in it, which names the feature; "" if there was none.

    So the vector of these features has length 1.
    """

    words: tuple[str, ...]

    def check(self) -> None:
        if not self.words:
            raise ValueError("words: expected one a bucket, got none")

    def feature_names(self) -> list[str]:
        return [f"{self.name}~{word or f'bucket {j}'}" for j, word in enumerate(self.words)]

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        string = text(self.name, value)
        if string is None:
            return False
        for place, share in hash_words(string, len(self.words)):
            out[start + place] = share
        return True


class Prose(_Column, frozen=True, tag="prose"):
    """A column of texts, by their style: one feature for each of TRAITS, such as the length of the text or its share of
    polite words. A feature is (measured value - mean) / scale, with mean and scale fixed for plain English prose."""

    def feature_names(self) -> list[str]:
        return [f"{self.name}: {trait.name}" for trait in TRAITS]

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        string = text(self.name, value)
        if string is None:
            return False
        for place, (trait, measured) in enumerate(zip(TRAITS, traits(string)), start):
            out[place] = _shorten((measured - trait.mean) / trait.scale)
        return True


class Vector(_Column, frozen=True, tag="vector"):
    """A column of vectors: one feature for each of their `size` numbers, divided by `scale`.

    `scale` is the root mean square length of the vectors that the column was inferred from.
    """

    size: int
    scale: float

    def check(self) -> None:
        if not 1 <= self.size <= 2**20:
            raise ValueError(f"size: expected 1 to {2**20}, got {self.size}")
        _check_finite("scale", self.scale, LEAST)

    def feature_names(self) -> list[str]:
        return [f"{self.name}[{j}]" for j in range(self.size)]

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        values = vector(self.name, value)
        if values is None:
            return False
        if len(values) != self.size:
            raise ValueError(f"{self.name}: expected {self.size} numbers, got {len(values)}")
        with np.errstate(over="ignore"):
            out[start : start + self.size] = np.clip(np.array(values) / self.scale, -LIMIT, LIMIT).tolist()
        return True


class Ignored(_Column, frozen=True, tag="ignored"):
    """A column that becomes no feature; its field `why` gives the reason in words."""

    def feature_names(self) -> list[str]:
        return []

    def features(self) -> list[str]:
        return []

    def write(self, value: object, out: list[float], start: int, unknown: Counter[str] | None) -> bool:
        return True


Column: TypeAlias = Number | Logarithm | Category | Tags | Text | Prose | Vector | Ignored


# ---------------------------------------------------------------------------- values of a row


def number(name: str, value: object) -> float | None:
    """Return a value as a finite number; None if it is missing (None, NaN, or a text such as "" or "NA").

    Raise ValueError, beginning with the column's `name`, for any other value.
    """
    if value is None:
        return None
    if type(value) is float and -MOST <= value <= MOST:  # nearly always
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str):
        parsed = number_in(plain.strip())
        plain = plain if parsed is None else parsed
    elif isinstance(plain, int):  # including booleans
        try:
            plain = float(plain)
        except OverflowError:
            plain = math.inf
    if isinstance(plain, float):
        if plain != plain:
            return None
        if abs(plain) <= MOST:
            return plain
    raise ValueError(f"{name}: expected a finite number, got {describe(value)}")


def logarithm(value: float) -> float:
    """Return log(1 + value), and -log(1 - value) of a negative value: increasing, smooth and odd.

    It is rounded to six decimals, so that it is the same bits with every mathematical library."""
    return math.copysign(round(math.log1p(abs(value)) * 1e6) / 1e6, value)


LONGEST_TEXT = 1_000_000


def text(name: str, value: object) -> str | None:
    """Return a value as a text without surrounding blanks; None if it is missing (None, NaN, or only blanks).

    Numbers and booleans are written out. Raise ValueError, beginning with the column's `name`, for any other value or
    too long a text.
    """
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise ValueError(f"{name}: expected a text of at most {LONGEST_TEXT} characters, got {len(value)}")
        return value.strip() or None
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or (isinstance(plain, float) and plain != plain):
        return None
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)  # 4.0 is 4, because writers of tables differ in this
    if not isinstance(plain, int | float) or (isinstance(plain, int) and plain.bit_length() > 1024):
        raise ValueError(f"{name}: expected a text, got {describe(value)}")
    return str(plain)


def levels(name: str, value: object) -> list[str] | None:
    """Return the levels of a category that a value has: those of a list of texts, or the text that it is; None if it is
    missing.

    Raise ValueError as `text` does."""
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return [level for entry in value if (level := text(name, entry)) is not None]
    level = text(name, value)
    return None if level is None else [level]


def split(texts: Iterable[str], separator: str) -> list[str]:
    """Return the tags in `texts`, in which a separator stands between any two."""
    return [tag for part in texts for tag in map(str.strip, part.split(separator)) if tag]


def item_name(name: str, value: object) -> str:
    """Return a value as the name of an item: a text without surrounding blanks, or the digits of a whole number.

    Raise ValueError, beginning with the column's `name`, for any other value.
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    label = text(name, value) if is_whole or isinstance(value, str) else None
    if label is None:
        raise ValueError(f"{name}: expected the item's name, text or a whole number, got {describe(value)}")
    return label


def vector(name: str, value: object) -> list[float] | None:
    """Return a list, a tuple or a one-dimensional array of numbers as a list of finite floats; None if `value` is
    missing (None, NaN, or only blanks).

    A list of finite floats is returned itself, not as a copy. Raise ValueError, beginning with the column's `name`, for
    any other value, and if an element is a text, missing or not finite.
    """
    if value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and value.ndim != 1):
        raise ValueError(f"{name}: expected a list of numbers, got {describe(value)}")
    if isinstance(value, list) and set(map(type, value)) == {float} and all(map(math.isfinite, value)):
        return value  # nearly always
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isfinite(value).all():
        return list(map(float, value))
    components = []
    for j, element in enumerate(value):
        component = None if isinstance(element, str) else number(f"{name}[{j}]", element)
        if component is None:
            raise ValueError(f"{name}[{j}]: expected a finite number, got {describe(element)}")
        components.append(component)
    return components


def _shorten(value: float) -> float:
    return value if -LIMIT <= value <= LIMIT else math.copysign(LIMIT, value)


def _check_finite(name: str, value: float, least: float) -> None:
    if not least <= value <= MOST:
        expected = "a finite number" if least < 0 else "a finite number above 0"
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
