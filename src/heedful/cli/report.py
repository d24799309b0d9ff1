"""`heedful report`: what a loop learned, measured from its log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedful.cli.finding import Json, Name, Own, asking, opened
from heedful.cli.output import check_path
from heedful.cli.terminal import console, new_table, note, print_json, reading_input, short, wanted_extra, width

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.loop.accuracy import Accuracy
    from heedful.loop.approval import Approval
    from heedful.loop.foretelling import Foretelling, Picked
    from heedful.loop.guessing import Guessing
    from heedful.loop.report import Arm, Report

BARS = "▁▂▃▄▅▆▇█"
COLUMNS, FEWEST = 40, 10
"""Bars of the line over time, at most and at least: its heading takes nine."""


def report(
    name: Name,
    last: Annotated[int, typer.Option(min=1, metavar="N", help="Of the newest N decisions.")] = 10_000,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw both kinds of list over time (.png, .pdf, .svg).")
    ] = None,
    own: Own = None,
    json: Json = False,
) -> None:
    """Say what a loop learned: learned lists against those left alone, and what feedback was worth.

    Of a loop of grades: how far what was predicted lay from what was given, against always saying the median so far.
    Of a loop of ratings: how what was shown was rated, and how far off what was expected was, against the item's mean.
    Of a loop of choices: how often what was likeliest was chosen, against guessing.

    How high what was preferred stood in a list is 1 where it was first, 0.5 where second, 0.33 where third, and 0 where
    nothing was wanted; told are averages. The interval is a 95 % one, and counts people, not lists.

    Exit codes: 0 reported; 1 the loop cannot be read; 2 bad input.
    """
    with reading_input():
        check_path("--plot", plot, (".png", ".pdf", ".svg"))
    if plot is not None:
        wanted_extra("matplotlib", "plot", "--plot")
    with opened(name, own) as loop, asking():
        found = loop.report(last)
        title = str(loop.path)
    if json:
        from heedful.loop.wire import plain

        print_json(plain(found))
    else:
        _show(found, title)
    if plot is not None:
        if found.series if found.grades is None else found.grades.series:
            _plot(plot, found, title)
        else:
            what = "shown" if found.grades is None else "graded"
            note(f"--plot: nothing was {what} so far, so there is nothing to draw in {plot}")


# ---------------------------------------------------------------------------- in words


def _show(found: Report, title: str) -> None:
    screen = console()
    if found.grades is not None:
        _show_grades(found.grades, title)
        screen.print(f"{_feedback(found)}\n", soft_wrap=True)
        screen.print(_looked_at(found), soft_wrap=True)
        return
    if found.choices is not None:
        _show_choices(found, found.choices, title)
        screen.print(f"{_feedback(found)}\n", soft_wrap=True)
        screen.print(_looked_at(found), soft_wrap=True)
        return
    rated = found.ratings is not None
    what = "the mean rating of what was shown" if rated else "how high what was preferred stood (1: first, 0.5: second)"
    there = [arm.mean for window in found.series for arm in (window.learned, window.control) if arm.mean is not None]
    low, high = (min(there, default=0.0), max(there, default=1.0)) if rated else (0.0, 1.0)
    rows = []
    for told, field in (("learned", "learned"), (_aside(found), "control")):
        arm: Arm = getattr(found, field)
        mean = "" if arm.mean is None else f"{arm.mean:.3f}"
        means = [_share(getattr(window, field).mean, low, high) for window in found.series]
        rows.append(_Row((told, f"{arm.shown:,}", f"{arm.answered:,}", mean), means))
    _print_table(f"{title}: {what}", ("lists", "shown", "answered", "rating" if rated else "how high"), rows)
    screen.print(f"{_difference(found)}\n", soft_wrap=True)
    if found.ratings is not None:
        screen.print(f"{_foretold(found.ratings)}\n", soft_wrap=True)
        if found.ratings.picked is not None:
            screen.print(f"{_picked(found.ratings.picked)}\n", soft_wrap=True)
    if found.thumbs is not None:
        screen.print(f"{_thumbs(found, found.thumbs)}\n", soft_wrap=True)
    screen.print(f"{_feedback(found)}\n", soft_wrap=True)
    if found.simulation is not None:
        screen.print(f"{_simulation(found)}\n", soft_wrap=True)
    screen.print(_looked_at(found), soft_wrap=True)


def _aside(found: Report) -> str:
    if found.choices is not None:
        return "asked by chance"
    return "left in their own order" if found.ratings is None else "by your score, or by chance"


def _share(mean: float | None, low: float, high: float) -> float | None:
    """Where a mean lies between these."""
    return None if mean is None else (mean - low) / (high - low) if high > low else 0.5


def _foretold(found: Foretelling) -> str:
    """How well ratings were predicted, in words."""
    if found.error is None:
        return f"How well ratings are predicted cannot be said: {found.unsaid}."
    told = f"Predictions are {found.error:.3f} off on average over {found.ratings:,} ratings; always saying the item's "
    told += f"mean so far would be {found.item_mean:.3f} off"
    apart = found.difference
    if apart is None:
        return f"{told}. Which is better cannot be said: {found.unsaid}."
    better = "better" if apart.high < 0.0 else "worse" if apart.low > 0.0 else "it may be chance"
    told += f": {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % confidence"
    return f"{told} ({apart.people:,} people): {better}."


def _show_grades(found: Accuracy, title: str) -> None:
    screen, rows = console(), []
    most = max([1e-9, *(value for each in found.series for value in (each.loss, each.constant))])
    for told, value, exact, parts in (
        ("what was learned", found.loss, found.exact, [each.loss / most for each in found.series]),
        ("always the median so far", found.constant, None, [each.constant / most for each in found.series]),
    ):
        cells = ["" if value is None else f"{value:.3f}", "" if exact is None else f"{exact:.0%}"]
        rows.append(_Row((told, f"{found.grades:,}", *cells), [*parts]))
    title = f"{title}: how far predictions lay from the grades given (0: right)"
    _print_table(title, ("predicted by", "grades", "mean error", "exactly right"), rows)
    apart = found.difference
    if apart is None:
        screen.print(f"Whether learning helps cannot be said: {found.unsaid}.\n", soft_wrap=True)
        return
    told = f"Learned less median: {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % confidence"
    better = "learning helps" if apart.high < 0.0 else "learning does harm" if apart.low > 0.0 else "it may be chance"
    screen.print(f"{told} ({apart.people:,} people): {better}.\n", soft_wrap=True)


def _show_choices(report: Report, found: Guessing, title: str) -> None:
    screen, rows = console(), []
    for told, field in (("of the rule, the least certain", "learned"), ("of chance", "control")):
        arm: Arm = getattr(report, field)
        mean = "" if arm.mean is None else f"{arm.mean:.1%}"
        means = [getattr(window, field).mean for window in report.series]
        rows.append(_Row((told, f"{arm.shown:,}", f"{arm.answered:,}", mean), means))
    title = f"{title}: how often what was likeliest was chosen"
    _print_table(title, ("questions", "asked", "answered", "foretold"), rows)
    if found.right is None or found.guess is None:
        screen.print(f"How well choices are foretold cannot be said: {found.unsaid}.", soft_wrap=True)
    else:
        told = f"Foretold in {found.right:.1%} of {found.answers:,} answers; a guess is right in {found.guess:.1%}"
        apart = found.difference
        if apart is None:
            told += f". Whether that is more than chance cannot be said: {found.unsaid}"
        else:
            better = "better than a guess" if apart.low > 0.0 else "worse" if apart.high < 0.0 else "it may be chance"
            told += f": {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % confidence"
            told += f" ({apart.people:,} people): {better}"
        screen.print(f"{told}.", soft_wrap=True)
    screen.print(
        f"Equally good: {found.equal:,}; could not judge, or chose nothing: {found.unsure:,}.\n", soft_wrap=True
    )


class _Row(NamedTuple):
    """One row of the table: its cells, and how it went over time, from 0 to 1."""

    cells: tuple[str, ...]
    means: Sequence[float | None]


def _print_table(title: str, columns: Sequence[str], rows: Sequence[_Row]) -> None:
    """Print a table of numbers with a line over time at the end, which gets what room they leave: numbers keep all of
    their digits, on narrow screens there is no line."""
    from rich.markup import escape

    def filled(title: str, bars: int) -> Table:
        table = new_table(escape(title))
        table.add_column(columns[0], overflow="fold")
        for column in columns[1:]:
            table.add_column(column, no_wrap=True, justify="right")
        if bars:
            table.add_column("over time", no_wrap=True)
        for row in rows:
            table.add_row(*row.cells, *([f"[cyan]{_line(row.means, bars)}[/]"] if bars else []))
        return table

    room = console().width
    fitting = (bars for bars in range(COLUMNS, FEWEST - 1, -1) if width(filled("", bars)) <= room)
    console().print(filled(title, next(fitting, 0)))


def _line(means: Sequence[float | None], columns: int) -> str:
    """Means from 0 to 1 as a line of at most so many bars, gaps where there is none."""
    step = max(-(-len(means) // columns), 1)
    line = ""
    for start in range(0, len(means), step):
        there = [mean for mean in means[start : start + step] if mean is not None]
        line += BARS[min(int(8 * sum(there) / len(there)), 7)] if there else " "
    return line


def _difference(found: Report) -> str:
    apart = found.difference
    if apart is None:
        return f"Whether learning helps cannot be said: {found.unsaid}."
    other = "own order" if found.ratings is None else "the other"
    told = f"Learned less {other}: {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % confidence"
    better = "learning helps" if apart.low > 0.0 else "learning does harm" if apart.high < 0.0 else "it may be chance"
    return f"{told} ({apart.people:,} people): {better}."


def _thumbs(found: Report, thumbs: Approval) -> str:
    """The share of thumbs up by arm, in words."""
    told = []
    for arm, what in ((thumbs.learned, "of learned lists"), (thumbs.control, f"of those {_aside(found)}")):
        if arm.share is not None:
            between = "" if arm.low is None else f" (from {arm.low:.1%} to {arm.high:.1%})"
            told.append(f"{arm.share:.1%} of {arm.thumbs:,}{between} {what}")
    line = f"Thumbs up: {', '.join(told)}"
    apart = thumbs.difference
    if apart is None:
        takes = "it takes thumbs of two people on either kind of list, not all alike"
        return f"{line}, with 95 % confidence. Whether learning helps they cannot say: {takes}."
    better = "learning helps" if apart.low > 0.0 else "learning does harm" if apart.high < 0.0 else "it may be chance"
    line += f"; the difference is {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f}, with 95 % confidence"
    return f"{line} ({apart.people:,} people): {better}."


def _picked(picked: Picked) -> str:
    """The model beside what is most popular, in words."""
    told = (
        f"Of {picked.lists:,} lists that were not chosen by it, what it expected most of was rated {picked.learned:.3f}"
    )
    told += f", the most popular {picked.popular:.3f}, any of them {picked.chance:.3f}"
    apart = picked.difference
    if apart is None:
        return f"{told}. Whether it is better than the most popular cannot be said yet."
    better = "better than the most popular" if apart.low > 0.0 else "worse" if apart.high < 0.0 else "it may be chance"
    told += f"; learned less most popular: {apart.by:+.3f}, from {apart.low:+.3f} to {apart.high:+.3f} with 95 % "
    return f"{told}confidence ({apart.people:,} people): {better}."


def _feedback(found: Report) -> str:
    counts = found.feedback
    if not counts.given:
        return f"No feedback{f' but {counts.undone:,} that were undone' if counts.undone else ' so far'}."
    shares = [
        f"{n:,} ({n / counts.given:.0%}) {told}"
        for n, told in (
            (counts.empty, "with nothing to learn from"),
            (counts.contradictory, "against what the model says by now"),
            (counts.late, "late"),
        )
    ]
    return f"Feedback: {counts.given:,}, of them {', '.join(shares)}; {counts.undone:,} more undone."


def _simulation(found: Report) -> str:
    truth = found.simulation
    assert truth is not None
    if truth.regret is None:
        return f"A simulated person teaches this loop: {truth.unbound}."
    told = f"A simulated person teaches this loop: regret {short(truth.regret)} on average over {truth.lists:,} lists"
    return f"{told}; " + (f"no bound: {truth.unbound}." if truth.bound is None else f"at most {short(truth.bound)}.")


def _looked_at(found: Report) -> str:
    if found.since is None:
        return "Nothing was decided so far."
    since = datetime.fromtimestamp(found.since / 1e6, UTC)
    told = f"{'All' if found.whole else 'The newest'} {found.decisions:,} decisions, since {since:%Y-%m-%d %H:%M} UTC"
    told += f"; {found.imported:,} of them imported" if found.imported else ""
    told += f"; {found.waiting:,} deferred and not shown" if found.waiting else ""
    return told + (f"; {found.unknown:,} asked about items that were not on offer" if found.unknown else "")


def _plot(path: Path, found: Report, title: str) -> None:
    """Both arms over time, and with them the means of all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.0), dpi=160, layout="constrained")
    axes = figure.subplots()
    if found.grades is not None:
        _plot_grades(axes, found.grades)
    for field, told, color in (("learned", "learned", "C0"), ("control", _aside(found), "C1")):
        arm = getattr(found, field)
        points = [(window.seq, getattr(window, field).mean) for window in found.series]
        there = [(seq, mean) for seq, mean in points if mean is not None]
        if there and found.grades is None:
            axes.plot(*zip(*there), color=color, label=f"{told} ({arm.mean:.3f})", linewidth=1.6, marker=".")
            axes.axhline(arm.mean, color=color, linestyle="--", linewidth=1.0)
    axes.set_xlabel("event of the log")
    if found.ratings is not None:
        axes.set_ylabel("mean rating of what was shown")
    elif found.choices is not None:
        axes.axhline(0.5 if found.choices.guess is None else found.choices.guess, color="0.6", linewidth=1.0)
        axes.set_ylim(0.0, 1.05)
        axes.set_ylabel("share of answers that were foretold")
    elif found.grades is None:
        axes.set_ylim(0.0, 1.05)
        axes.set_ylabel("how high what was preferred stood (1: first, 0.5: second)")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path)


def _plot_grades(axes: Any, found: Accuracy) -> None:
    """How far predictions lay from the grades, over time, beside the constant predictor's."""
    for field, told, color in (("loss", "what was learned", "C0"), ("constant", "always the median so far", "C1")):
        seqs, values = [each.seq for each in found.series], [getattr(each, field) for each in found.series]
        axes.plot(seqs, values, color=color, label=f"{told} ({getattr(found, field):.3f})", linewidth=1.6, marker=".")
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("mean |predicted - given|")
