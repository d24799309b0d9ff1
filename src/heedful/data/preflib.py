"""Reader and writer of PrefLib files (Mattei & Walsh, *PrefLib: A Library for Preferences*, ADT 2013): rankings with
and without ties.
"""

import re
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from heedful.core.validation import describe
from heedful.data.comparisons import Comparison, ComparisonTable, Tiers, tabulate
from heedful.data.files import numbered_lines

SUFFIXES = (".soc", ".soi", ".toc", ".toi")
"""Endings of the file names: strict rankings (complete, incomplete), then rankings with ties (complete, incomplete)."""

MOST = 10_000
"""The greatest number of alternatives (items) in a file."""

_FIELD = re.compile(r"([A-Z]+(?: [A-Z]+)*)(?: ([0-9]{1,9}))?")
_TIER = r"(?:[0-9]{1,9}|\{[0-9]{0,9}(?:,[0-9]{1,9})*\})"
_ORDER = re.compile(rf"{_TIER}(?:,{_TIER})*")


def load_preflib(path: str | PathLike[str]) -> ComparisonTable:
    """Load the rankings of a .soc, .soi, .toc or .toi file, plain or gzip, as comparisons by a person without a name.

    The content tells which header it has: lines such as "# NUMBER ALTERNATIVES: 4", or the older one, which has the
    count, a line "1,NAME" for each alternative, and "voters,sum,orders". A ranking by n voters is one answer given n
    times. Alternatives that an incomplete ranking lacks are not taken to be worse. Nothing is said about the order of
    items within braces, except that a ranking of just two in braces says that they are equally good. A ranking of a
    single alternative is left out.

    Raise FileNotFoundError if the file does not exist; ValueError, as `NAME:LINE: field: expected ..., got ...`, for a
    malformed line, an alternative that does not exist or occurs twice, and if no ranking is left.
    """
    path = Path(path)
    lines = [(number, text) for number, line in numbered_lines(path) if (text := line.strip())]
    if not lines:
        raise ValueError(f"{path.name}: header: expected # NUMBER ALTERNATIVES: or a number, got an empty file")
    names, orders, colon = _header(path.name, lines) if lines[0][1].startswith("#") else _old(path.name, lines)
    complete = path.name.removesuffix(".gz").endswith((".soc", ".toc"))
    strict = path.name.removesuffix(".gz").endswith((".soc", ".soi"))
    answered = list(_read_orders(path.name, names, orders, colon, complete, strict))
    if not answered:
        raise ValueError(f"{path.name}: orders: expected at least one of two or more alternatives, got none")
    return tabulate(answered, names.values())


Lines = list[tuple[int, str]]


def _header(file: str, lines: Lines) -> tuple[dict[int, str], Lines, str]:
    """Return (names of alternatives by number, lines of rankings, mark after the count) of the newer header."""
    titles, count = {}, None
    for number, text in lines:
        if not text.startswith("#"):
            continue
        head, _, value = text[1:].partition(":")
        match = _FIELD.fullmatch(" ".join(head.split())) if len(head) < 200 else None
        field, of = match.groups() if match else ("", None)
        if field == "NUMBER ALTERNATIVES":
            count = _count(f"{file}:{number}: NUMBER ALTERNATIVES", value.strip())
        elif field == "ALTERNATIVE NAME" and of is not None:
            if int(of) in titles:
                raise ValueError(f"{file}:{number}: ALTERNATIVE NAME: expected each once, got {of} twice")
            titles[int(of)] = value.strip()
    if count is None:
        raise ValueError(f"{file}: header: expected a line # NUMBER ALTERNATIVES:, got none")
    wrong = next((of for of in titles if not 1 <= of <= count), None)
    if wrong is not None:
        raise ValueError(f"{file}: ALTERNATIVE NAME: expected a number from 1 to {count}, got {wrong}")
    names = {of: titles.get(of) or f"alternative {of}" for of in range(1, count + 1)}
    return _unique(file, names), [line for line in lines if not line[1].startswith("#")], ":"


def _old(file: str, lines: Lines) -> tuple[dict[int, str], Lines, str]:
    """Return (names of alternatives by number, lines of rankings, mark after the count) of the older header."""
    number, text = lines[0]
    count = _count(f"{file}:{number}: alternatives", text)
    names: dict[int, str] = {}
    for number, text in lines[1 : count + 1]:
        of, comma, name = text.partition(",")
        if not comma or of.strip() != str(len(names) + 1):
            raise ValueError(f"{file}:{number}: alternative: expected {len(names) + 1},NAME, got {describe(text)}")
        names[int(of)] = name.strip().strip('"') or f"alternative {of}"
    if len(names) < count or len(lines) < count + 2:
        raise ValueError(f"{file}: header: expected {count} alternatives and a line of counts, got {len(lines)} lines")
    number, text = lines[count + 1]
    if not re.fullmatch(r"[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+", text):
        raise ValueError(
            f"{file}:{number}: counts: expected voters, their sum and orders as numbers, got {describe(text)}"
        )
    return _unique(file, names), lines[count + 2 :], ","


