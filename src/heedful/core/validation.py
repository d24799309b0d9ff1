"""Validation of input: a check returns a clean value, or raises a ValueError that names the field and what came.

Input is checked once, where it enters: in `Session`, a learner's `init`, the constructors of worlds, the command line.
Compiled functions do not check their arguments. In each check, `name` is the name of the field, with which the message
of the error begins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Floats, Ints

if TYPE_CHECKING:
    from heedful.core.space import Space

MOST = 1e100
"""the largest absolute value of an input number: its square, and sums over any number of rounds, stay finite"""


def numbers(name: str, value: object, expected: str) -> npt.NDArray[Any]:
    """Return `value` as an array of booleans, integers or floats, of any shape.

    Raise ValueError if it is not one (text, objects, rows of several lengths) or is a masked array; the message begins
    with `name` and says what was `expected`, in words.
    """
    try:
        array = np.asarray(value)
    except Exception:  # rows of several lengths, or whatever the value's own conversion raises
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf" or _is_masked(value):
        raise ValueError(f"{name}: expected {expected}, got {describe(value)}")
    return array


def _is_masked(value: object) -> bool:
    """Return True if `value` is a numpy masked array, so that numbers may be missing.

    numpy.ma is slow to import, so it is used only for values with an attribute `mask`; tables of pandas have a method
    of that name.
    """
    return hasattr(value, "mask") and isinstance(value, np.ma.MaskedArray)


def finite_array(name: str, value: object, ndim: int, n_features: int) -> Floats:
    """Return `value` as a C-contiguous float array with `ndim` axes, the last of size `n_features`; float32 stays
    float32, all else becomes float64.

    Raise ValueError, beginning with `name`, if the shape is another, or a number is NaN, infinite or larger than MOST
    (1e100) in size.
    """
    array = numbers(name, value, f"{ndim}-dimensional numbers")
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    if array.ndim != ndim or array.shape[-1] != n_features:
        shape = ", ".join([*["m", "s"][: ndim - 1], str(n_features)]) + ("," if ndim == 1 else "")
        raise ValueError(f"{name}: expected shape ({shape}), got {array.shape}")
    array = np.ascontiguousarray(array)
    # One pass of BLAS where all is well; a sum of squares may overflow, so only then look at each value.
    if not float(np.vdot(array, array)) <= MOST:
        wrong = np.argwhere(~(np.abs(array) <= np.float64(MOST)))
        if wrong.size:
            where = tuple(int(i) for i in wrong[0])
            finite = "finite numbers" if not np.isfinite(array[where]) else f"numbers up to {MOST:g} in size"
            raise ValueError(f"{name}: expected {finite}, got {array[where]} at {list(where)}")
    return array


def finite_table(name: str, value: object) -> Floats:
    """Return `value` as a C-contiguous float array with two axes of any size; float32 stays float32, all else becomes
    float64.

    Raise ValueError, beginning with `name`, if it does not have two axes, or a number is NaN, infinite or larger than
    MOST (1e100) in size.
    """
    array = numbers(name, value, "2-dimensional numbers")
    return finite_array(name, array, 2, array.shape[1] if array.ndim == 2 else 0)


def indices(name: str, value: object, m: int, meaning: str) -> Ints:
    """Return `value` as an int64 array (n,) of distinct indices from 0 to `m` - 1; a single number becomes an array of
    one.

    Raise ValueError if it is empty or is no such array; the message begins with `name` and calls the indices by
    `meaning` (such as "candidate indices, best first").
    """
    array = np.atleast_1d(numbers(name, value, meaning))
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected {meaning}, got {describe(value)}")
    entries = array.tolist()  # faster than numpy's reductions on a list that a person has looked at
    if min(entries) < 0 or max(entries) >= m:
        wrong = next(i for i in entries if not 0 <= i < m)
        raise ValueError(f"{name}: expected {meaning}, each from 0 to {m - 1}, got {wrong}")
    if len(set(entries)) < len(entries):
        twice = next(i for i in entries if entries.count(i) > 1)
        raise ValueError(f"{name}: expected {meaning}, none twice, got {twice} {entries.count(twice)} times")
    return array.astype(np.int64)


def is_number(value: object, *kinds: type) -> TypeGuard[float]:
    """Return True if `value` is an instance of one of `kinds` (types of numbers), and no bool and no timedelta64, which
    are subtypes of integers."""
    return isinstance(value, kinds) and not isinstance(value, _NO_NUMBERS)


_NO_NUMBERS = bool, np.bool_, np.timedelta64


def check_count(name: str, value: object, least: int = 1, most: int = 2**62) -> None:
    """Raise ValueError, beginning with `name`, unless `value` is a whole number from `least` to `most`."""
    number = value if is_number(value, int, np.integer) else None
    if number is None or not least <= number <= most:
        bounded = most < 2**62 or (number is not None and number > most)  # the greatest is named where it matters
        upper = f"to {most}" if bounded else "or more"
        raise ValueError(f"{name}: expected a whole number, {least} {upper}, got {describe(value)}")


def check_positive(name: str, value: object) -> None:
    """Raise ValueError, beginning with `name`, unless `value` is a number from 1e-50 to 1e50, so that results computed
    from it stay finite."""
    number = value.item() if isinstance(value, np.generic) else value
    numeric = is_number(value, int, float, np.integer, np.floating)
    if not numeric or not isinstance(number, int | float) or not 1e-50 <= number <= 1e50:
        raise ValueError(f"{name}: expected a finite number above 0, from 1e-50 to 1e50, got {describe(value)}")


def check_between(name: str, value: object, least: float, most: float) -> None:
    """Raise ValueError, beginning with `name`, unless `value` is a number from `least` to `most`."""
    if not is_number(value, int, float, np.integer, np.floating) or not least <= value <= most:
        low, high = (re.sub(r"e[+]?(-?)0*", r"e\1", f"{bound:g}") for bound in (least, most))
        raise ValueError(f"{name}: expected a number from {low} to {high}, got {describe(value)}")


ALPHA = 1e-6, 0.5
"""The (least, greatest) probability of an error that people may ask intervals and tests to have."""


def check_alpha(value: object, name: str = "alpha") -> None:
    """Raise ValueError, beginning with `name`, unless `value` is a number within `ALPHA`."""
    check_between(name, value, *ALPHA)


def check_flag(name: str, value: object) -> None:
    """Raise ValueError, beginning with `name`, unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected True or False, got {describe(value)}")


