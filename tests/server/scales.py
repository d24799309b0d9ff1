"""Loops whose pages give each card a number, grades and ratings, and what somebody does on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from browsing import Seen, Visitor

from heedful import Loop
from loops import rating_loop, small_loop

BASE = "/loops/films"
ANN = f"{BASE}?person=ann"
Form = dict[str, str]
CALM: dict[str, Any] = {"control": 0.0, "exploration": 0.0}


def grading_loop(path: Path, learner: str = "ordinal-logistic:n_ranks=5", n_items: int = 12, **settings: Any) -> Loop:
    return small_loop(path, learner, n_items, **CALM | settings)


def films_loop(path: Path, learner: str | None = None, n_items: int = 12, **settings: Any) -> Loop:
    return rating_loop(path, learner, n_items, **{"control": 0.0} | settings)


class Numbers(NamedTuple):
    """A kind of feedback that gives each card a number from 1 to 5."""

    form: str
    make: Callable[..., Loop]
    person: str
    """who answers; "" for nobody in particular"""
    shown: int
    said: str
    """what an answer is called: "Graded" """
    number: str
    """what a number has to be"""
    other: str
    """what the page says of a list that somebody else had shown"""
    title: Callable[[str], str]
    """what a card is called"""

    def made(self, folder: Path, name: str = "films", **how: Any) -> Path:
        path = folder / f"{name}.heedful"
        self.make(path, **how).close()
        return path

    def get(self, visitor: Visitor, person: str | None = None) -> Seen:
        person = self.person if person is None else person
        return visitor.get(f"{BASE}?person={person}" if person else BASE)

    def body(self, seen: Seen, item: str, value: float | str, event: str, **more: str) -> Form:
        form = {"kind": self.form, "item": item, self.form: str(value), "event": event, "person": self.person}
        return form | {"hand": seen.kept["hand"], "decision": seen.kept["decision"]} | more

    def give(self, visitor: Visitor, seen: Seen, item: str, value: float | str, event: str, **more: str) -> Seen:
        """Answer as the script does."""
        return visitor.post(f"{BASE}/teach", self.body(seen, item, value, event, **more), hx_request="true")

    def told(self, predicted: Any) -> str:
        """What the page says of a prediction."""
        if predicted.spread is None:
            return f"{predicted.value:g}"
        return f"{predicted.value:.1f} ±give or take {predicted.spread:.1f}"


GRADES = Numbers(
    "grade",
    grading_loop,
    "",
    8,
    "Graded",
    "a whole number",
    "1 list noted without a prediction",
    lambda item: item,
)
RATINGS = Numbers(
    "rating",
    films_loop,
    "ann",
    3,
    "Rated",
    "a number",
    "1 list noted as shown by somebody else",
    lambda item: f"film {item[1:]}",
)
