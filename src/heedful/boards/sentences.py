"""What leaderboards and rankings say, in sentences: for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heedful.core.wording import count, one_line, percent, share

if TYPE_CHECKING:
    from heedful.boards.data_quality import Remark
    from heedful.boards.leaderboard import Effect, Leaderboard
    from heedful.boards.random_voters import RandomVoters
    from heedful.boards.ranking import PreferenceRanking

WITHOUT = "To rank without somebody's {}: --without NAME."
"""What a command offers where it names people whose votes or answers look odd."""
FEW = 6
"""The greatest number of people or kinds of votes that a line names."""


def influence(found: Leaderboard) -> list[str]:
    """Return a line on how few votes would turn the first place; none if that was not asked for."""
    got = found.influence
    if got is None:
        return []
    first, second = one_line(found.models[got.first]), one_line(found.models[got.second])
    if got.votes is None:
        return [f"No set of votes was found without which {first} would not be first."]
    if not got.votes:
        return [f"{first} and {second} are level: no vote decides which is first."]
    kinds = []
    for a, b, outcome, number in got.left_out[:FEW]:
        what, over = ("tie", "with") if outcome == 1 else ("win", "over")
        kinds.append(f"{count(number, what)} of {one_line(found.models[a])} {over} {one_line(found.models[b])}")
    rest = sum(number for *_, number in got.left_out[FEW:])
    more = f" and {rest:,} other{'' if rest == 1 else 's'}" if rest else ""
    votes = f"{count(got.votes, 'vote')} of {found.board.answers:,}"
    which = ", ".join(kinds) + more
    turned = f"ithout {votes} {second} would be first, or level with {first}: {which}."
    if found.told_apart(got.first, got.second):
        return [f"W{turned}"]
    return [f"Whether {first} or {second} is better cannot be told, so the first place is open. W{turned}"]


def effects(found: Leaderboard) -> list[str]:
    """Return a line on each covariate, for one standard deviation more of it, and on the side shown."""
    return [
        f"{_effect(each)}: {each.points:+.1f} points ({each.low:+.1f} to {each.high:+.1f})."
        for each in (*found.effects, *([found.side] if found.side is not None else []))
    ]


def _effect(each: Effect) -> str:
    return (
        "To be shown first"
        if each.name == "side"
        else f"{one_line(each.name)}, {each.unit:.4g} more (one standard deviation)"
    )


def odd_people(remarks: Sequence[Remark], random: RandomVoters | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """Return sentences on people whose answers look odd, a habit or chance, each with their names."""
    odd = [(each.message, each.people) for each in remarks if each.people and each.kind in ("side", "random")]
    people = random.found if random is not None else ()
    if not people:
        return odd
    told = []
    for each in people[:FEW]:
        agreed = f"{percent(round(each.agreed, 2))} of {count(each.votes, 'vote')} with the board"
        against = ", against it" if each.against else ""
        told.append(f"{one_line(each.person)} ({agreed}, {percent(round(each.expected, 2))} usual{against})")
    more = f" and {len(people) - FEW} more (--json)" if len(people) > FEW else ""
    return [*odd, (f"At random: {'; '.join(told)}{more}.", tuple([each.person for each in people]))]


def how(found: Leaderboard) -> list[str]:
    """Return lines on what the numbers are, and with which model they were computed."""
    anchor = _anchor(found.anchor, found.models)
    wins = "points, a tie being half a point" if found.tie_model == "half" and found.tied else "votes that are no ties"
    if found.tie_model == "threshold":
        wins = "votes if a choice has to be made"
    told = f"Scores are as in chess: {anchor}; 100 points more win 64 of 100 {wins}. Intervals hold 90 %."
    ties = {
        "threshold": "two answers tie if they seem nearly as good",
        "odds": "ties become rarer as models differ, by their odds",
        "constant": "ties are as frequent whoever meets",
        "half": "a tie is half a win for both",
    }[found.tie_model]
    model = f"An arena: Bradley-Terry, every vote counts the same{f'; {ties}' if found.tied else ''}"
    if found.clusters:
        model += f"; intervals allow for {found.clusters:,} people who differ"
    people = f" by {count(found.board.people, 'person', 'people')}" if found.board.people else ""
    read = f"{count(found.board.answers, 'vote')} about {count(len(found.models), 'model')}{people} ({found.read})."
    return [told, f"{model}.", read]


def _anchor(anchor: tuple[int, float] | None, names: Sequence[str]) -> str:
    """Return what the scores are relative to."""
    if anchor is None:
        return "the average is 1,000"
    return f"{one_line(names[anchor[0]])!r} has {anchor[1]:,.6g}, and what differs from it is unsure"


def how_ranked(found: PreferenceRanking) -> list[str]:
    """Return lines on what the numbers of the ranking `found` are, and with which model and settings they were
    computed."""
    estimate, belief = found.estimate, found.estimate.belief
    noise = belief.noise
    many = len(estimate.choices.people) > 1
    told = "Utilities are less their average, in units of the noise of one choice; intervals hold 90 %. "
    told += "Scores are as in chess: "
    told += f"{_anchor(found.anchor, found.names)}; 100 more win 64 times in 100."
    settings = [f"utilities are spread by {belief.spread:.2g}"]
    if many:
        settings.append(f"{share(belief.share)} of that squared is each person's own")
    if belief.kernel.explained:
        settings.append(
            f"features explain {share(belief.kernel.explained)} of what differs before anything is answered"
        )
    if noise.width.max() > 0.0:
        settings.append(f'"equally good" within {_median(noise.width):.2g}')
    if (belief.rows.group < 0).any():
        settings.append(f"answers at random {percent(round(_median(noise.lapse), 3))}{' (median)' if many else ''}")
    model = "Many people, each with utilities around their mean" if many else "A Gaussian process over the items"
    choices = estimate.choices
    people = f" by {len(choices.people):,} people" if len(choices.people) > 1 else ""
    read = f"{count(choices.answers, 'answer')} about {count(len(choices.items), 'item')}{people} ({found.read})."
    return [told, f"{model}: {', '.join(settings)}.", read]


def _median(values: Any) -> float:
    import numpy as np

    return float(np.median(values))
