"""The one table of every ranking with its uncertainty: of votes, of choices in a table, of a loop of choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from heedful.core.notebooks import table
from heedful.core.wording import one_line, percent, share
from heedful.data.frames import frame_of
from heedful.results.table import Column

Goal = Literal["best", "ranking"]
LONGEST = 80
"""The most characters of an item's name in a table or a verdict."""
MOST_GROUPS = 6
"""The most groups of items that a sentence names."""


class BoardRow(NamedTuple):
    """One item of a ranking: where it stands, and how sure that is. All intervals hold 90 %."""

    place: int
    """its place, 1 the best"""
    item: str
    """the name of the item"""
    best: float
    """the probability that it is the best"""
    place_low: int
    """the first place of its interval"""
    place_high: int
    """the last place of its interval"""
    better_than_next: float | None
    """the probability that it is better than the next item; None for the last, and between items that never met"""
    told_apart: bool | None
    """whether that probability is at least `sure`; None if there is none"""
    utility: float | None = None
    """its mean utility, in units of the noise of one choice, less the mean of all items"""
    utility_low: float | None = None
    """the lower end of the interval of its utility"""
    utility_high: float | None = None
    """the upper end of the interval of its utility"""
    score: float | None = None
    """its score on the Elo scale: 400 points more are odds of 10 to 1"""
    score_low: float | None = None
    """the lower end of the interval of its score"""
    score_high: float | None = None
    """the upper end of the interval of its score"""
    votes: int | None = None
    """how many answers are about it"""
    comparisons: int | None = None
    """in how many of the pairs asked it occurs; a pair that a person was asked twice counts once"""
    best_if_new: float | None = None
    """the probability that it is the best for a new person"""

    @property
    def bar(self) -> tuple[float, float, float]:
        """What a bar of it shows: the lower end of the interval, the value and the upper end, of its utility or, if it
        has none, of its score."""
        if self.utility is None:
            return self.score_low, self.score, self.score_high  # type: ignore[return-value]
        return self.utility_low, self.utility, self.utility_high  # type: ignore[return-value]


def _places(row: BoardRow) -> str:
    return "–".join(map(str, dict.fromkeys((row.place_low, row.place_high))))


def _over_next(row: BoardRow) -> str:
    level = "≈ " if row.told_apart is False else ""
    return "" if row.better_than_next is None else f"{level}{share(row.better_than_next)}"


COLUMNS = (
    Column("place", "#", "The place in the ranking", lambda row: str(row.place)),
    Column("item", "item", "", lambda row: one_line(row.item, LONGEST)),
    Column("score", "score", "On the Elo scale: 400 points more are odds of 10 to 1", lambda row: f"{row.score:,.0f}"),
    Column(
        "score_low",
        "score, 90 %",
        "The score is in it with 90 % probability",
        lambda row: f"{row.score_low:,.0f} to {row.score_high:,.0f}",
    ),
    Column(
        "utility",
        "utility",
        "How much it is liked, compared with the average: the estimate, with its 90 % interval",
        lambda row: f"{row.utility:+.2f}",
    ),
    Column(
        "utility_low",
        "utility, 90 %",
        "The utility is in it with 90 % probability",
        lambda row: f"{row.utility_low:+.2f} to {row.utility_high:+.2f}",
    ),
    Column("best", "P(best)", "The probability that it is the best of all", lambda row: share(row.best)),
    Column(
        "best_if_new",
        "if new",
        "The probability that it is the best for a new person",
        lambda row: share(row.best_if_new or 0.0),
    ),
    Column("place_low", "place", "The places where it stands with 90 % probability", _places),
    Column("better_than_next", "over next", "The probability that it is better than the next", _over_next),
    Column("votes", "votes", "How many answers are about it", lambda row: f"{row.votes:,}"),
    Column(
        "comparisons",
        "compared",
        "In how many of the pairs asked it was one of the two",
        lambda row: f"{row.comparisons:,}",
    ),
)
"""The columns in which rankings are shown in the terminal, on pages and in notebooks, but for those that a board lacks.
Files and data frames have the fields of `BoardRow`."""


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


