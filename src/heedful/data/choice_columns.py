"""Find the columns of a table of comparisons that hold persons, items, answers and so on: by their
names, or as given.
"""

import re
from collections.abc import Sequence

from heedful.data.files import cut_list

NAMES = {
    "person": (
        *("person", "user", "who", "voter", "participant", "respondent", "subject", "judge", "rater", "annotator"),
        "evaluationsession",
    ),
    "times": ("times", "count", "votes", "frequency"),
    "winner": ("winner", "preferred", "chosen", "better", "won"),
    "loser": ("loser", "rejected", "worse", "lost"),
    "first": ("first", "left", "itema", "optiona", "modela", "item1", "option1", "a"),
    "second": ("second", "right", "itemb", "optionb", "modelb", "item2", "option2", "b"),
    "answer": ("answer", "choice", "response", "preference", "winner", "chosen", "preferred", "result", "outcome"),
    "item": ("item", "alternative", "option", "candidate"),
    "rank": ("rank", "place", "position"),
    "ballot": ("ballot", "order", "list", "question", "answer", "task"),
    "order": ("order", "ranking"),
}
"""The names of columns that are recognised for each role, apart from case, punctuation, and an "id" at the end."""

FORMS = (
    "winner and loser; first, second and answer; model_a, model_b and winner; item and rank; rank 1, rank 2, ...; "
    "or order"
)

_RANKED = re.compile(r"(?:rank|place|position|choice|pick)?([0-9]{1,4})(?:st|nd|rd|th)?(?:rank|place|position|choice)?")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def plain(name: str) -> str:
    """Return a column name without case, blanks, `_`, `.` and `-`: "personid" for "Person ID"."""
    return re.sub(r"[\s_.\-]", "", name.casefold())


def find_columns(file: str, header: list[str], named: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the names of the columns of a table of comparisons by role: {"winner": ["w"], "loser": ["l"], "person":
    ["who"]}.

    The roles are those of the form that the table has (one of FORMS: winner and loser; first, second and answer; ranks;
    order; ...), and person, times and ballot if present. `file`: its name for messages; `header`: all column names;
    `named`: the columns of roles that the caller gives, which are not looked for by name. Raise ValueError for an
    unknown role or column, a column with two roles, and a table that has none of the forms."""
    for role, names in named.items():
        if role not in NAMES:
            raise ValueError(f"columns: expected one of {', '.join(NAMES)}, got {role!r}")
        if role != "order" and len(names) != 1:
            raise ValueError(f"columns: {role}: expected one column, got {', '.join(names)}")
        missing = next((name for name in names if name not in header), None)
        if missing is not None:
            raise ValueError(f"{file}: {role}: expected one of the columns {cut_list(header)}, got {missing!r}")
    every = [name for names in named.values() for name in names]
    twice = next((name for name in every if every.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"columns: expected each column once, got {twice!r} twice")
    left = [name for name in header if name not in every]

    def look(*roles: str) -> dict[str, list[str]] | None:
        """Return the columns of these roles, as given or found by their names; None if a role has none."""
        got: dict[str, list[str]] = {}
        for role in roles:
            fit = [name for name in left if _plain_role(name) in NAMES[role] and [name] not in got.values()]
            best = sorted(fit, key=lambda name: NAMES[role].index(_plain_role(name)))[:1]
            if not (names := named.get(role, best)):
                return None
            got[role] = names
        return got

    aside = (look("person") or {}) | (look("times") or {})
    taken = [name for names in aside.values() for name in names]
    left = [name for name in left if name not in taken]
    ordered = {"order": named["order"]} if "order" in named else _rank_columns(left) or look("order")
    rows = look("item", "rank")
    if rows is not None:
        rows |= look("ballot") or {}
        rows = rows if "ballot" in rows or "person" in aside else None
    forms = [look("first", "second", "answer"), look("winner", "loser"), rows, ordered]
    roles = set(named) - {"person", "times", "ballot"}
    for form in forms:
        if form is not None and roles <= set(form):
            return form | aside
    if look("first", "second") is not None and roles <= {"first", "second", "answer"}:
        raise ValueError(
            f"{file}: answer: expected a column of which of the two is better, such as answer or winner, got "
            f"{cut_list(left)}"
        )
    if look("item", "rank") is not None:
        expected = "a column of it, or of a person, with item and rank"
        raise ValueError(f"{file}: ballot: expected {expected}, got {cut_list(header)}")
    raise ValueError(f"{file}: columns: expected {FORMS} (and person, times), got {cut_list(header)}")


def _plain_role(name: str) -> str:
    word = plain(name)
    return word.removesuffix("id") or word


def _rank_columns(header: Sequence[str]) -> dict[str, list[str]] | None:
    """Return {"order": names} with the columns of `header` that are named 1, 2, ... or first, second, third, ..., in
    this order.

    Names may also contain rank, place or choice. Return None if there are no such columns."""
    numbered: dict[int, str] = {}
    for name in header:
        match = _RANKED.fullmatch(plain(name).removeprefix("#"))
        if match:
            numbered.setdefault(int(match[1]), name)
    if len(numbered) < 2:
        words = [plain(name).removesuffix("choice").removesuffix("place") for name in header]
        spelt = {i: header[words.index(word)] for i, word in enumerate(_ORDINALS, 1) if word in words}
        if len(spelt) < 3 and not all(plain(name) not in _ORDINALS for name in spelt.values()):
            return None  # only first and second: these are sides of a pair, not ranks
        numbered = spelt
    places = sorted(numbered)
    if len(places) < 2 or places not in (list(range(1, len(places) + 1)), list(range(len(places)))):
        return None
    return {"order": [numbered[place] for place in places]}
