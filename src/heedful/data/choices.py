"""Loader of comparisons from a table: pairs with a winner, pairs with an answer, or rankings in columns or rows.

The file is long because answers come in many forms, each of which is read and written here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from heedful.core.decoding import decoder
from heedful.core.validation import check_mapping, check_path, describe, names_of
from heedful.data.cells import MOST_TIMES, WORDS, name_in, number_of, person_in, times_in, word
from heedful.data.choice_pairs import read_pairs
from heedful.data.comparisons import (
    Comparison,
    ComparisonTable,
    PairColumns,
    by_name,
    comparison_of,
    table_of_columns,
    tabulate,
)
from heedful.data.exported_choices import exported_choices
from heedful.data.files import MISSING, first_lines, open_uncompressed
from heedful.data.frames import Frame, rows_in
from heedful.data.json_records import Located
from heedful.data.known_forms import unpack
from heedful.data.preflib import SUFFIXES, load_preflib
from heedful.data.repeats import Repeats, newest_rows
from heedful.data.roles import find_columns
from heedful.data.set_aside import counted_rows
from heedful.data.spreadsheet import write_table
from heedful.data.table import Table, open_table, table_of
from heedful.data.wide_choices import as_answers, with_ties


class LoadedChoices(NamedTuple):
    """Comparisons that were read from a file, with a `summary` in words of how; `repeats`: rows left out as the same
    answer."""

    choices: ComparisonTable
    summary: str
    bad: int = 0
    """number of ties in which both items were called bad"""
    repeats: Repeats = Repeats()

    def to_choices(self) -> LoadedChoices:
        """Return these, as `LoadedPairs.to_choices` does."""
        return self


class LoadedPairs(NamedTuple):
    """Comparisons of two items that were read as columns from `table`; `roles` are the names of its columns by role."""

    table: Table
    roles: dict[str, list[str]]
    pairs: PairColumns
    summary: str
    repeats: Repeats = Repeats()

    def to_choices(self) -> LoadedChoices:
        """Return the same comparisons as a table of comparisons. Raise ValueError if none is judged."""
        choices = table_of_columns(self.pairs)
        _refuse_empty(self.table.name, choices)
        return LoadedChoices(choices, self.summary, int(self.pairs.times[self.pairs.bad].sum()), self.repeats)


def open_choices(
    path: str | PathLike[str],
    columns: Mapping[str, Sequence[str]] | None = None,
    words: Mapping[str, str] | None = None,
) -> LoadedChoices:
    """Load comparisons from a file: a table (CSV, JSON or Parquet, as in `read_table`), PrefLib (`load_preflib`), the
    JSON of a study's answers, or the events that a loop exported (`exported_choices`).

    The ending of the name or the content decides which; the JSON is what the page of results exports. `columns` and
    `words` are for tables only.

    The columns of a table tell which of these forms it has:

        winner, loser           a choice
        first, second, answer   a pair as shown and the answer: one of WORDS, or the name of one of the two; also the
                                model_a, model_b, winner of an arena
        rank 1, rank 2, ...     a ranking, best first; empty cells at its end are items that were not placed
        item, rank              a ranking in as many rows as items, one for each person or each ballot; equal ranks are
                                ties, and if a ballot has one rank only, all its items are equally good
        order                   a ranking in one cell: "tea > milk = soup", or a list in JSON lines, with ties as lists

    Further columns: person (who answered) and times (how often). `columns`: the columns of roles whose names differ
    from NAMES, such as {"person": ["who"], "order": ["best", "then"]}. `words`: what answers that are not in WORDS
    mean, such as {"0": "first", "1": "second"}; if one is a number, no other number has a meaning. Answers about fewer
    than two items are left out. The same answer in several rows counts once, as its newest version (`newest_rows`).

    Raise FileNotFoundError if the file does not exist. Raise ValueError, as `NAME:LINE: field: expected ..., got ...`,
    for a table in none of the forms, a malformed row, an item twice in one answer, and if there is no answer; other
    errors are those of the loaders."""
    return open_pairs(path, columns, words).to_choices()


def open_pairs(
    path: str | PathLike[str],
    columns: Mapping[str, Sequence[str]] | None = None,
    words: Mapping[str, str] | None = None,
) -> LoadedPairs | LoadedChoices:
    """Load comparisons as `open_choices` does, but as columns (`LoadedPairs`) if the file is a table of pairs.

    Large files are read as columns in a fraction of the memory. Arguments and errors are those of `open_choices`."""
    path = Path(path)
    loaded = _no_table(path)
    if loaded is None:
        return _read_choices(open_table(path), columns, words)
    for name, names in (("columns", columns), ("words", words)):
        if names:
            kind = loaded.summary.partition(";")[0]
            raise ValueError(f"{path.name}: {name}: expected none with {kind}, got {', '.join(names)}")
    return loaded


def _no_table(path: Path) -> LoadedChoices | None:
    """Return the comparisons in a file that is no table; None if it is one."""
    if (study := _study(path)) is not None:
        return LoadedChoices(study, "the answers of a study")
    if _is_preflib(path):
        return LoadedChoices(load_preflib(path), "PrefLib")
    exported = exported_choices(path)
    return None if exported is None else LoadedChoices(*exported)


class _Answer(msgspec.Struct):
    """One answer in the JSON document of a study: the person, the names of the items shown, and the answer."""

    person: str
    shown: tuple[str, ...]
    answer: str


class _Document(msgspec.Struct):
    """The JSON document that a study's page of results exports."""

    items: tuple[str, ...]
    answers: tuple[_Answer, ...]
    study: str


