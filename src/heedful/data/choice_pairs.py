"""Read comparisons of two items from whole columns at once."""

from collections.abc import Mapping
from warnings import warn

import numpy as np

from heedful.core.validation import describe
from heedful.core.wording import count
from heedful.data.cells import BAD, WORDS, Bools, Ints, NameColumn, read_cells, refuse, times, word
from heedful.data.comparisons import LOST, TIED, UNSURE, WON, PairColumns
from heedful.data.files import is_number
from heedful.data.roles import plain_role, winning_side
from heedful.data.table import Table

_OUTCOMES = {"first": WON, "second": LOST, "equal": TIED, "unsure": UNSURE}
_NONE = -1
"""The code of a text that is no answer."""


def read_pairs(table: Table, roles: Mapping[str, list[str]], words: Mapping[str, str]) -> PairColumns:
    """Read comparisons from a table whose rows are a winner and a loser, or a pair as shown and an answer.

    `roles`: names of the columns by role (winner and loser, or first, second and answer; person, times), from
    `find_columns`; `words`: what further answers mean, in addition to WORDS, written as `word` returns them. Raise
    ValueError for a malformed row."""
    sides = ("winner", "loser") if "loser" in roles else ("first", "second")
    used = [role for role in (*sides, "answer", "person", "times") if role in roles]
    columns = dict(zip(used, table.columns([roles[role][0] for role in used])))
    items: dict[str, int] = {}
    people: dict[str, int] = {}
    first, second = (NameColumn(columns[role], roles[role][0], items) for role in sides)
    names, rows = list(items), first.codes.size  # an answer may bring further names
    person = NameColumn(columns["person"], roles["person"][0], people) if "person" in columns else None
    answer = NameColumn(columns["answer"], roles["answer"][0], items, empty="") if "answer" in columns else None
    checks = [column.check for column in (first, second, answer, person) if column is not None]
    often = np.ones(rows, np.int64)
    if "times" in columns:
        counts, check = read_cells(columns["times"], times)
        often = np.array([number or 0 for number in counts], np.int64)[columns["times"].codes]
        checks.append(check)
    refuse(table, checks)
    alone = _meets_itself(table, first, second)
    often[alone] = 0
    whose = np.zeros(rows, np.int64) if person is None else person.numbers
    outcome, bad = np.full(rows, WON), np.zeros(rows, bool)
    if answer is not None:
        outcome, bad = _read_answers(table, roles, words, first, second, answer, alone)
    sided = answer is not None
    return PairColumns(whose, first.numbers, second.numbers, outcome, often, bad, names, list(people) or [""], sided)


def _read_answers(
    table: Table,
    roles: Mapping[str, list[str]],
    words: Mapping[str, str],
    first: NameColumn,
    second: NameColumn,
    answer: NameColumn,
    alone: Bools,
) -> tuple[Ints, Bools]:
    """Return (the outcome of each row, whether both items were called bad), (r,) each; none is needed where `alone`."""
    column = answer.field
    numbered = any(map(is_number, words))
    meanings = {word(field): side for field, side in ((first.field, "first"), (second.field, "second"))}
    meanings |= {word(text): meaning for meaning, several in WORDS.items() for text in several}
    if side := winning_side(column):
        meanings |= {"true": side, "false": "second" if side == "first" else "first"}
    means = {text: meaning for text, meaning in meanings.items() if not (numbered and is_number(text))} | dict(words)
    spoken = [word(text) for text in answer.texts]
    codes = np.array([_OUTCOMES.get(means.get(text, ""), _NONE) if text else UNSURE for text in spoken], np.int64)
    codes = codes[answer.codes]
    explained = np.array([text in words for text in spoken])[answer.codes]
    named = np.full(codes.size, _NONE)
    named[(answer.numbers == second.numbers) & ~explained] = LOST
    named[(answer.numbers == first.numbers) & ~explained] = WON
    by_item = ((named >= 0) | (codes == TIED) | (codes == UNSURE)).all()

    def both(where: str, i: int) -> None:
        expected, text = "the name of an item, or a side, in all rows", answer.texts[answer.codes[i]]
        raise ValueError(f"{where}: {column}: expected {expected}, got {text!r}, which is both; say what it means")

    def unknown(where: str, i: int) -> None:
        sides = (first.field, second.field)
        usual = f"{', '.join(sides)}, tie, both_bad, skip" if of_models(roles) else ", ".join(WORDS)
        expected, text = f"{usual}, or the name of one of the two", answer.texts[answer.codes[i]]
        example = {"true": "first", "false": "second"} if word(text) in ("true", "false") else {text: "unsure"}
        typed = " ".join(f"--answer {answer}={meaning}" for answer, meaning in example.items())
        hint = f"say what it means, such as {typed}, or words={example} in Python"
        raise ValueError(f"{where}: {column}: expected {expected}, got {describe(text)}; {hint}")

    refuse(table, [((named >= 0) & (codes >= 0) & (named != codes) & ~by_item, both)])
    codes = np.where(named >= 0, named, codes)
    refuse(table, [((codes < 0) & ~alone, unknown)])
    bad_words = {word(text) for text in BAD} - set(words)
    return codes, np.array([text in bad_words for text in spoken])[answer.codes] & (named < 0)


def of_models(roles: Mapping[str, list[str]]) -> bool:
    """Return whether the two sides are called model_a and model_b, as in an arena, perhaps model_a_name."""
    return all(plain_role(roles[side][0], side) == name for side, name in (("first", "modela"), ("second", "modelb")))


def _meets_itself(table: Table, one: NameColumn, two: NameColumn) -> Bools:
    """Return which rows (r,) name one item twice, and warn; raise ValueError if more than half do."""
    same = np.asarray(one.numbers == two.numbers)
    rows = int(same.sum())

    def fail(where: str, i: int) -> None:
        name = two.texts[two.codes[i]]
        raise ValueError(f"{where}: {two.field}: expected another item than in {one.field}, got {describe(name)} twice")

    if 2 * rows > same.size:
        refuse(table, [(same, fail)])
    if rows:
        warn(f"{table.name}: {count(rows, 'row')} in which an item meets itself left out", stacklevel=5)
    return same
