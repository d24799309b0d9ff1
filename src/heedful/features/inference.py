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

from heedful.core.validation import check_count, check_mapping, describe, list_of, names_of
from heedful.data.catalogue import scaled_moments
from heedful.data.files import cut_list, is_number, number_in
from heedful.data.frames import Frame, rows_in
from heedful.features.columns import (
    LEAST,
    MOST,
    Category,
    Column,
    Ignored,
    Logarithm,
    Number,
    Prose,
    Tags,
    Text,
    Vector,
    item_name,
    levels,
    logarithm,
    number,
    split,
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
SEPARATORS = "|;"
"""What stands between tags in one text."""
_LONGEST_NAME = 100
_LONGEST_LEVEL = 40  # the greatest average length of a category's values, in characters
_LINEAR = 3.0  # up to it log(1 + x) is nearly a straight line, so that a column below gains nothing
_BETTER = 2.0  # by how much the log-likelihood of the logarithms has to be better


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

    `kinds`: the kinds of some columns (number, logarithm, category, tags, text, prose, vector, ignored) by name; the
    others are chosen by their values. A text is hashed into `buckets` buckets; the levels of a category are its
    `max_levels` most frequent values. Columns in `keep` become features even if they would be ignored (because they
    name the items, or are the same in all rows): numbers or vectors if the values are such, else categories.

    Raise ValueError if there are no rows, no column names the items, no column has features, `kinds` has an unknown
    column or kind, or a value does not fit the kind of its column.
    """
    rows = list_of("rows", rows_in("rows", rows), "objects")
    limits = _Limits(buckets, max_levels)
    check_count("buckets", buckets, most=2**20)
    check_count("max_levels", max_levels, most=2**20)
    if not rows:
        raise ValueError("rows: expected at least one, got none")
    summaries = [_summarise(name, rows) for name in _columns(rows)]
    kinds, keep = kinds or {}, names_of("keep", keep)
    check_mapping("kinds", kinds, "kinds of columns")
    for name, kind in kinds.items():
        if name not in {column.name for column in summaries}:
            raise ValueError(
                f"kinds: expected names of columns ({cut_list([c.name for c in summaries])}), got {describe(name)}"
            )
        if kind not in _KINDS:
            raise ValueError(f"kinds: {name}: expected {', '.join(_KINDS)}, got {describe(kind)}")
    identifier = _identifier(summaries, identifier)
    columns: list[Column] = []
    for column in summaries:
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
        reasons = cut_list([f"{column.name} ({column.why})" for column in columns])
        hint = f"; as a category, each {identifier} is a feature of its own" if identifier else ""
        raise ValueError(
            f"columns: expected at least one that tells {'items' if identifier else 'rows'} apart, got {reasons}{hint}"
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
    summaries = [_summarise(name, rows) for name in _columns(rows)]
    name_column, limits = _identifier(summaries, identifier), _Limits(1, 1)
    whys = ["names the item" if column.name == name_column else "nothing is learned from it" for column in summaries]
    columns = tuple([_make_column(column, "ignored", why, limits) for column, why in zip(summaries, whys)])
    return Encoding(columns=columns, identifier=name_column)


# ---------------------------------------------------------------------------- the kind of a column


def _columns(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the names of the columns, ordered by their mean position in the rows, so that the order of rows is
    irrelevant.
    """
    for i, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ValueError(f"row {i}: expected values by column, got {describe(row)}")
    places: dict[str, list[int]] = {}
    for names, times in Counter(map(tuple, rows)).items():
        for position, name in enumerate(names):
            if not isinstance(name, str) or not _is_encodable(name):
                raise ValueError(f"rows: expected text as names of columns, got {describe(name)}")
            total = places.setdefault(name, [0, 0])
            total[0] += position * times
            total[1] += times
    return sorted(places, key=lambda name: (Fraction(*places[name]), name))


def _summarise(name: str, rows: Sequence[Mapping[str, object]]) -> _ColumnSummary:
    """Return a summary of the values of the column `name`. Raise ValueError for text that UTF-8 cannot hold."""
    cells = [row.get(name) for row in rows]
    for i, value in enumerate(cells):
        if isinstance(value, str):
            if not _is_encodable(value):
                raise ValueError(
                    f"row {i + 1}: {name}: expected whole characters, got half of a pair: {describe(value)}"
                )
            if not value.strip():
                cells[i] = None
        elif isinstance(value, float) and value != value:
            cells[i] = None
    values = [value for value in cells if value is not None]
    return _ColumnSummary(name, cells, values, len(cells) - len(values))


def _is_encodable(value: str) -> bool:
    """Return True if `value` can be encoded in UTF-8, which holds for every text without half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _identifier(summaries: Sequence[_ColumnSummary], requested: str | None) -> str:
    if requested == "":
        return ""
    unique = {c.name: _unique(c) for c in summaries}
    if requested is not None:
        if requested not in unique:
            raise ValueError(f"identifier: expected a column ({cut_list(list(unique))}), got {describe(requested)}")
        if unique[requested]:
            raise ValueError(f"identifier: {requested}: expected another name in every row, got {unique[requested]}")
        return requested
    likely = [name for name, reason in unique.items() if not reason and _NAMED.fullmatch(name)]
    if likely:  # the one with the most likely name; of equals the first
        ranks = ["id", "identifier", "key"]
        return min(likely, key=lambda name: [*ranks, name.lower()].index(name.lower()))
    short = [
        c.name
        for c in summaries
        if not unique[c.name]
        and all(isinstance(v, str) and len(v) <= _LONGEST_NAME and not is_number(v.strip()) for v in c.values)
    ]
    titles = [name for name in unique if not unique[name] and name.lower() == "title"]
    if titles and short[:1] in ([], titles[:1]):
        first = summaries[0].name  # distinct numbers in the first column are probably the names
        return titles[0] if unique[first] else first
    if short:
        return short[0]
    columns = cut_list(
        [f"{name} ({reason or 'long texts or numbers: name it, if it is this one'})" for name, reason in unique.items()]
    )
    expected = 'expected a column with another name in every row ("" where rows have none)'
    raise ValueError(f"identifier: {expected}, got {columns or 'none'}")


def _unique(column: _ColumnSummary) -> str:
    """Return in words why a column cannot name the rows; "" if it can."""
    try:
        names = [item_name(column.name, value) for value in column.values]
    except ValueError:
        return "neither texts nor whole numbers"
    if column.missing:
        return f"{column.missing} without"
    name, times = Counter(names).most_common(1)[0]
    return f"{describe(name)} {times} times" if times > 1 else ""


def _kind(column: _ColumnSummary, limits: _Limits) -> tuple[str, str]:
    """Return (the kind that `column` becomes, the reason in words)."""
    values = column.values
    if not values:
        return "ignored", "nothing in it"
    if all(isinstance(v, list | tuple | np.ndarray) for v in values):
        return _kind_of_lists(values)
    odd = {type(v).__name__ for v in values if not isinstance(v, _SIMPLE)}
    if odd:
        return "ignored", f"neither numbers nor texts: {', '.join(sorted(odd))}"
    numeric = sum(not isinstance(v, str) or _is_number(v) for v in values)
    if numeric == len(values):
        try:
            numbers = [number(column.name, v) for v in values]
        except ValueError:
            return "number", ""  # a value is infinite: the error names its row when the column is made
        different = set(numbers) | ({None} if column.missing else set())
        if len(different) == 1:
            return "ignored", "the same everywhere" if different != {None} else "nothing in it"
        description = f"{len(different - {None})} different numbers"
        gain = _gain_of_logarithms(sorted(x for x in numbers if x is not None))
        if gain > _BETTER:
            fit = f"a normal fits log(1 + x) better, log-likelihood +{gain:.3g}"
            return "logarithm", f"{description} with a long tail: {fit}"
        return "number", description
    try:
        texts = [text(column.name, v) or "" for v in values]
    except ValueError:
        return "ignored", "whole numbers too long to write"
    return _kind_of_texts(column, texts, numeric, limits)


def _gain_of_logarithms(numbers: list[float]) -> float:
    """Return by how much a normal that is fitted to the logarithms of `numbers`, in ascending order, has a greater
    log-likelihood than one that is fitted to the numbers themselves; 0 where logarithms make no sense.

    Both are densities of the numbers, so that of the logarithms has the factor 1 / (1 + x) (Box and Cox 1964)."""
    if numbers[0] < 0.0 or numbers[-1] <= _LINEAR:
        return 0.0
    logs = np.array([logarithm(x) for x in numbers])
    if logs[0] == logs[-1]:  # equal numbers, or large ones that nearly are
        return 0.0
    power, _, scale = scaled_moments(np.array(numbers))
    return len(numbers) * (math.log(scale / logs.std()) + power * math.log(2.0)) - float(logs.sum())


def _kind_to_keep(column: _ColumnSummary, why: str, limits: _Limits) -> tuple[str, str]:
    """Return the kind of a column that would be ignored for the reason `why` but must become a feature, and why."""
    if column.values and all(isinstance(v, list | tuple | np.ndarray) for v in column.values):
        kind, reason = _kind_of_lists(column.values)
        if kind == "vector" or reason == "the same everywhere":
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


def _kind_of_texts(column: _ColumnSummary, texts: list[str], numbers: int, limits: _Limits) -> tuple[str, str]:
    n, different = len(texts), len(set(texts))
    if different == 1 and not column.missing:
        return "ignored", "the same everywhere"
    if all(_DATE.fullmatch(t) for t in texts):
        return "ignored", "dates: make numbers of them, such as an age in days"
    if all(t.startswith(("http://", "https://")) for t in texts):
        return "ignored", "addresses"
    mark = _separator(texts)
    tags = split(texts, mark)
    if n < len(tags) and len(set(tags)) <= different and _is_short(tags) and 2 * _recurring(tags) >= len(tags):
        cut = _cut_levels(tags, limits)
        return "tags", f"{len(set(tags))} different tags in {different} different texts, {mark} between them{cut}"
    description, short = f"{different} different texts in {n} rows", _is_short(texts)
    if short and 2 * different <= n:
        return "category", description + _cut_levels(texts, limits)
    average = sum(len(words(t)) for t in texts) / n
    if average >= 2:
        return "text", f"{description} of {average:.3g} words"
    recurring = _recurring(texts)
    if short and 2 * recurring >= n:
        return "category", f"{description}, {recurring} of which share theirs{_cut_levels(texts, limits)}"
    return "ignored", f"{description}, {f'{numbers} of them numbers, ' if numbers else ''}{TOO_FEW}"


def _cut_levels(levels: Collection[str], limits: _Limits) -> str:
    """Return in words that only the most frequent levels are features; "" if all of them are."""
    most = limits.max_levels
    return f", the {most} most frequent are levels" if len(set(levels)) > most else ""


def _is_short(levels: Collection[str]) -> bool:
    """Return whether texts are short enough, on average, for levels of a category."""
    return sum(map(len, levels)) <= _LONGEST_LEVEL * len(levels)


def _separator(texts: Sequence[str]) -> str:
    """Return what stands between the tags in `texts`: that of SEPARATORS which more of them have."""
    return max(SEPARATORS, key=lambda mark: sum(mark in entry for entry in texts))


def _recurring(texts: Sequence[object]) -> int:
    """Return how many of `texts` occur more than once, counting each as often as it occurs."""
    return sum(times for times in Counter(texts).values() if times > 1)


def _kind_of_lists(values: Sequence[object]) -> tuple[str, str]:
    try:
        vectors = {tuple(vector("", v) or ()) for v in values}
    except ValueError:
        return _kind_of_words([entry for v in values if isinstance(v, list | tuple | np.ndarray) for entry in v])
    sizes = sorted({len(v) for v in vectors})
    if len(sizes) > 1:
        return "ignored", f"lists of {sizes[0]} to {sizes[-1]} numbers"
    if len(vectors) == 1:
        return "ignored", "the same everywhere"
    return "vector", f"lists of {sizes[0]} numbers"


def _kind_of_words(entries: Sequence[object]) -> tuple[str, str]:
    if not all(isinstance(entry, str) and len(entry) <= _LONGEST_NAME for entry in entries):
        return "ignored", "lists of something else than numbers or words"
    description = f"lists of {len(set(entries))} different words"
    if 2 * _recurring(entries) >= len(entries):
        return "category", description
    return "ignored", f"{description}, {TOO_FEW}"


def _is_number(string: str) -> bool:
    """Return True if a text is a finite number, or stands for a missing one."""
    value = number_in(string.strip())
    return value is not None and not math.isinf(value)


# ---------------------------------------------------------------------------- making a column


def _make_column(column: _ColumnSummary, kind: str, why: str, limits: _Limits) -> Column:
    """Return `column` as a column of this kind. Raise ValueError, naming the row, for a value that does not fit."""
    read, make = _KINDS[kind]
    values = []
    for i, value in enumerate(column.cells):
        try:
            values.append(read(column.name, value))
        except ValueError as error:
            raise ValueError(f"row {i + 1}: {error}") from None
    present = [value for value in values if value is not None]
    common = {"name": column.name, "missing": len(values) - len(present), "why": why}
    return make(present, common, limits)


def _anything(name: str, value: object) -> str | None:
    return value if value is None or isinstance(value, str) else describe(value)


def _number(numbers: list[float], common: dict[str, Any], _: _Limits) -> Number:
    mean, scale = _moments(numbers)
    return Number(mean=mean, scale=scale, example=_range(numbers), **common)


def _logarithm(numbers: list[float], common: dict[str, Any], _: _Limits) -> Logarithm:
    plain, logs = _moments(numbers), _moments([logarithm(value) for value in numbers])
    moments: dict[str, Any] = dict(zip(("mean", "scale", "log_mean", "log_scale"), plain + logs))
    return Logarithm(example=_range(numbers), **moments, **common)


def _moments(numbers: list[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation of `numbers`; if all are equal, a scale by which a different value, if
    one comes, counts by its relative change."""
    numbers = sorted(value + 0.0 for value in numbers)  # the last bits of a sum depend on the order; -0.0 is 0.0
    if not numbers or numbers[0] == numbers[-1]:
        return (numbers[0], abs(numbers[0]) or 1.0) if numbers else (0.0, 1.0)
    power, mean, scale = scaled_moments(np.array(numbers))
    return min(max(_times(mean, power), numbers[0]), numbers[-1]), _times(scale, power) or LEAST


def _range(numbers: list[float]) -> str:
    """Return the range of `numbers` as text: "50 to 150"."""
    low, high = min(numbers, default=0.0) + 0.0, max(numbers, default=0.0) + 0.0
    return f"{low:g} to {high:g}" if low < high else f"{low:g}" if numbers else ""


def _vector(vectors: list[list[float]], common: dict[str, Any], _: _Limits) -> Vector:
    size = len(vectors[0]) if vectors else 0
    if any(len(components) != size for components in vectors) or not size:
        got = " or ".join(str(n) for n in sorted({len(components) for components in vectors})[:2]) or "nothing in it"
        raise ValueError(f"{common['name']}: expected lists of one length, 1 or more, got {got}")
    power = math.frexp(max(abs(x) for components in vectors for x in components))[
        1
    ]  # so that no square overflows or underflows
    lengths = sorted(math.hypot(*(math.ldexp(x, -power) for x in components)) for components in vectors)
    scale = math.hypot(*lengths) / math.sqrt(len(lengths))
    return Vector(size=size, scale=_times(scale, power) or LEAST, example=f"{size} numbers", **common)


def _category(rows: list[list[str]], common: dict[str, Any], limits: _Limits) -> Category:
    counts = Counter(level for row_levels in rows for level in row_levels)
    most = sorted(counts, key=lambda level: (-counts[level], level))[: limits.max_levels]
    return Category(levels=tuple(sorted(most)), example=_short(most[0]) if most else "", **common)


def _tags(rows: list[list[str]], common: dict[str, Any], limits: _Limits) -> Tags:
    separator = _separator([level for row_levels in rows for level in row_levels])
    category = _category([split(row_levels, separator) for row_levels in rows], common, limits)
    return Tags(levels=category.levels, separator=separator, example=category.example, **common)


def _text(texts: list[str], common: dict[str, Any], limits: _Limits) -> Text:
    counts = Counter(word for entry in texts for word in words(entry))
    most = [""] * limits.buckets
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        place = bucket(word, limits.buckets)
        most[place] = most[place] or word
    return Text(words=tuple(most), example=_shortest(texts), **common)


def _prose(texts: list[str], common: dict[str, Any], _: _Limits) -> Prose:
    return Prose(example=_shortest(texts), **common)


def _ignore(texts: list[str], common: dict[str, Any], _: _Limits) -> Ignored:
    return Ignored(example=_shortest(texts), **common)


_KINDS: dict[str, tuple[Callable[[str, Any], Any], Callable[..., Column]]] = {
    "number": (number, _number),
    "logarithm": (number, _logarithm),
    "category": (levels, _category),
    "tags": (levels, _tags),
    "text": (text, _text),
    "prose": (text, _prose),
    "vector": (vector, _vector),
    "ignored": (_anything, _ignore),
}
"""What reads a value of each kind of column, and what makes the column of those that are there."""


def _times(value: float, power: int) -> float:
    """Return value times 2^power; the greatest float of its sign if that overflows."""
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(MOST, value)


def _shortest(texts: Sequence[str]) -> str:
    return _short(min(texts, key=lambda t: (len(t), t), default=""))


def _short(string: str) -> str:
    line = " ".join(string.split())
    return line if len(line) <= 60 else line[:57] + "..."
