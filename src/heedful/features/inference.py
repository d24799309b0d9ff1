"""Infer an encoding from rows: decide for each column whether it becomes a number, a category, a text or the like.

The file is long because it is one list: for each kind of column, when a column is one and what is made of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from heedful.core.validation import check_count
from heedful.data.catalogue import scaled_moments
from heedful.data.files import is_number, number_in
from heedful.data.frames import Frame, rows_in
from heedful.features.columns import (
    LEAST,
    MOST,
    Category,
    Column,
    Ignored,
    Number,
    Prose,
    Text,
    Vector,
    describe_value,
    item_name,
    join_names,
    levels,
    number,
    text,
    vector,
)
from heedful.features.encoding import UNSEEN, Encoding
from heedful.features.texts import bucket, words

_SIMPLE = str | int | float | np.integer | np.floating | np.bool_
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}.*)?|\d{1,2}[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}",
    re.ASCII,
)
_NAMED = re.compile(r"(?i:id|identifier|key|name|item|sku|.*[_ -]id|id[_ -].*)|.*[a-z]I[dD]", re.DOTALL)
TOO_FEW = "and too few repeat"
"""How the reason ends for ignoring a column of texts of which few recur."""
_LONGEST_NAME = 100
_LONGEST_LEVEL = 40  # the greatest average length of a category's values, in characters


class _Limits(NamedTuple):
    """The greatest numbers of features that a column may become: `buckets` of a column of texts, `max_levels` of a
    category."""

    buckets: int
    max_levels: int


class _ColumnSummary(NamedTuple):
    """The values of a column in the rows that an encoding is inferred from.

    - `name`: the name of the column.
    - `cells`: the value in each row, None if it is missing.
    - `values`: the values that are not missing.
    - `missing`: the number of rows in which it is missing.
    """

    name: str
    cells: list[object]
    values: list[object]
    missing: int


def infer(
    rows: Iterable[Mapping[str, object]] | Frame,
    *,
    identifier: str | None = None,
    kinds: Mapping[str, str] | None = None,
    buckets: int = 64,
    max_levels: int = 32,
    keep: Collection[str] = (),
) -> Encoding:
    """Infer an encoding from rows: decide what each column becomes. The order of the rows does not matter.

    `rows`: dictionaries by column, or a data frame (pandas, polars, or any that Arrow can read). `identifier`: the
    column with the items' names, "" if rows have none (contexts). By default it is the first column with a different
    value in each row: among columns called id, key, movie_id, name and the like, then among columns of short texts; but
    if that would be a column called title, the table's first column comes before it if it holds distinct whole numbers.

    `kinds`: the kinds of some columns (number, category, text, prose, vector, ignored) by name; the others are chosen
    by their values. A text is hashed into `buckets` buckets; the levels of a category are its `max_levels` most
    frequent values. Columns in `keep` become features even if they would be ignored (because they name the items, or
    are the same in all rows): numbers or vectors if the values are such, else categories.

    Raise ValueError if there are no rows, no column names the items, no column has features, `kinds` has an unknown
    column or kind, or a value does not fit the kind of its column.
    """
    rows = list(rows_in("rows", rows))
    limits = _Limits(buckets, max_levels)
    check_count("buckets", buckets, most=2**20)
    check_count("max_levels", max_levels, most=2**20)
    if not rows:
        raise ValueError("rows: expected at least one, got none")
    seen = [_summarise(name, rows) for name in _columns(rows)]
    kinds = dict(kinds or {})
    for name, kind in kinds.items():
        if name not in {column.name for column in seen}:
            raise ValueError(
                f"kinds: expected names of columns ({join_names(c.name for c in seen)}), got {describe_value(name)}"
            )
        if kind not in _MAKE:
            raise ValueError(f"kinds: {name}: expected {', '.join(_MAKE)}, got {describe_value(kind)}")
    identifier = _identifier(seen, identifier)
    columns: list[Column] = []
    for column in seen:
        if column.name in kinds:
            columns.append(_make_column(column, kinds[column.name], "as asked", limits))
        elif column.name == identifier:
            columns.append(_make_column(column, "ignored", "names the item", limits))
        else:
            columns.append(_make_column(column, *_kind(column, limits), limits))
        if columns[-1].kind == "ignored" and column.name in keep and column.name not in kinds:
            columns[-1] = _make_column(column, *_kind_to_keep(column, columns[-1].why, limits), limits)
    encoding = Encoding(columns=tuple(columns), identifier=identifier)
    if encoding.size == 0:
        got = join_names(f"{column.name} ({column.why})" for column in columns)
        named = f"; as a category, each {identifier} is a feature of its own" if identifier else ""
        raise ValueError(
            f"columns: expected at least one that tells {'items' if identifier else 'rows'} apart, got {got}{named}"
        )
    return encoding


def encode_names(rows: Iterable[Mapping[str, object]] | Frame, *, identifier: str | None = None) -> Encoding:
    """Return the encoding of items by name only: no column becomes features.

    The column of the names is found as in `infer`; without rows it is `identifier`, by default "id". Raise ValueError
    as there.
    """
    rows = list(rows_in("rows", rows))
    if not rows:
        return UNSEEN if identifier is None else Encoding(columns=(), identifier=identifier)
    seen = [_summarise(name, rows) for name in _columns(rows)]
    found, limits = _identifier(seen, identifier), _Limits(1, 1)
    whys = ["names the item" if column.name == found else "nothing is learned from it" for column in seen]
    columns = tuple([_make_column(column, "ignored", why, limits) for column, why in zip(seen, whys)])
    return Encoding(columns=columns, identifier=found)


# ---------------------------------------------------------------------------- the kind of a column


def _columns(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the names of the columns, ordered by their mean position in the rows, so that the order of rows is
    irrelevant.
    """
    for i, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ValueError(f"row {i}: expected values by column, got {describe_value(row)}")
    places: dict[str, list[int]] = {}
    for names, times in Counter(map(tuple, rows)).items():
        for at, name in enumerate(names):
            if not isinstance(name, str) or not _whole(name):
                raise ValueError(f"rows: expected text as names of columns, got {describe_value(name)}")
            total = places.setdefault(name, [0, 0])
            total[0] += at * times
            total[1] += times
    return sorted(places, key=lambda name: (Fraction(*places[name]), name))