def check_space(space: Space) -> None:
    """Raise ValueError unless `space` is an instance of a space of objects (`heedful.core.space.Space`) with valid
    parameters."""
    if isinstance(space, type) or not all(hasattr(space, f) for f in ("argmax", "add_difference", "check")):
        raise ValueError(f"space: expected one of what can be shown, such as Ranking(5), got {describe(space)}")
    space.check()


def check_linear(n_features: object, space: Space) -> None:
    """Raise ValueError unless a learner can be linear in `n_features` features of the objects of `space`."""
    check_count("n_features", n_features)
    check_space(space)


def describe(value: object) -> str:
    """Return a short description of `value` for error messages: its repr, cut off at 60 characters; of an array the
    dtype and the shape."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    try:
        text = repr(value)
    except Exception:  # a whole number of too many digits; whatever the value's own repr raises
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 60 else f"{text[:57]}..."


def list_of(name: str, values: object, expected: str) -> list[Any]:
    """Return `values` as a list. Raise ValueError, beginning with `name`, for a text, a mapping, or what is no
    sequence.

    `expected` says in the message what the list is of."""
    single = isinstance(values, np.ndarray) and values.ndim == 0
    if single or isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"{name}: expected a list of {expected}, got {describe(values)}")
    entries: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return entries


def names_of(name: str, values: object) -> list[str]:
    """Return `values` as a list of texts. Raise ValueError, beginning with `name`, for anything else."""
    names = list_of(name, values, "names")
    if not all(isinstance(each, str) for each in names):
        raise ValueError(f"{name}: expected a list of names, got {describe(values)}")
    return names


def check_path(name: str, value: object, expected: str = "a path") -> None:
    """Raise ValueError, beginning with `name`, unless `value` can be the path of a file."""
    if not isinstance(value, str | os.PathLike) or not isinstance(text := os.fspath(value), str) or "\0" in text:
        raise ValueError(f"{name}: expected {expected}, got {describe(value)}")


def check_mapping(name: str, value: object, expected: str) -> None:
    """Raise ValueError, beginning with `name`, unless `value` is a mapping from texts; `expected` says to what."""
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name}: expected {expected} by name, got {describe(value)}")


def check_range(name: str, given: Any) -> tuple[float, float]:
    """Return `given` as (lowest, highest) number. Raise ValueError, naming the field `name`, unless -1e6 <= lowest <
    highest <= 1e6."""
    numbers = isinstance(given, tuple | list) and len(given) == 2 and all(is_number(each, int, float) for each in given)
    if not numbers or not -1e6 <= given[0] < given[1] <= 1e6:
        expected = "the lowest and the highest, such as (1, 5), between -1e6 and 1e6"
        raise ValueError(f"{name}: expected {expected}, got {describe(given)}")
    return float(given[0]), float(given[1])


def read_range(name: str, text: str) -> tuple[float, float]:
    """Return the (lowest, highest) number in `text`, "1..5". Raise ValueError, naming the option `name`, if it has
    another form."""
    low, dots, high = text.partition("..")
    try:
        if dots:
            return float(low), float(high)
    except ValueError:
        pass
    raise ValueError(f"{name}: expected LOW..HIGH, such as 1..5, got {text!r}")