class Verdict(NamedTuple):
    """Whether enough was asked, and about how much is left to ask."""

    goal: Goal
    """what the answers are for: "best" or "ranking\""""
    stop: bool
    """whether the best item, or the ranking, is certain enough to stop asking"""
    probability: float
    """goal "best": the probability that the favourite is the best; "ranking": the expected share of pairs in the right
    order"""
    favourite: str
    """goal "best": the item with the highest probability of being the best; "ranking": the first"""
    left: QuestionsLeft | None
    """an estimate of how many more questions have to be asked of one person; None if it was not made"""

    def sentence(self, sure: float) -> str:
        """Return in a sentence whether enough is known, with probability `sure`."""
        if self.goal == "best":
            favourite = one_line(self.favourite, LONGEST)
            knowledge = f"{favourite} is the best with probability {share(self.probability)}"
        else:
            knowledge = f"{share(self.probability)} of all pairs are expected to be in the right order"
        if self.stop:
            return f"Sure enough ({percent(sure)}): {knowledge}."
        left = "" if self.left is None else f"; {self.left.told}"
        return f"Not sure enough yet ({percent(sure)}): {knowledge}{left}."


class Board(NamedTuple):
    """The ranking of all items, for one person, or for several together, with its uncertainty."""

    person: str | None
    """whose ranking it is; None for several people together"""
    people: int
    """the number of people whose answers it rests on; 0 if votes name nobody"""
    answers: int
    """the number of their answers"""
    sure: float
    """the probability with which two items are told apart, and with which enough is known to stop asking"""
    ranking: tuple[BoardRow, ...]
    """all items, best first"""
    alike: tuple[tuple[str, ...], ...]
    """groups of neighbours in the ranking that cannot be told apart, best first; they may overlap"""
    verdict: Verdict | None = None
    """whether enough was asked; None for a leaderboard of votes, which asks nothing"""
    version: int | None = None
    """of a loop the model's version: the sequence number of the last event that it has learned from"""

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items, best first."""
        return tuple([row.item for row in self.ranking])

    def columns(self) -> tuple[Column, ...]:
        """Return those of COLUMNS that this board has."""
        fields = self.fields()
        return tuple([column for column in COLUMNS if column.name in fields])

    def fields(self) -> dict[str, list[Any]]:
        """Return the fields of `BoardRow` that this board has, each with a value for each item, best first."""
        optional = BoardRow._field_defaults
        table = dict(zip(BoardRow._fields, map(list, zip(*self.ranking))))
        return {name: values for name, values in table.items() if name not in optional or values[0] is not None}

    def to_frame(self, package: str = "pandas") -> Any:
        """Return the ranking, best first, as a data frame of `package`: "pandas", "polars", or "pyarrow" for a table.

        Its columns are `fields`. Raise ModuleNotFoundError if the package is not installed."""
        return frame_of(self.fields(), package)

    def called(self, names: Mapping[str, str]) -> Board:
        """Return the same board with other `names` of its items, by those that they have in it."""
        verdict = self.verdict and self.verdict._replace(favourite=names[self.verdict.favourite])
        return self._replace(
            ranking=tuple([row._replace(item=names[row.item]) for row in self.ranking]),
            alike=tuple([tuple([names[item] for item in group]) for group in self.alike]),
            verdict=verdict,
        )

    def apart(self) -> str:
        """Return a sentence on which neighbours cannot be told apart."""
        groups = []
        for group in self.alike[:MOST_GROUPS]:
            names = [one_line(name) for name in group]
            few = names if len(names) <= 5 else [*names[:3], f"{len(names) - 4} more", names[-1]]
            groups.append(f"{', '.join(few[:-1])} and {few[-1]}")
        if len(self.alike) > MOST_GROUPS:
            groups.append(f"and {len(self.alike) - MOST_GROUPS:,} more such groups")
        if groups:
            return f"Neighbours that cannot be told apart (less than {percent(self.sure)}): {'; '.join(groups)}."
        every = f"Every item is better than the next with {percent(self.sure)} or more"
        if any(row.place_low < row.place_high for row in self.ranking):
            every += "; its places leave out 5 % on each side, so those of neighbours may overlap"
        return f"{every}."

    def _repr_html_(self) -> str:
        return self.as_html(f"What is preferred, of {self.person or 'all together'}")

    def as_html(self, title: str, notes: Sequence[str] = ()) -> str:
        """Return the ranking as a table for a notebook, under `title`, with sentences below it."""
        columns = self.columns()
        cells = [[column.cell(row) for column in columns] for row in self.ranking]
        verdict = () if self.verdict is None else (self.verdict.sentence(self.sure),)
        return table(title, [column.heading for column in columns], cells, [self.apart(), *verdict, *notes])
