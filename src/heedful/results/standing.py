"""What people prefer by now, and how sure that is."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from heedful.core.notebooks import table
from heedful.core.wording import BAR, share
from heedful.data.frames import frame_of


class Standing(NamedTuple):
    """One item in the ranking of a loop of comparisons: its utility, with how certain its position is."""

    item: str
    """the name of the item"""
    utility: float
    """its mean utility, in units of the noise of one choice, minus the mean of all items"""
    sd: float
    """the standard deviation of its utility, without the part that all items share"""
    best: float
    """the probability that it is the best"""
    place_low: int
    """the first position of the 90 % interval of its rank; 1 is the best"""
    place_high: int
    """the last position of that interval"""
    asked: int
    """in how many of the pairs asked it occurs; a pair that a person was asked twice counts once"""
    told_apart: bool | None
    """whether it is better than the next item with a probability of 90 % or more; None for the last item"""

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of its utility."""
        return self.utility - BAR * self.sd, self.utility + BAR * self.sd


class QuestionsLeft(NamedTuple):
    """A forecast, with 80 % probability, of how many more questions have to be asked until the ranking is certain
    enough."""

    low: int
    """the least number of those 80 %"""
    high: int
    """the greatest number of those 80 %"""
    most: int
    """the greatest number that is computed; a number equal to it means that many or more"""
    told: str
    """the forecast in words"""


class Standings(NamedTuple):
    """The ranking of all items for one person, or for several together, with its uncertainty."""

    version: int
    """the model's version: the sequence number of the last event that it has learned from"""
    goal: Literal["best", "ranking"]
    """what the choices are for: "best" or "ranking\""""
    person: str | None
    """whose ranking it is; None for several people together"""
    people: int
    """the number of people whose answers it rests on"""
    answers: int
    """the number of their answers"""
    stop: bool
    """whether the ranking, or its best item, is certain enough to stop asking, with probability 90 %"""
    sure: float
    """goal "best": the probability that the favourite is the best; "ranking": the expected share of pairs in the right
    order"""
    favourite: str
    """goal "best": the item with the highest probability of being the best; "ranking": the first"""
    left: QuestionsLeft
    """an estimate of how many more questions have to be asked"""
    ranking: tuple[Standing, ...]
    """all items, best first"""
    alike: tuple[tuple[str, ...], ...]
    """groups of neighbours in the ranking that cannot be told apart, best first; they may overlap"""

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the ranking, best first, as a data frame of `package`: "pandas", "polars", or "pyarrow" for a table.

        Raise ModuleNotFoundError if the package is not installed."""
        return frame_of({name: [getattr(each, name) for each in self.ranking] for name in Standing._fields}, package)

    def _repr_html_(self) -> str:
        whose = "all together" if self.person is None else self.person
        columns = ["", "item", "utility", "give or take", "positions", "the best", "asked"]
        rows = [
            [
                place,
                each.item,
                each.utility,
                each.sd,
                f"{each.place_low}-{each.place_high}",
                share(each.best),
                each.asked,
            ]
            for place, each in enumerate(self.ranking, 1)
        ]
        same = [each.item for each in self.ranking if each.told_apart is False]
        level = f"cannot be told from the next: {', '.join(same)}" if same else ""
        enough = "sure enough to stop" if self.stop else self.left.told
        return table(f"What is preferred, of {whose}", columns, rows, [level, f"{share(self.sure)} sure: {enough}"])
