"""A ranking with its uncertainty, as `heedful rank` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.cli.console import console, new_table, width
from heedful.core.wording import BAR, count, one_line, percent, share

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.boards.ranking import PreferenceRanking
    from heedful.boards.standing import Standing

COLUMNS = 40
"""The most characters of a bar."""
LEAST = (13, 13, 13, 20)
"""The fewest characters of a bar in a table without scores; with scores; with votes too; with intervals too.

A bar is at least as wide as what stands above its column."""


def what(found: PreferenceRanking) -> str:
    """Return in words whose ranking `found` is: one person's, that of people on average, or that of all answers
    together."""
    people = found.estimate.choices.people
    if found.person is not None:
        return f"what {one_line(found.person)} prefers" if found.person else "what people without a name prefer"
    if len(people) > 1:
        return f"what {len(people):,} people prefer on average"
    return f"what {one_line(people[0])} prefers" if people[0] else "what is preferred, all answers taken together"


def _median(values: Any) -> float:
    import numpy as np

    return float(np.median(values))


# ---------------------------------------------------------------------------- in words


def show(found: PreferenceRanking, top: int) -> None:
    """Print the first `top` items of the ranking `found` as a table, then sentences on what follows from it.

    The table has as many columns as the terminal has room for.
    """
    screen, standing = console(), found.standing
    shown = standing.order.tolist()[:top]
    detail = next((level for level in (3, 2, 1) if _room(found, shown, level) >= LEAST[level]), 0)
    room = _room(found, shown, detail)
    screen.print(_table(found, shown, detail, room if room >= LEAST[detail] else 0))  # names come before bars
    if len(standing.order) > top:
        screen.print(f"... and {len(standing.order) - top:,} more (--top, --json)\n")
    for line in [*_apart(found), *_verdict(found), "", *_how(found)]:
        screen.print(line, markup=False, soft_wrap=True)
    for each in found.remarks:
        screen.print(f"Note: {each.message}", markup=False, soft_wrap=True)
    several = len(found.estimate.choices.people) > 1
    if several and any(each.people and each.kind in ("side", "random") for each in found.remarks):
        screen.print("To rank without somebody's answers: --without NAME.", soft_wrap=True)


def _room(found: PreferenceRanking, shown: list[int], detail: int) -> int:
    """Return how many columns of the terminal are left for bars next to a table (`_table`) of these items and
    `detail`."""
    table = _table(found, shown, detail)
    table.min_width = None  # the title may be longer than the table
    return min(COLUMNS, console().width - width(table) - 3)


def _table(found: PreferenceRanking, shown: list[int], detail: int, room: int = 0) -> Table:
    """Return a table of the ranking `found`, with a row for each item number in `shown` and bars `room` characters
    wide.

    `detail` is an index into `LEAST`: 1 adds scores, 2 votes as well, 3 intervals as numbers as well. Without room (0)
    there are no bars.
    """
    from rich.markup import escape

    numbers = detail == 3
    standing, n = found.standing, len(found.names)
    table = new_table(escape(f"{found.file}: {what(found)}"))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("item", overflow="fold", max_width=40 if numbers else 24)
    if detail:
        table.add_column("score, 90 %" if numbers else "score", justify="right", no_wrap=True)
    if detail > 1:
        table.add_column("votes", justify="right", no_wrap=True)
    table.add_column("P(best)", justify="right", no_wrap=True)
    if found.new is not None:
        table.add_column("if new", justify="right", no_wrap=True)
    table.add_column("place", justify="right", no_wrap=True)
    table.add_column("over next", justify="right", no_wrap=True)
    if numbers:
        table.add_column("utility", justify="right", no_wrap=True)
    if room:
        table.add_column("utility, 90 %", no_wrap=True)
    low = min(standing.mean[i] - BAR * standing.sd[i] for i in shown)
    high = max(standing.mean[i] + BAR * standing.sd[i] for i in shown)
    better = [*standing.better.tolist(), 1.0]
    for place, i in enumerate(shown, 1):
        a, b = standing.places[i].tolist()
        sure = better[place - 1]
        score, half = found.scores.score[i], (found.scores.high[i] - found.scores.low[i]) / 2
        known = [f"{score:,.0f}" + (f" ± {half:.0f}" if numbers else ""), f"{found.votes[i]:,.0f}"]
        cells = [str(place), escape(one_line(found.names[i], 80)), *known[:detail]]
        cells += [share(standing.best[i])]
        cells += [] if found.new is None else [share(found.new[i])]
        cells += [str(a) if a == b else f"{a}-{b}"]
        cells += ["" if place == n else share(sure) if sure >= found.sure else f"[yellow]≈ {share(sure)}[/]"]
        cells += [f"{standing.mean[i]:+.2f} ± {BAR * standing.sd[i]:.2f}"] if numbers else []
        cells += [f"[cyan]{_bar(standing, i, low, high, room)}[/]"] if room else []
        table.add_row(*cells)
    return table


def _bar(standing: Standing, i: int, low: float, high: float, room: int) -> str:
    """Return a bar of `room` characters: the mean utility of item i and its 90 % interval, on an axis from `low` to
    `high`.

    `standing` holds the utilities.
    """
    step = max(high - low, 1e-12) / (room - 1)
    ends = [round((standing.mean[i] + side * BAR * standing.sd[i] - low) / step) for side in (-1, 0, 1)]
    left, middle, right = (min(max(int(end), 0), room - 1) for end in ends)
    return (" " * left + "─" * (middle - left) + "●" + "─" * (right - middle)).ljust(room)


def _apart(found: PreferenceRanking) -> list[str]:
    runs = found.alike()
    if not runs:
        return [f"Every item is better than the next with {percent(found.sure)} or more."]
    told = []
    for run in runs[:8]:
        names = [one_line(name) for name in run]
        few = names if len(names) <= 6 else [*names[:3], f"{len(names) - 4} more", names[-1]]
        told.append(", ".join(few[:-1]) + f" and {few[-1]}")
    more = f"; and {len(runs) - 8} more such groups" if len(runs) > 8 else ""
    return [f"Neighbours that cannot be told apart (less than {percent(found.sure)}): {'; '.join(told)}{more}."]


def _verdict(found: PreferenceRanking) -> list[str]:
    stop, left = found.verdict.stop, found.verdict.left
    first, second = (one_line(found.names[i]) for i in (found.verdict.next.first, found.verdict.next.second))
    if found.verdict.goal == "best":
        told = f"{one_line(found.names[stop.item])} is the best with probability {stop.sure:.2f}"
    else:
        told = f"{share(stop.sure)} of the pairs are expected to be in the right order"
    if stop.stop:
        return [f"Sure enough ({found.sure:g}): {told}. Nothing more needs to be asked."]
    ask = f"{first!r} or {second!r}?"
    if left is None:
        return [f"Not sure enough yet ({found.sure:g}): {told}. Ask somebody new first: {ask}"]
    return [f"Not sure enough yet ({found.sure:g}): {told}; {left}. The next one: {ask}"]


def _how(found: PreferenceRanking) -> list[str]:
    """Return lines on what the numbers of the ranking `found` are, and with which model and settings they were
    computed."""
    estimate, belief = found.estimate, found.estimate.belief
    noise = belief.noise
    many = len(estimate.choices.people) > 1
    told = "Utilities are less their average, in units of the noise of one choice; ± and bars hold 90 %. "
    told += "Scores are as in chess: "
    anchor = "the average is 1,000" if found.anchor is None else ""
    if found.anchor is not None:
        anchor = (
            f"{one_line(found.names[found.anchor[0]])!r} has {found.anchor[1]:,.6g}, and what differs from it is unsure"
        )
    told += f"{anchor}; 100 more win 64 times in 100."
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