def _summarise(name: str, rows: Sequence[Mapping[str, object]]) -> _ColumnSummary:
    """Return a summary of the values of the column `name`. Raise ValueError for text that UTF-8 cannot hold."""
    cells = [row.get(name) for row in rows]
    for i, value in enumerate(cells):
        if isinstance(value, str):
            if not _whole(value):
                raise ValueError(
                    f"row {i + 1}: {name}: expected whole characters, got half of a pair: {describe_value(value)}"
                )
            if not value.strip():
                cells[i] = None
        elif isinstance(value, float) and value != value:
            cells[i] = None
    values = [value for value in cells if value is not None]
    return _ColumnSummary(name, cells, values, len(cells) - len(values))


def _whole(given: str) -> bool:
    """Return True if `given` can be encoded in UTF-8, which holds for every text without half a surrogate pair."""
    return given.isascii() or not any("\ud800" <= c <= "\udfff" for c in given)


def _identifier(seen: Sequence[_ColumnSummary], given: str | None) -> str:
    if given == "":
        return ""
    unique = {c.name: _unique(c) for c in seen}
    if given is not None:
        if given not in unique:
            raise ValueError(f"identifier: expected a column ({join_names(unique)}), got {describe_value(given)}")
        if unique[given]:
            raise ValueError(f"identifier: {given}: expected another name in every row, got {unique[given]}")
        return given
    named = [name for name, wrong in unique.items() if not wrong and _NAMED.fullmatch(name)]
    if named:  # the one with the most likely name; of equals the first
        ranks = ["id", "identifier", "key"]
        return min(named, key=lambda name: [*ranks, name.lower()].index(name.lower()))
    short = [
        c.name
        for c in seen
        if not unique[c.name]
        and all(isinstance(v, str) and len(v) <= _LONGEST_NAME and not is_number(v.strip()) for v in c.values)
    ]
    titles = [name for name in unique if not unique[name] and name.lower() == "title"]
    if titles and short[:1] in ([], titles[:1]):
        first = seen[0].name  # distinct numbers in the first column are probably the names
        return titles[0] if unique[first] else first
    if short:
        return short[0]
    got = join_names(
        f"{name} ({wrong or 'long texts or numbers: name it, if it is this one'})" for name, wrong in unique.items()
    )
    told = 'expected a column with another name in every row ("" where rows have none)'
    raise ValueError(f"identifier: {told}, got {got}")