def _study(path: Path) -> ComparisonTable | None:
    """Return the comparisons of a study's document; None if it is another file; raise ValueError if it is damaged."""
    with open_uncompressed(path) as file:
        if not re.match(rb'(\xef\xbb\xbf)?\s*\{\s*"study"\s*:', file.peek(200)[:200]):
            return None
        text = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        document = decoder(_Document).decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: answers: expected the whole document of a study, got {error}") from None
    read = []
    for i, answer in enumerate(document.answers):
        where = f"{path.name}: answers[{i}]"
        if len(set(answer.shown)) < max(len(answer.shown), 2):
            raise ValueError(
                f"{where}: shown: expected two items or more, each once, got {describe(', '.join(answer.shown))}"
            )
        try:
            read.append(comparison_of(answer.person, answer.shown, answer.answer))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    choices = tabulate(read, document.items)
    _refuse_empty(path.name, choices)
    return choices


def _is_preflib(path: Path) -> bool:
    if path.name.removesuffix(".gz").endswith(SUFFIXES):
        return True
    line = next(first_lines(path), "")
    return line.startswith("# ") or (line.isascii() and line.isdigit())


def read_choices(
    name: str,
    source: str | PathLike[str] | Sequence[Mapping[str, Any]] | Frame,
    columns: Mapping[str, Sequence[str] | str] | None = None,
    words: Mapping[str, str] | None = None,
) -> LoadedPairs | LoadedChoices:
    """Read comparisons from a file, a data frame or rows, as `open_pairs` and `pairs_in` do; `name`: of the argument
    that the `source` is. A role of `columns` may have the name of one column."""
    check_mapping("columns", columns or {}, "names of columns")
    check_mapping("words", words or {}, "meanings")
    named = {role: [names] if isinstance(names, str) else names for role, names in (columns or {}).items()}
    named = {role: names_of(f"columns: {role}", names) for role, names in named.items()}
    if isinstance(source, str | PathLike):
        check_path(name, source)
        return open_pairs(source, named, words)
    rows = rows_in(name, source)
    if isinstance(rows, Mapping) or not isinstance(rows, Sequence):
        raise ValueError(f"{name}: expected a data frame, rows as objects, or a file, got {describe(source)}")
    return pairs_in(name, rows, named, words)


def pairs_in(
    name: str,
    rows: Sequence[Mapping[str, object]],
    columns: Mapping[str, Sequence[str]] | None = None,
    words: Mapping[str, str] | None = None,
) -> LoadedPairs | LoadedChoices:
    """Read comparisons from the rows of a table in memory, in the forms of `open_choices`, as columns if they are
    pairs; `name` is its name in messages.

    `columns` and `words` are those of `open_choices`. Raise ValueError, as `NAME: row 3: field: ...`, for a table in
    none of the forms, a malformed row, an item twice in one answer, if there is no answer, and if a row is not a
    mapping from columns to values.
    """
    for i, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ValueError(f"{name}: row {i}: expected an object, values by column, got {describe(row)}")
    if not rows:
        raise ValueError(f"{name}: rows: expected at least one, got none")
    placed = [(f"{name}: row {i}", dict(row)) for i, row in enumerate(rows, 1)]
    return _read_choices(table_of(placed, name), columns, words)


