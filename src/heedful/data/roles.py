"""Find the columns of a table that hold persons, items, answers, ratings and so on: by their names, or as given; never
by their places."""

import re
from collections.abc import Mapping, Sequence

from heedful.data.files import cut_list

NAMES = {
    "person": (
        *("person", "user", "who", "voter", "participant", "respondent", "subject", "judge", "rater", "annotator"),
        *("evaluationsession", "reader", "customer", "reviewer", "visitor", "responseid", "recordid"),
    ),
    "times": ("times", "count", "weight", "votes", "frequency"),
    "winner": ("winner", "preferred", "chosen", "better", "won"),
    "loser": ("loser", "rejected", "worse", "lost"),
    "first": (
        *("first", "left", "itema", "optiona", "modela", "item1", "option1", "a", "response1", "answer1", "output1"),
        *("responsea", "answera", "outputa", "completiona", "completion1", "model1"),
    ),
    "second": (
        *("second", "right", "itemb", "optionb", "modelb", "item2", "option2", "b", "response2", "answer2", "output2"),
        *("responseb", "answerb", "outputb", "completionb", "completion2", "model2"),
    ),
    "answer": (
        *("answer", "choice", "response", "preference", "winner", "chosen", "preferred", "result", "outcome"),
        "chosenmodel",
    ),
    "item": (
        *("item", "alternative", "option", "candidate", "movie", "film", "book", "isbn", "product", "asin", "joke"),
        *("song", "track", "artist", "recipe", "game", "business", "dish", "what"),
    ),
    "rating": ("rating", "stars", "score", "overall", "grade", "points", "marks", "value"),
    "rank": ("rank", "place", "position"),
    "ballot": ("ballot", "order", "list", "question", "answer", "task"),
    "order": ("order", "ranking"),
    "action": ("action", "arm", "item", "treatment", "variant", "shown"),
    "probability": (
        *("probability", "propensity", "propensityscore", "pscore", "prob", "actionprob", "actionprobability"),
        "loggedprobability",
    ),
    "reward": ("reward", "click", "clicked", "conversion", "converted", "bought", "revenue", "payoff"),
}
"""The names of columns that are recognised for each role, apart from case, punctuation, and an "id" at the end; of
ratings also "Book-Rating" and the like, but not an average rating."""

CHOICES = (*("person", "times", "winner", "loser", "first", "second", "answer", "item", "rank", "ballot", "order"),)
"""The roles of the columns of a table of comparisons."""
FORMS = (
    "winner and loser; first, second and answer; model_a, model_b and winner; item and rank; rank 1, rank 2, ...; "
    "or order"
)

_RANKED = re.compile(r"(?:rank|place|position|choice|pick)?([0-9]{1,4})(?:st|nd|rd|th)?(?:rank|place|position|choice)?")
_WINS = re.compile(r"(?:won|wins|(?:is)?(?:better|preferred|chosen|winner))$")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def plain(name: str) -> str:
    """Return a column name without case, blanks, `_`, `.` and `-`: "personid" for "Person ID"."""
    return re.sub(r"[\s_.\-]", "", name.casefold())


