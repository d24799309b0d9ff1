"""`heedful explain` and `heedful replay`: looking back over a log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.finding import Json, Name, Own, asking, opened
from heedful.cli.terminal import BadInput, console, new_table, number, print_json, short

if TYPE_CHECKING:
    from heedful.loop.counterfactual import Replayed
    from heedful.loop.explain import Explanation, Foreseen, Weighed

ROWS = 10
WEIGHTS = 5


def explain(
    name: Name,
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="The id that `heedful decide` gave.")],
    own: Own = None,
    json: Json = False,
) -> None:
    """Say why the first stood first: which features put it there, and which feedback moved it.

    In a loop of grades: why the first was predicted its grade. In a loop of ratings: what was expected of it, and from
    which ratings that comes. In a loop of choices: why these were asked about, and which answers say which is better.

    Exit codes: 0 explained; 1 the loop cannot be read; 2 bad input, such as a decision that is not in the log.
    """
    with opened(name, own) as loop, asking():
        told = loop.explain(decision)
        if json:
            from heedful.loop.wire import plain

            print_json(plain(told))
        else:
            _explain(told)


def _explain(told: Explanation) -> None:
    from rich.markup import escape

    screen = console()
    if told.rating is not None:
        _rated(told, told.rating)
        return
    if told.choice is not None:
        _chosen(told, told.choice)
        return
    other = "an item of average features" if told.second is None else told.second
    if told.grade is not None:
        screen.print(_graded(told), markup=False, soft_wrap=True)
    else:
        screen.print(f"{told.first} before {other}, by {_signed(told.margin)}", markup=False, soft_wrap=True)
    if told.arm != "learned":
        why = "your order, for comparison" if told.arm == "control" else "somebody else's order"
        screen.print(f"This decision showed {why}: the model had no part in {'it' if told.grade is None else 'that'}.")
    features = new_table("What put it there")
    columns = ("feature", "weight", "first", "second", "counts")
    for column in columns if told.grade is None else ("feature", "weight", "value", "counts"):
        features.add_column(column, overflow="fold", justify="left" if column == "feature" else "right")
    for part in told.features[:ROWS]:
        values = (_brief(part.first),) if told.grade is not None else (_brief(part.first), _brief(part.second))
        features.add_row(escape(part.name), _brief(part.weight), *values, _signed(part.counts))
    lessons = new_table("What moved it")
    for column in ("feedback", "form", "event", "by"):
        lessons.add_column(column, overflow="fold", justify="right" if column in ("event", "by") else "left")
    for moved in told.lessons[:ROWS]:
        lessons.add_row(escape(moved.event), moved.form, f"{moved.seq:,}", _signed(moved.by))
    for table, all_of_them in ((features, told.features), (lessons, told.lessons)):
        if all_of_them:
            screen.print(table)
        if len(all_of_them) > ROWS:
            screen.print(f"and {len(all_of_them) - ROWS:,} more, which count less: --json has all\n")
    if not told.lessons:
        apart = "tells the two apart" if told.grade is None else "moved it"
        screen.print(f"Nothing was learned before it that {apart}.")


def _rated(told: Explanation, rating: Foreseen) -> None:
    """An expected rating in words: how much, how certain, from what."""
    from rich.markup import escape

    screen = console()
    told_of = told.first if rating.expected is None else f"{told.first}: a rating of {rating.expected:.2f} was expected"
    certain = "" if rating.spread is None else f", give or take {rating.spread:.2f}"
    screen.print(f"{told_of}{certain}", markup=False, soft_wrap=True)
    screen.print(f"{told.because[0].upper()}{told.because[1:]}.", markup=False, soft_wrap=True)
    known = new_table("What was known")
    for column in ("ratings", "how many", "mean"):
        known.add_column(column, justify="left" if column == "ratings" else "right")
    for what, count, mean in (
        ("of this item, by all", rating.by_all, rating.mean_of_all),
        ("by this person, of all items", rating.by_person, rating.mean_of_person),
        ("of this item by this person", rating.own, rating.mean_of_own),
    ):
        known.add_row(what, short(count), "" if mean is None else f"{mean:.2f}")
    parts, lessons = new_table("What it is the sum of"), new_table("What it comes from: without it, so much lower")
    for column in ("part", "counts"):
        parts.add_column(column, justify="left" if column == "part" else "right")
    for part in told.features:
        parts.add_row(escape(part.name), _signed(part.counts))
    for column in ("feedback", "form", "event", "by"):
        lessons.add_column(column, overflow="fold", justify="right" if column in ("event", "by") else "left")
    for moved in told.lessons[:ROWS]:
        lessons.add_row(escape(moved.event), moved.form, f"{moved.seq:,}", _signed(moved.by))
    for table, there in ((known, True), (parts, bool(told.features)), (lessons, bool(told.lessons))):
        if there:
            screen.print(table)
    if len(told.lessons) > ROWS:
        screen.print(f"and {len(told.lessons) - ROWS:,} more, which count less: --json has all")


def _chosen(told: Explanation, choice: Weighed) -> None:
    """What was believed of two items, in words, and from which answers."""
    from rich.markup import escape

    screen = console()
    ahead = f"{told.first} was {_signed(told.margin)} ahead, give or take {choice.spread:.2f}"
    sure = f"the better one with {choice.better:.0%} probability, and chosen with {choice.chosen:.0%}"
    screen.print(f"{told.first} or {told.second}: {ahead}: it is {sure}", markup=False, soft_wrap=True)
    screen.print(f"{told.because[0].upper()}{told.because[1:]}.", markup=False, soft_wrap=True)
    known = f"{choice.answers:,} answers of the person before it; pairs asked with the first in it: "
    screen.print(
        f"{known}{choice.asked_first:,}, with the second: {choice.asked_second:,}", markup=False, soft_wrap=True
    )
    lessons = new_table("What it comes from: by so much each answer moved the first ahead")
    for column in ("feedback", "form", "event", "by"):
        lessons.add_column(column, overflow="fold", justify="right" if column in ("event", "by") else "left")
    for moved in told.lessons[:ROWS]:
        lessons.add_row(escape(moved.event), moved.form, f"{moved.seq:,}", _signed(moved.by))
    if told.lessons:
        screen.print(lessons)
    if len(told.lessons) > ROWS:
        screen.print(f"and {len(told.lessons) - ROWS:,} more, which count less: --json has all")


def _graded(told: Explanation) -> str:
    """A grade in words: the score, and between which it lies."""
    if told.between is None:
        return f"{told.first}: grade {told.grade}; {told.because}"
    low, high = told.between
    ends = [f"from {short(low)} on" if low is not None else "", f"below {short(high)}" if high is not None else ""]
    where = " and ".join(end for end in ends if end)
    return f"{told.first}: grade {told.grade}, as its score is {_signed(told.margin)}: {where} it is that"


def replay(
    name: Name,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            "--learner", "-l", metavar="NAME[:A=1,...]", help="May be repeated; `heedful learners` lists them."
        ),
    ] = None,
    own: Own = None,
    json: Json = False,
) -> None:
    """Say what other learners would have made of the same log; nothing is changed.

    Agreement is the share of comparisons that a learner ranked as the person did, before it learned from them; in a
    loop of grades or ratings, how far what it predicted lay from what was given, on average. In a loop of choices: of
    what was chosen and each of the others. The loop's own learner comes first.

    Exit codes: 0 replayed; 1 the loop cannot be read; 2 bad input, such as a learner that does not fit the loop.
    """
    for spec in learner or ():
        if (learner or []).count(spec) > 1:
            raise BadInput(f"--learner: wanted each once, got {spec} {(learner or []).count(spec)} times")
    with opened(name, own) as loop:
        with asking():
            mine = loop.founding.learner
            folds = [loop.replay(spec) for spec in [mine, *(spec for spec in learner or () if spec != mine)]]
        if json:
            print_json([_as_json(fold) for fold in folds])
        else:
            _replay(folds, loop.choices is not None)


def _as_json(fold: Replayed) -> dict[str, Any]:
    from heedful.loop.wire import plain

    told: dict[str, Any] = plain(fold)
    return told


def _replay(folds: list[Replayed], chosen: bool = False) -> None:
    from rich.markup import escape

    graded, rated = folds[0].graded is not None, folds[0].rated is not None
    measure = "mean error" if graded or rated else "agreement"
    table = new_table("The same log, by other learners")
    last = "agreement" if rated else "greatest weights"
    for column in ("learner", "lessons", measure, last):
        right = column in ("lessons", measure, "agreement")
        table.add_column(column, overflow="fold", justify="right" if right else "left")
    for fold in folds:
        greatest = sorted(fold.weights.items(), key=lambda each: (number(each[1]) is not None, -abs(each[1])))[:WEIGHTS]
        told = ", ".join(f"{name} {_signed(weight)}" for name, weight in greatest if weight)
        value = fold.error if rated else fold.rank_loss if graded else fold.agreement
        measured = "unknown" if value is None else f"{value:.3f}" if graded or rated else f"{value:.1%}"
        if rated:
            told = "unknown" if fold.agreement is None else f"{fold.agreement:.1%}"
        table.add_row(escape(fold.learner), f"{fold.lessons:,}", measured, escape(told))
    screen = console()
    screen.print(table)
    if rated:
        told = "Mean error is that of |predicted - given|, each before it was learned from, over"
        most = max(fold.rated or 0 for fold in folds)
        screen.print(f"{told} {most:,} ratings; the first learner is the loop's own.", soft_wrap=True)
        told = "Agreement is the share of pairs that one answer rates differently which were predicted in that order"
        screen.print(f"{told}.", soft_wrap=True)
    elif graded:
        told = "Mean error is that of |predicted - given|, each before it was learned from, over"
        screen.print(f"{told} {folds[0].graded:,} grades; the first learner is the loop's own.", soft_wrap=True)
    elif folds[0].agreement is None:
        told = "it takes answers to orders that no learner chose: of the control, imported ones, or swapped neighbours"
        told = "nothing was chosen so far" if chosen else told
        screen.print(f"Agreement is unknown: {told}.", soft_wrap=True)
    else:
        screen.print(f"Agreement is over {folds[0].comparisons:,.0f} comparisons; the first learner is the loop's own.")


def _signed(value: float) -> str:
    return _brief(value) if math.isnan(value) else f"{'+' if value >= 0.0 else '-'}{_brief(abs(value))}"


def _brief(value: float) -> str:
    """A number in three figures, in powers of ten where it is too long otherwise; what is none in words."""
    if math.isnan(value):
        return "no number"
    if math.isinf(value):
        return "beyond all numbers" if value > 0.0 else "-beyond all numbers"
    return short(value) if abs(value) < 1e15 else f"{value:.2e}"