def _read_choices(
    table: Table, columns: Mapping[str, Sequence[str]] | None, words: Mapping[str, str] | None
) -> LoadedPairs | LoadedChoices:
    """Read comparisons from an open table, those of two items as columns."""
    words = {word(answer): meaning for answer, meaning in (words or {}).items()}
    wrong = next((meaning for meaning in words.values() if meaning not in WORDS), None)
    if wrong is not None:
        raise ValueError(f"words: expected one of {', '.join(WORDS)} as a meaning, got {wrong!r}")
    table, named = counted_rows(unpack(table), columns)
    table = with_ties(table)
    other = None
    try:
        roles = find_columns(table.name, table.header, named)
    except ValueError:
        other = as_answers(table, named)
        if other is None:
            raise
        table, named = other, {}
        roles = find_columns(table.name, table.header, named)
    header = table.header
    if words and "answer" not in roles:
        raise ValueError(f"words: expected first, second and answer as columns, got {describe(', '.join(header))}")
    summary = say_columns([name for names in roles.values() for name in names], header)
    table, repeats = newest_rows(table, roles)
    if "loser" in roles or "answer" in roles:
        read = read_pairs(table, roles, words)
        if other is not None:  # counts do not say which of the two was shown first
            read = read._replace(sided=False)
        return LoadedPairs(table, roles, read, summary, repeats)
    placed = table.located()
    answered = list((_long if "rank" in roles else _orders)(placed, roles))
    choices = tabulate(answered)
    _refuse_empty(table.name, choices)
    quiet = len(placed) - len(answered) if "order" in roles else 0
    if quiet > 0:
        summary += f"; {quiet:,} of {len(placed):,} rows say nothing"
    return LoadedChoices(choices, summary, repeats=repeats)


def say_columns(used: Sequence[str], header: Sequence[str]) -> str:
    """Return in words which columns of a table were `used`, and which of its `header` were left out."""
    rest = [name for name in header if name not in used]
    names = f"{', '.join(used[:4])} and {len(used) - 4} more" if len(used) > 6 else ", ".join(used)
    return f"columns {names}" + (f"; {', '.join(rest)} left out" if rest else "")


def _refuse_empty(file: str, choices: ComparisonTable) -> None:
    if not any(answer.judged for answer in choices.comparisons):
        raise ValueError(f"{file}: answers: expected at least one about two items, got none")


# ---------------------------------------------------------------------------- rows


def _long(rows: Iterable[Located], roles: Mapping[str, list[str]]) -> Iterator[Comparison[str]]:
    """Yield the rankings in `rows` of item and rank; ranks all alike tie in a pair or a ballot, else say nothing."""
    ballots: dict[tuple[str, str], dict[str, float | None]] = {}
    times: dict[tuple[str, str], int] = {}
    for where, row in rows:
        item, person = name_in(where, "item", row.get(roles["item"][0])), person_in(where, row, roles)
        ballot = name_in(where, "ballot", row.get(roles["ballot"][0])) if "ballot" in roles else ""
        placed = ballots.setdefault((person, ballot), {})
        if item in placed:
            raise ValueError(f"{where}: item: expected each once in an order, got {describe(item)} once more")
        placed[item] = number_of(where, "rank", row.get(roles["rank"][0]))
        count = times_in(where, row, roles)
        if times.setdefault((person, ballot), count) != count:
            raise ValueError(f"{where}: times: expected {times[person, ballot]} in all rows of an order, got {count}")
    for (person, ballot), placed in ballots.items():
        ranks = {rank for rank in placed.values() if rank is not None}
        tiers = [tuple(item for item in sorted(placed) if placed[item] == rank) for rank in sorted(ranks)]
        judged = bool(tiers)
        tiers = tiers if judged else [tuple(sorted(placed))]
        alike = len(tiers[0]) == 2 or ("ballot" in roles and len(tiers[0]) > 2)
        if (len(tiers) > 1 or alike) and times[person, ballot]:
            yield Comparison(person, tuple(tiers), times[person, ballot], None, judged)


def _orders(rows: Iterable[Located], roles: Mapping[str, list[str]]) -> Iterator[Comparison[str]]:
    for where, row in rows:
        cells = [row.get(name) for name in roles["order"]]
        if len(cells) == 1:
            tiers = _in_one(where, roles["order"][0], cells[0])
        else:
            placed = len(cells)
            while placed and cells[placed - 1] is None:
                placed -= 1
            tiers = [(name_in(where, name, cell),) for name, cell in zip(roles["order"][:placed], cells)]
        every = [item for tier in tiers for item in tier]
        twice, often = Counter(every).most_common(1)[0] if every else ("", 1)
        if often > 1:
            raise ValueError(f"{where}: order: expected each item once, got {describe(twice)} twice")
        times, person = times_in(where, row, roles), person_in(where, row, roles)
        if (len(tiers) > 1 or [len(tier) for tier in tiers] == [2]) and times:
            yield Comparison(person, tuple(tiers), times)