def columns_of(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that `options`, ROLE=COLUMN each, name by role. Raise ValueError for another form."""
    columns: dict[str, list[str]] = {}
    for option in options:
        role, mark, name = option.partition("=")
        if not (role and mark and name):
            raise ValueError(f"--column: expected WHAT=COLUMN, such as winner=chosen, got {option!r}")
        columns.setdefault(role, []).append(name)
    return columns


def find_roles(
    file: str,
    header: list[str],
    roles: Sequence[str],
    named: Mapping[str, Sequence[str]] | None = None,
    *,
    optional: Sequence[str] = (),
    more: str = "",
) -> dict[str, list[str]]:
    """Return the names of the columns with these `roles` in the `header` of the table `file`, each as a list of one.

    `named`: the columns of roles that the caller gives, ["none"] for no column; others are found by their names, the
    `optional` ones where they are. `more`: what to say of a role that is not found. Raise ValueError for an unknown
    role or column, a column with two roles, and, naming all of them and what to type, for roles without a column."""
    named = _check_named(file, header, named or {}, (*roles, *optional))
    columns = {role: list(names) for role, names in named.items() if names}
    for role in (*roles, *optional):
        if role not in named and (fit := fitting(role, [name for name in header if [name] not in columns.values()])):
            columns[role] = fit[:1]
    if missing := [role for role in roles if role not in columns]:
        missing_columns = [f"a column of {role} (called {', '.join(NAMES[role][:5])}, ...)" for role in missing]
        typed = " ".join(f"--column {role}=COLUMN" for role in missing)
        expected = f"expected {' and '.join(missing_columns)}, or {typed}, got {cut_list(header)}"
        raise ValueError(f"{file}: {missing[0]}: {expected}{more}")
    return columns


def fitting(role: str, header: Sequence[str]) -> list[str]:
    """Return the columns of `header` whose names say that they have this role, the likeliest first."""
    fit = [name for name in header if plain_role(name, role) in NAMES[role]]
    return sorted(fit, key=lambda name: NAMES[role].index(plain_role(name, role)))


def _check_named(
    file: str, header: Sequence[str], named: Mapping[str, Sequence[str]], roles: Sequence[str]
) -> dict[str, list[str]]:
    """Return the columns that the caller gave, by role; raise ValueError for one that is missing or has two roles."""
    named = {role: [] if list(names) == ["none"] and "none" not in header else names for role, names in named.items()}
    for role, names in named.items():
        if role not in roles:
            raise ValueError(f"columns: expected one of {', '.join(roles)}, got {role!r}")
        if role != "order" and len(names) > 1:
            raise ValueError(f"columns: {role}: expected one column, got {', '.join(names)}")
        missing = next((name for name in names if name not in header), None)
        if missing is not None:
            raise ValueError(f"{file}: {role}: expected one of the columns {cut_list(header)}, got {missing!r}")
    every = [name for names in named.values() for name in names]
    twice = next((name for name in every if every.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"columns: expected each column once, got {twice!r} twice")
    return {role: list(names) for role, names in named.items()}


def find_columns(file: str, header: list[str], named: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the names of the columns of a table of comparisons by role: {"winner": ["w"], "loser": ["l"], "person":
    ["who"]}.

    The roles are those of the form that the table has (one of FORMS: winner and loser; first, second and answer; ranks;
    order; ...), and person, times and ballot if present. `file`: its name for messages; `header`: all column names;
    `named`: the columns of roles that the caller gives, ["none"] for no column, which are not looked for by name. Raise
    ValueError for an unknown role or column, a column with two roles, and a table that has none of the forms."""
    named = _check_named(file, header, named, CHOICES)
    every = [name for names in named.values() for name in names]
    left = [name for name in header if name not in every]

    def look(*roles: str) -> dict[str, list[str]] | None:
        """Return the columns of these roles, as given or found by their names; None if a role has none."""
        columns: dict[str, list[str]] = {}
        for role in roles:
            best = fitting(role, [name for name in left if [name] not in columns.values()])[:1]
            if not (names := named.get(role, best)):
                return None
            columns[role] = names
        return columns

    aside = (look("person") or {}) | (look("times") or {})
    used = [name for names in aside.values() for name in names]
    left = [name for name in left if name not in used]
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
    typed = "--column first=COLUMN --column second=COLUMN --column answer=COLUMN, or what else they are"
    raise ValueError(f"{file}: columns: expected {FORMS} (and person, times), or {typed}, got {cut_list(header)}")


def winning_side(column: str) -> str:
    """Return "first" or "second" if the name of a `column` says that this one won where it is true, such as "left_won"
    or "b is better"; else ""."""
    stem = _WINS.sub("", word := plain(column))
    return next((side for side in ("first", "second") if stem != word and stem in NAMES[side]), "")


def plain_role(name: str, role: str) -> str:
    """Return the name of a column in the form in which NAMES has those of this `role`: "modela" for "Model A name"."""
    word = plain(name)
    if role == "answer" and winning_side(name):
        return NAMES[role][-1]  # a column whose name is one of these is likelier
    if role == "rating" and word.endswith("rating") and not word.startswith(("average", "avg", "mean", "parent")):
        return "rating"
    return word if word in NAMES[role] else word.removesuffix("id").removesuffix("name")


def _rank_columns(header: Sequence[str]) -> dict[str, list[str]] | None:
    """Return {"order": columns named 1, 2, ... or first, second, ..., perhaps with rank or place}; None without."""
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
