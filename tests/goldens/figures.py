"""What is reported of logs that have everything in them: the figures of every report, as JSON.

The golden logs would not notice it if a randomised pair, a drafted list or a list of one item were counted in another
way: few of their answers have one. These are made when they are asked for, and only what is reported of them is kept.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from everything import everything, reports
from goldens.logs import BEGIN, clock
from heedful import Loop
from kinds import KINDS, Kind, ask

FOLDER = Path(__file__).parent / "figures"
NAMED = {kind.name: kind for kind in KINDS}
CASES: dict[str, Callable[[Path], Loop]] = {
    name: lambda at, kind=kind: everything(kind, at) for name, kind in NAMED.items()
}
CASES |= {
    "coactive-posterior": lambda at: everything(NAMED["coactive"], at, learner="posterior"),
    "coactive-dueling-bandit": lambda at: everything(NAMED["coactive"], at, learner="dueling-bandit", shrink=0.0),
    "coactive-one-item": lambda at: one_item("coactive", at, thumb=("up", "down", "up")),
    "rating-one-item": lambda at: one_item("rating", at, rating=(1, 4, 5, 2), thumb=("up",)),
}
"""By name, a loop with everything in its log: of each kind, and with lists in an order drawn at random, with lists of
two learners, and of one item."""
REPORTS = (
    "report",
    "health",
    "experiment",
    "evaluate",
    "caveats",
    "lessons of None",
    "style of None",
    "standing of p1",
)
DECISIONS = ("s0-p0", "s1-p2", "imported", "d13")
"""Decisions that are explained: one with answers in every form, one with an item that was not on offer, one that was
imported and one that was made ahead."""


def one_item(name: str, at: Path, **answers: Sequence[Any]) -> Loop:
    """A new loop of a kind that shows one item of 24 decisions, with answers to most of them: by form, in turn."""
    kind = NAMED[name]
    loop = kind.make(at, k=1)
    for i in range(24):
        asked = {name: value for name, value in ask(kind, i).items() if name != "show"}
        [item] = loop.decide(**asked).shown
        if i % 5 != 4:
            form, values = list(answers.items())[i % len(answers)]
            value = values[i % len(values)]
            loop.feedback(asked["id"], **{form: {item: value} if form == "rating" else value})
    return loop


def kind_of(case: str) -> Kind:
    """The kind of the loop of a case."""
    return NAMED[case] if case in NAMED else NAMED[case.partition("-")[0]]


def figures(case: str) -> dict[str, Any]:
    """By name of a report, what it says of the loop of a case, or why it is refused."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, clock(BEGIN, 10**9), CASES[case](Path(folder) / "l.heedful") as loop:
        for name, report in reports(loop, kind_of(case)):
            asked = name.split()
            if name in REPORTS or (asked[0] == "why" and asked[1] in DECISIONS):
                try:
                    found[name] = _plain(report())
                except (ValueError, LookupError) as error:
                    found[name] = f"refused: {error}".replace(folder, "FOLDER")
    text = json.dumps(found).replace(str(FOLDER.parents[1]), "TESTS")
    return json.loads(re.sub(r"\b[0-9a-f]{32}\b", "ID", text))


def _plain(value: Any) -> Any:
    """A result as JSON has it, by the names of its fields."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return _plain(value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else value


def as_json(figures: Mapping[str, Any]) -> str:
    """A line for each report."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in figures.items()) + "\n}\n"


def differences(expected: Any, found: Any, at: str = "") -> Iterator[str]:
    """Where two results differ by more than rounding: the way there, what was expected, and what came."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in expected | found:
            yield from differences(expected.get(name, "nothing"), found.get(name, "nothing"), f"{at}/{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, (one, other) in enumerate(zip(expected, found)):
            yield from differences(one, other, f"{at}/{i}")
    elif isinstance(expected, float) and isinstance(found, float):
        same = math.isclose(expected, found, rel_tol=1e-6, abs_tol=1e-9)
        if not same and not (math.isnan(expected) and math.isnan(found)):
            yield f"{at}: expected {expected}, got {found}"
    elif expected != found:
        yield f"{at}: expected {expected}, got {found}"