def _unique(column: _ColumnSummary) -> str:
    """Return in words why a column cannot name the rows; "" if it can."""
    try:
        names = [item_name(column.name, value) for value in column.values]
    except ValueError:
        return "neither texts nor whole numbers"
    if column.missing:
        return f"{column.missing} without"
    name, times = Counter(names).most_common(1)[0]
    return f"{describe_value(name)} {times} times" if times > 1 else ""


def _kind(column: _ColumnSummary, limits: _Limits) -> tuple[str, str]:
    """Return (the kind that `column` becomes: "number", "category", ...; the reason in words).

    `limits` are the greatest numbers of buckets and levels.
    """
    values = column.values
    if not values:
        return "ignored", "nothing in it"
    if all(isinstance(v, list | tuple | np.ndarray) for v in values):
        return _kind_of_lists(values)
    odd = {type(v).__name__ for v in values if not isinstance(v, _SIMPLE)}
    if odd:
        return "ignored", f"neither numbers nor texts: {', '.join(sorted(odd))}"
    numbers = [v for v in values if not isinstance(v, str) or _is_number(v)]
    if len(numbers) == len(values):
        try:
            different = {number(column.name, v) for v in values} | ({None} if column.missing else set())
        except ValueError:
            return "number", ""  # a value is infinite: the error names its row when the column is made
        if len(different) == 1:
            return "ignored", "the same everywhere" if different != {None} else "nothing in it"
        return "number", f"{len(different - {None})} different numbers"
    try:
        written = [text(column.name, v) or "" for v in values]
    except ValueError:
        return "ignored", "whole numbers too long to write"
    return _kind_of_texts(column, written, len(numbers), limits)


def _kind_to_keep(column: _ColumnSummary, why: str, limits: _Limits) -> tuple[str, str]:
    """Return the kind of a column that would be ignored for the reason `why` but must become a feature, and why.

    Raise ValueError if it cannot become one.
    """
    if column.values and all(isinstance(v, list | tuple | np.ndarray) for v in column.values):
        kind, told = _kind_of_lists(column.values)
        if kind == "vector" or told == "the same everywhere":
            return "vector", f"asked for; {why}"
    elif why != "names the item" and column.values and not any(isinstance(v, str) for v in column.values):
        return "number", f"asked for; {why}"
    elif column.values:
        levels = len(set(map(str, column.values)))
        if levels > limits.max_levels:
            expected = f"expected at most {limits.max_levels} different values, a feature for each"
            raise ValueError(f"{column.name}: {expected}, got {levels}")
        return "category", f"asked for; {why}"
    raise ValueError(f"{column.name}: expected what can be a feature, got {why}")


def _kind_of_texts(column: _ColumnSummary, written: list[str], numbers: int, limits: _Limits) -> tuple[str, str]:
    n, different = len(written), len(set(written))
    if different == 1 and not column.missing:
        return "ignored", "the same everywhere"
    if all(_DATE.fullmatch(t) for t in written):
        return "ignored", "dates: make numbers of them, such as an age in days"
    if all(t.startswith(("http://", "https://")) for t in written):
        return "ignored", "addresses"
    told = f"{different} different texts in {n} rows"
    if 2 * different <= n and sum(map(len, written)) <= _LONGEST_LEVEL * n:
        more = f", the {limits.max_levels} most frequent are levels" if different > limits.max_levels else ""
        return "category", told + more
    average = sum(len(words(t)) for t in written) / n
    if average >= 2:
        return "text", f"{told} of {average:.3g} words"
    return "ignored", f"{told}, {f'{numbers} of them numbers, ' if numbers else ''}{TOO_FEW}"


def _kind_of_lists(values: Sequence[object]) -> tuple[str, str]:
    try:
        found = {tuple(vector("", v) or ()) for v in values}
    except ValueError:
        return _kind_of_words([each for v in values if isinstance(v, list | tuple | np.ndarray) for each in v])
    sizes = sorted({len(v) for v in found})
    if len(sizes) > 1:
        return "ignored", f"lists of {sizes[0]} to {sizes[-1]} numbers"
    if len(found) == 1:
        return "ignored", "the same everywhere"
    return "vector", f"lists of {sizes[0]} numbers"