def _unique(file: str, names: dict[int, str]) -> dict[int, str]:
    """Return `names`, alternatives by number, made distinct: those with the same name get their number appended."""
    times = Counter(names.values())
    out = {of: name if times[name] == 1 else f"{name} ({of})" for of, name in names.items()}
    if len(set(out.values())) < len(out):
        raise ValueError(f"{file}: alternatives: expected different names, got {describe(sorted(out.values()))}")
    return out


def _count(where: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not 2 <= int(text) <= MOST:
        raise ValueError(f"{where}: expected a whole number, 2 to {MOST}, got {describe(text)}")
    return int(text)


def _read_orders(
    file: str, names: dict[int, str], orders: Lines, colon: str, complete: bool, strict: bool
) -> Iterator[Comparison[str]]:
    for number, text in orders:
        where = f"{file}:{number}"
        count, mark, order = "".join(text.split()).partition(colon)
        if not mark or not count.isascii() or not count.isdecimal() or (order and not _ORDER.fullmatch(order)):
            expected = f"COUNT{colon} and numbers apart by commas, ties in braces"
            raise ValueError(f"{where}: order: expected {expected}, got {describe(text)}")
        if len(count) > 18 or not 1 <= int(count) <= 1e9:
            raise ValueError(f"{where}: count: expected 1 to 1000000000, got {describe(count)}")
        groups = re.findall(r"\{([^}]*)\}|([0-9]+)", order)
        tiers = [[int(of) for of in (tie or alone).split(",") if of] for tie, alone in groups]
        tiers = [tier for tier in tiers if tier]
        every = [of for tier in tiers for of in tier]
        unknown = next((of for of in every if of not in names), None)
        if unknown is not None:
            raise ValueError(f"{where}: order: expected numbers from 1 to {len(names)}, got {unknown}")
        twice = next((of for of, times in Counter(every).items() if times > 1), None)
        if twice is not None:
            raise ValueError(f"{where}: order: expected each alternative once, got {twice} twice")
        if complete and len(every) < len(names):
            raise ValueError(f"{where}: order: expected all {len(names)} alternatives, got {len(every)}")
        if strict and len(every) > len(tiers):
            raise ValueError(f"{where}: order: expected no ties (.toc and .toi have them), got {describe(text)}")
        if len(tiers) > 1 or [len(tier) for tier in tiers] == [2]:
            yield Comparison("", tuple(tuple(names[of] for of in tier) for tier in tiers), int(count))


def write_preflib(path: str | PathLike[str], choices: ComparisonTable, *, title: str = "") -> None:
    """Write the rankings of a table as a PrefLib file, with a header of lines that begin with #; `title` is its title.

    The ending of the name (SUFFIXES) tells the kind. The format cannot hold who gave an answer, which item was shown
    first, and answers "cannot judge"; these are lost. Raise ValueError for another ending, for a ranking that the kind
    cannot hold (.soc and .toc: only complete; .soc and .soi: no ties), for a name with a line break, and if there is no
    ranking.
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path: expected a name that ends in {', '.join(SUFFIXES)}, got {path.name!r}")
    for name in (title, *choices.items):
        if len(name.splitlines()) > 1 or name != name.strip():
            raise ValueError(f"items: expected names of one line without spaces around them, got {describe(name)}")
    orders: Counter[Tiers] = Counter()
    for answer in choices.comparisons:
        if answer.judged:
            orders[tuple(tuple(sorted(tier)) for tier in answer.tiers)] += answer.times
    if not orders:
        raise ValueError("choices: expected at least one order, got none")
    n = len(choices.items)
    for tiers in orders:
        placed = sum(map(len, tiers))
        if kind in ("soc", "toc") and placed < n:
            raise ValueError(f"choices: expected all {n} items in every order of a .{kind}, got one of {placed}")
        if kind in ("soc", "soi") and placed > len(tiers):
            raise ValueError(f"choices: expected no ties in a .{kind}, got an order with some")
    head = {"FILE NAME": path.name, "TITLE": title, "DATA TYPE": kind, "MODIFICATION TYPE": "original"}
    head |= {"NUMBER ALTERNATIVES": str(n), "NUMBER VOTERS": str(sum(orders.values()))}
    head |= {"NUMBER UNIQUE ORDERS": str(len(orders))}
    head |= {f"ALTERNATIVE NAME {i}": name for i, name in enumerate(choices.items, 1)}
    lines = [f"# {field}: {value}".rstrip() for field, value in head.items()]
    for tiers, times in sorted(orders.items(), key=lambda entry: (-entry[1], entry[0])):
        numbers = [[str(i + 1) for i in tier] for tier in tiers]
        lines.append(f"{times}: " + ",".join(t[0] if len(t) == 1 else "{" + ",".join(t) + "}" for t in numbers))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