def _in_one(where: str, name: str, cell: object) -> list[tuple[str, ...]]:
    """Return the tiers of a ranking in one `cell` ("tea > milk = soup", or a list), best first."""
    if cell is None:
        return []
    if isinstance(cell, str):
        several = [tier.split("=") for tier in cell.split(">")]
    elif isinstance(cell, list):
        several = [tier if isinstance(tier, list) else [tier] for tier in cell]
    else:
        raise ValueError(f"{where}: {name}: expected items apart by >, or a list, got {describe(cell)}")
    return [tuple(name_in(where, name, item) for item in tier or ("",)) for tier in several]


# ---------------------------------------------------------------------------- writing


def write_choices(path: str | PathLike[str], choices: ComparisonTable, ids: Mapping[str, str] | None = None) -> None:
    """Write comparisons as a CSV file that `open_choices` reads, in the simplest form that holds them.

    The columns are first, second and answer if all are pairs whose first item is known and no item is called like an
    answer (first, second, equal, unsure); winner and loser if the first item is known for none and none is a tie;
    otherwise item and rank, with a row for each item of each answer, which loses what was shown first. Items without
    answers are left out. If only some people have names, the others are called nobody. A cell that a spreadsheet would
    take for a formula gets an apostrophe in front, which `open_choices` removes.

    If `ids` has other names of the items, by name, columns with these follow, such as first_id.

    Raise ValueError for a name that a CSV would not give back, such as "NA", and for an answer that was given more than
    MOST_TIMES times.
    """
    named = choices.people not in ((), ("",))
    if named and "" in choices.people:
        names = ("nobody", *(f"nobody {i}" for i in range(2, len(choices.people) + 2)))
        nobody = next(name for name in names if name not in choices.people)
        choices = choices._replace(people=tuple(name or nobody for name in choices.people))
    for name in (*choices.items, *(choices.people if named else ())):
        if name != name.strip() or name.lower() in MISSING:
            raise ValueError(f"choices: expected names without spaces around them, and not NA, got {describe(name)}")
    most = max((answer.times for answer in choices.comparisons), default=0)
    if most > MOST_TIMES:
        raise ValueError(f"times: expected at most {MOST_TIMES:,} of an answer, got {most:,}")
    answers = list(by_name(choices))
    alone = all(sum(map(len, answer.tiers)) == 2 for answer in answers)
    people = [[answer.person] if named else [] for answer in answers]
    person_column = ["person"] if named else []
    rows: list[list[object]]
    if alone and all(answer.first is not None for answer in answers) and not set(choices.items) & set(WORDS):
        columns = [*person_column, "first", "second", "answer", "times"]
        rows = [[*person, *_as_shown(answer), answer.times] for person, answer in zip(people, answers)]
    elif alone and all(len(answer.tiers) == 2 and answer.first is None for answer in answers):
        columns = [*person_column, "winner", "loser", "times"]
        rows = [[*person, *answer.tiers[0], *answer.tiers[1], answer.times] for person, answer in zip(people, answers)]
    else:
        columns = ["ballot", *person_column, "item", "rank", "times"]
        rows = [
            [number, *person, item, rank if answer.judged else "", answer.times]
            for number, (person, answer) in enumerate(zip(people, answers), 1)
            for rank, tier in enumerate(answer.tiers, 1)
            for item in tier
        ]
    if ids is not None and any(id != name for name, id in ids.items()):
        of_items = [at for at, column in enumerate(columns) if column in ("first", "second", "winner", "loser", "item")]
        rows = [[*row, *(ids[str(row[at])] for at in of_items)] for row in rows]
        columns += [f"{columns[at]}_id" for at in of_items]
    write_table(Path(path), columns, rows)


def _as_shown(answer: Comparison[str]) -> tuple[str | None, str, str]:
    """Return (item shown first, the other, the word of WORDS that answers) of a comparison of two items."""
    [other] = {item for tier in answer.tiers for item in tier} - {answer.first}
    if len(answer.tiers) == 2:
        return answer.first, other, "first" if answer.tiers[0] == (answer.first,) else "second"
    return answer.first, other, "equal" if answer.judged else "unsure"