def _kind_of_words(found: Sequence[object]) -> tuple[str, str]:
    if not all(isinstance(each, str) and len(each) <= _LONGEST_NAME for each in found):
        return "ignored", "lists of something else than numbers or words"
    different = len(set(found))
    told = f"lists of {different} different words"
    return ("category", told) if 2 * different <= len(found) else ("ignored", f"{told}, {TOO_FEW}")


def _is_number(written: str) -> bool:
    """Return True if a text is a finite number, or stands for a missing one."""
    value = number_in(written.strip())
    return value is not None and not math.isinf(value)


# ---------------------------------------------------------------------------- making a column


def _make_column(column: _ColumnSummary, kind: str, why: str, limits: _Limits) -> Column:
    """Return `column` as a column of this kind; `why`: the reason for the kind, `limits`: greatest numbers of buckets
    and levels.

    Raise ValueError, naming the row, for a value that does not fit.
    """
    read: Callable[[str, Any], Any] = {
        "number": number,
        "vector": vector,
        "ignored": _anything,
        "category": levels,
    }.get(kind, text)
    values = []
    for i, value in enumerate(column.cells):
        try:
            values.append(read(column.name, value))
        except ValueError as error:
            raise ValueError(f"row {i + 1}: {error}") from None
    there = [value for value in values if value is not None]
    about = {"name": column.name, "missing": len(values) - len(there), "why": why}
    return _MAKE[kind](there, about, limits)


def _anything(name: str, value: object) -> str | None:
    return value if value is None or isinstance(value, str) else describe_value(value)


def _number(there: list[float], about: dict[str, Any], _: _Limits) -> Number:
    if not there:
        return Number(mean=0.0, scale=1.0, **about)
    there = sorted(value + 0.0 for value in there)  # the last bits of a sum depend on the order; -0.0 is 0.0
    low, high = there[0], there[-1]
    if low == high:  # a different value, if one comes, is then scaled by its relative change
        return Number(mean=low, scale=abs(low) or 1.0, example=f"{low:g}", **about)
    power, mean, scale = scaled_moments(np.array(there))
    mean = min(max(_times(mean, power), low), high)
    return Number(mean=mean, scale=_times(scale, power) or LEAST, example=f"{low:g} to {high:g}", **about)


def _vector(there: list[list[float]], about: dict[str, Any], _: _Limits) -> Vector:
    size = len(there[0]) if there else 0
    if any(len(each) != size for each in there) or not size:
        got = " or ".join(str(n) for n in sorted({len(each) for each in there})[:2]) or "nothing in it"
        raise ValueError(f"{about['name']}: expected lists of one length, 1 or more, got {got}")
    power = math.frexp(max(abs(x) for each in there for x in each))[1]  # so that no square overflows or underflows
    lengths = sorted(math.hypot(*(math.ldexp(x, -power) for x in each)) for each in there)
    scale = math.hypot(*lengths) / math.sqrt(len(lengths))
    return Vector(size=size, scale=_times(scale, power) or LEAST, example=f"{size} numbers", **about)


def _category(there: list[list[str]], about: dict[str, Any], limits: _Limits) -> Category:
    counts = Counter(level for each in there for level in each)
    most = sorted(counts, key=lambda level: (-counts[level], level))[: limits.max_levels]
    return Category(levels=tuple(sorted(most)), example=_short(most[0]) if most else "", **about)


def _text(there: list[str], about: dict[str, Any], limits: _Limits) -> Text:
    counts = Counter(word for each in there for word in words(each))
    most = [""] * limits.buckets
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        at = bucket(word, limits.buckets)
        most[at] = most[at] or word
    return Text(words=tuple(most), example=_shortest(there), **about)


def _prose(there: list[str], about: dict[str, Any], _: _Limits) -> Prose:
    return Prose(example=_shortest(there), **about)


def _ignore(there: list[str], about: dict[str, Any], _: _Limits) -> Ignored:
    return Ignored(example=_shortest(there), **about)


_MAKE: dict[str, Callable[..., Column]] = {
    "number": _number,
    "category": _category,
    "text": _text,
    "prose": _prose,
    "vector": _vector,
    "ignored": _ignore,
}


def _times(value: float, power: int) -> float:
    """Return value times 2^power; the greatest float of its sign if that overflows."""
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(MOST, value)


def _shortest(texts: Sequence[str]) -> str:
    return _short(min(texts, key=lambda t: (len(t), t), default=""))


def _short(given: str) -> str:
    line = " ".join(given.split())
    return line if len(line) <= 60 else line[:57] + "..."
