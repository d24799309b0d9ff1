"""Rank items from a table of comparisons: the ranking, its uncertainty, and the question to ask next.

`rank` does in Python what the command `heedful rank` does; docs/preferences.md describes the model. The
file is long because `PreferenceRanking` answers each question about a ranking with a method of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.boards.data_quality import Remark, both_bad, remarks
from heedful.boards.elo import anchor_of, scores
from heedful.boards.standing import board_groups, board_matrix, standing, verdict
from heedful.core.validation import check_between, check_flag, describe, list_of, names_of
from heedful.core.wording import one_line
from heedful.data import comparisons
from heedful.data.choices import LoadedChoices, read_choices
from heedful.data.comparisons import ComparisonTable
from heedful.data.frames import Frame, rows_in
from heedful.data.table import read_table
from heedful.features import infer
from heedful.inference.comparison_table import answer_counts, win_counts
from heedful.inference.estimation import Estimate, estimate
from heedful.inference.gp.acquisition import next_question
from heedful.inference.gp.mixture import Mixture
from heedful.inference.gp.posterior import Posterior
from heedful.inference.gp.stopping import GOALS
from heedful.jit.kernel import Ints
from heedful.results.answers import plain
from heedful.results.board import Board, Goal

Array = npt.NDArray[np.float64]
Rows = Sequence[Mapping[str, Any]]


class PreferenceRanking(NamedTuple):
    """The result of `rank`: a ranking of n items with its uncertainty, of one `person` or, with None, of the mean
    utilities of all people. `to_frame` returns it as a data frame, `to_dict` as JSON."""

    file: str
    """path of the comparison table, or "choices" if it was not read from a file"""
    read: str
    """in words, which columns of the table were read"""
    estimate: Estimate
    board: Board
    """the ranking of `person`, or of all people together, with how sure places are, and whether enough was asked"""
    order: Ints
    """(n,) numbers of the items, best first"""
    next: tuple[str, str]
    """the two items to ask about next; of several people, somebody new"""
    remarks: tuple[Remark, ...]
    """warnings about the answers, such as contradictions"""
    posterior: Posterior | Mixture
    """over the utilities that are ranked: of `person`, or the mean of all people"""
    chooser: Posterior | Mixture
    """over the utilities of the person who makes the next choice: a new person, if the ranking is that of several
    people, else the same as `posterior`
    """
    anchor: tuple[int, float] | None
    """number of the item with a fixed score, and this score; None if instead the average item has 1,000"""
    wins: Array
    """(n, n) how often the item of the row was placed above that of the column; by `person` alone if there is one"""
    ties: Array
    """(n, n) how often the items of row and column were called equally good"""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the n items, in the order of their numbers."""
        return self.estimate.choices.items

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the n items, best first."""
        return self.board.items

    @property
    def title(self) -> str:
        """In words whose ranking it is: one person's, that of people on average, or that of all answers together."""
        people, person = self.estimate.choices.people, self.board.person
        if person is not None:
            return f"what {one_line(person)} prefers" if person else "what people without a name prefer"
        if len(people) > 1:
            return f"what {len(people):,} people prefer on average"
        return f"what {one_line(people[0])} prefers" if people[0] else "what is preferred, all answers taken together"

    def to_frame(self, package: str = "pandas") -> Frame:
        """Return the ranking as `Board.to_frame` does."""
        return self.board.to_frame(package)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as a dictionary that JSON can hold, the one that `heedful rank --json` prints."""
        choices, belief, person = self.estimate.choices, self.estimate.belief, self.board.person
        noise, many = belief.noise, len(choices.people) > 1
        one = choices.people.index(person) if person is not None else 0
        of_all = many and person is None
        return {
            "file": self.file,
            "read": self.read,
            "model": "people" if many else "one",
            "items": len(choices.items),
            **plain(self.board),
            "next": list(self.next),
            "next_for": None if of_all else choices.people[one],
            "settings": {
                "spread": belief.spread,
                "share_of_each": belief.share if many else None,
                **belief.kernel._asdict(),
                "width": float(np.median(noise.width)) if of_all else float(noise.width[one]),
                "lapse": float(np.median(noise.lapse)) if of_all else float(noise.lapse[one]),
            },
            "remarks": plain(self.remarks),
            "anchor": None if self.anchor is None else {"item": self.names[self.anchor[0]], "score": self.anchor[1]},
            "matrix": board_matrix(self.items, self.order, self.wins.astype(int), self.ties.astype(int), self._beats),
        }

    def _beats(self) -> Array:
        """Return the probability that the row beats the column in the next choice (n, n), best first."""
        return np.array([self.chooser.beats(i.repeat(len(self.names)), self.order) for i in self.order])

    def __repr__(self) -> str:
        """One line: how many items, from where, the best three, and whether that is sure enough."""
        first = ", ".join(f"{place} {name!r:.60}" for place, name in enumerate(self.items[:3], 1))
        more = ", ..." if len(self.items) > 3 else ""
        enough = "sure enough" if self.board.verdict and self.board.verdict.stop else "not sure enough yet"
        of = f"{len(self.items)} items from {self.file}"
        return f"<PreferenceRanking of {of}: {first}{more}; {enough} ({self.board.sure:g})>"

    def _repr_html_(self) -> str:
        return self.board.as_html(f"{self.file}: {self.title}", [self.ask, *(each.message for each in self.remarks)])

    @property
    def ask(self) -> str:
        """A sentence on what to ask next; "" if nothing more needs to be asked."""
        if self.board.verdict is None or self.board.verdict.stop:
            return ""
        first, second = map(one_line, self.next)
        return f"The next question{'' if self.board.verdict.left else ', of somebody new'}: {first!r} or {second!r}?"


def rank(
    choices: str | PathLike[str] | Rows | Frame | LoadedChoices | ComparisonTable,
    *,
    items: str | PathLike[str] | Rows | Frame | None = None,
    identifier: str | None = None,
    person: str | None = None,
    pool: bool | None = None,
    without: Sequence[str] = (),
    goal: str = "best",
    sure: float = 0.9,
    columns: Mapping[str, Sequence[str] | str] | None = None,
    words: Mapping[str, str] | None = None,
    anchor: tuple[str, float] | None = None,
    name: str = "choices",
) -> PreferenceRanking:
    """Rank items from the comparisons that people made, with the uncertainty of each place.

    `choices`: a data frame (pandas, polars, or any that Arrow can read), a list of rows (dictionaries), the path of a
    file (`open_choices` lists the formats), or what was read before, which `name` then calls. Columns are found by
    their names: winner and loser; first, second and answer; rank 1, rank 2, ...; item and rank; or order; and besides
    them person and times. `columns` and `words` say which columns and which words of answers mean what, as in
    `open_choices`.

    `items`: a table of all items with their features (a file, data frame or list of rows); items with similar features
    get similar utilities. `identifier`: the column of this table with the names of the items.

    `person`: rank for this person; None ranks by the mean utilities of all people. `pool`: True treats all answers as
    given by one person; False treats each answer without a name as given by a different person; None keeps people as
    named. `without`: people whose answers are left out. `goal`: "best" (find the best item) or "ranking" (know the
    whole order). `sure`: the probability that is enough to stop asking, and to tell two items apart, 0.5 to 0.999.
    `anchor`: an item and the score to give it; without one, the average item has the score 1,000.

    Raise ValueError, naming the argument or the place in the file, for input that cannot be used; raise
    FileNotFoundError if a file is missing.
    """
    check_between("sure", sure, 0.5, 0.999)
    if pool is not None:
        check_flag("pool", pool)
    without = names_of("without", without)
    if not isinstance(goal, str) or goal not in GOALS:
        raise ValueError(f"goal: expected best or ranking, got {describe(goal)}")
    purpose: Goal = "best" if goal == "best" else "ranking"
    if isinstance(choices, LoadedChoices | ComparisonTable):
        if columns or words:
            raise ValueError("columns: expected none, nor words, with choices that were read, got some")
        opened = choices if isinstance(choices, LoadedChoices) else LoadedChoices(choices, "choices as they are")
    else:
        name = str(choices) if isinstance(choices, str | PathLike) else "choices"
        opened = read_choices("choices", choices, columns, words).to_choices()
    table, X = _with_features(_whose(opened.choices, pool, without, person), items, identifier)
    fixed, sure = anchor_of(anchor, table.items), float(sure)
    whole = estimate(table, X)
    posterior, new, whose = whole.posterior, None, table
    if person is not None:
        one = table.people.index(person)
        posterior = whole.belief.of(one)
        whose = table._replace(comparisons=tuple(each for each in table.comparisons if each.person == one))
    elif len(table.people) > 1:
        new = whole.belief.new()
    found, points, names = standing(posterior, at=sure), scores(posterior, fixed), table.items
    fields = {"score": points.score, "score_low": points.low, "score_high": points.high}
    fields["votes"] = answer_counts(whose).astype(np.int64)
    if new is not None:
        fields["best_if_new"] = np.minimum(standing(new).best, 1.0)
    rows = found.rows(names, sure, **fields)
    board = Board(
        person=person,
        people=len(table.people),
        answers=table.answers,
        sure=sure,
        ranking=rows,
        alike=board_groups(rows, found.alike),
        verdict=verdict(posterior, names, purpose, found, at=sure, ask=new is None),
    )
    chooser = posterior if new is None else new
    ask = next_question(chooser.whole(), GOALS[goal])
    notes = remarks(whole, X, None if person is None else table.people.index(person))
    if opened.bad:
        notes.append(both_bad(opened.bad))
    if opened.repeats.rows:
        repeated = "1 row repeats" if opened.repeats.rows == 1 else f"{opened.repeats.rows:,} rows repeat"
        each = f"an answer, by its {opened.repeats.by}: each counts once, as it was last"
        notes.append(Remark("repeated", f"{repeated} {each}."))
    won = win_counts(whose, tie=0.0)
    return PreferenceRanking(
        file=name,
        read=opened.summary,
        estimate=whole,
        board=board,
        order=found.order,
        next=(names[ask.first], names[ask.second]),
        remarks=tuple(notes),
        posterior=posterior,
        chooser=chooser,
        anchor=fixed,
        wins=won,
        ties=win_counts(whose, tie=1.0) - won,
    )


def _whose(choices: ComparisonTable, pool: bool | None, without: Sequence[str], person: str | None) -> ComparisonTable:
    """Return the table with answers pooled, split or left out as the options `pool` and `without` of `rank` say."""
    if pool is False and "" in choices.people:
        choices = comparisons.split_nameless(choices)
    if without:
        if choices.people == ("",):
            raise ValueError(f"without: expected answers that name people, got none of {without[0]!r}")
        choices = comparisons.without_people(choices, without)
    if pool:
        choices = comparisons.pool_people(choices)
    if person is not None and (person not in choices.people or choices.people == ("",)):
        known = (
            "people who are told apart"
            if choices.people == ("",)
            else f"one of {comparisons.join_names(choices.people)}"
        )
        raise ValueError(f"person: expected {known}, got {person!r}")
    return choices


def _with_features(choices: ComparisonTable, items: Any, identifier: str | None) -> tuple[ComparisonTable, Any]:
    """Return the comparison table extended by the items of the table `items`, and their features (n, d); None without
    `items`."""
    if items is None:
        if identifier is not None:
            raise ValueError("identifier: expected items, whose column it is, got none")
        return choices, None
    is_file = isinstance(items, str | PathLike)
    name = str(items) if is_file else "items"
    rows = read_table(Path(items)) if is_file else list_of("items", rows_in("items", items), "objects")
    try:
        encoding = infer(rows, identifier=identifier)
        names, X = [encoding.name_of(row) for row in rows], encoding.encode_many(rows).astype(float)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    try:
        return comparisons.with_items(choices, names), X
    except ValueError as error:
        raise ValueError(f"{name}: {encoding.identifier}: {error}") from None
