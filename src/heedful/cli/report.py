"""`heedful report`: what a loop learned, measured from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import Json, Name, Own, open_loop
from heedful.cli.console import console, print_json
from heedful.cli.parts import print_parts
from heedful.core.formatting import short
from heedful.core.times import day
from heedful.core.wording import count, share_of

if TYPE_CHECKING:
    from heedful.loop import Loop
    from heedful.results.report import Report, Shares


def report(
    name: Name,
    last: Annotated[int, typer.Option(min=1, metavar="N", help="Report on the newest N decisions.")] = 10_000,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """What is measured depends on what the loop learns from. For lists it compares those in the learned order with
    those that were left in your order (the control); for grades, ratings and choices it is how well the answers were
    predicted.

    The measure of a list is the position of what people preferred: 1 if it was first, 0.5 if second, 0.33 if third, and
    0 if they wanted nothing of the list. The report gives averages with 95 % intervals, which count people, not lists.

    Exit codes: 0 reported; 1 the loop cannot be read; 2 bad input.
    """
    with open_loop(name, own_learners, read_only=True) as loop:
        result = loop.report(last)
        if json:
            print_json(result)
        else:
            _show(loop, result)


# ---------------------------------------------------------------------------- in words


def _show(loop: Loop, report: Report) -> None:
    from heedful.loop.interactions import telling

    screen, interaction = console(), loop.projection.interaction
    print_parts(telling.report(interaction.findings(report)), str(loop.path), apart=True)
    if report.thumbs is not None:
        screen.print(f"{_thumbs(report.thumbs, interaction.words.arms[1])}\n", soft_wrap=True)
    screen.print(f"{_feedback(report)}\n", soft_wrap=True)
    if report.simulation is not None:
        screen.print(f"{_simulation(report)}\n", soft_wrap=True)
    screen.print(_views(report), soft_wrap=True)


def _thumbs(thumbs: Shares, other: str) -> str:
    """Return a sentence on the share of thumbs up, for learned lists and for control lists, called `other`."""
    from heedful.results.sentences import shares_sentence

    line, apart = shares_sentence("Thumbs up", thumbs, "learned lists", other), thumbs.difference
    if apart is None:
        return f"{line}, with 95 % confidence. Whether learning helps they cannot say: {thumbs.unsaid}."
    better = "learning helps" if apart.low > 0.0 else "learning does harm" if apart.high < 0.0 else "it may be chance"
    return f"{line}: {better}."


def _feedback(report: Report) -> str:
    counts = report.feedback
    if not counts.given:
        return f"No feedback{f' but {counts.undone:,} that were undone' if counts.undone else ' so far'}."
    shares = [
        f"{n:,} ({share_of(n, counts.given)}) {what}"
        for n, what in (
            (counts.empty, "with nothing to learn from"),
            (counts.contradictory, "against what the model says by now"),
            (counts.late, "late"),
        )
    ]
    return f"Feedback: {counts.given:,}, of them {', '.join(shares)}; {counts.undone:,} more undone."


def _simulation(report: Report) -> str:
    truth = report.simulation
    assert truth is not None
    if truth.regret is None:
        return f"A simulated person teaches this loop: {truth.unbound}."
    lists = count(truth.lists, "list")
    text = f"A simulated person teaches this loop: regret {short(truth.regret)} on average over {lists}"
    return f"{text}; " + (f"no bound: {truth.unbound}." if truth.bound is None else f"at most {short(truth.bound)}.")


def _views(report: Report) -> str:
    if report.since is None:
        return "Nothing was decided so far."
    all_of_them = "All" if report.decisions > 1 else "The only"
    n = "decision" if report.decisions == 1 else count(report.decisions, "decision")
    text = f"{all_of_them if report.whole else 'The newest'} {n}, since {day(report.since)}"
    text += f"; {report.imported:,} of them imported" if report.imported else ""
    text += f"; {report.waiting:,} deferred and not shown" if report.waiting else ""
    return text + (f"; {report.unknown:,} asked about items that were not on offer" if report.unknown else "")
