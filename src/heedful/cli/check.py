"""`heedful check`: what every learner promises, tried on one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from heedful.cli.terminal import console, print_json, reading_input


def _coactive(spec: str) -> tuple[Any, Any]:
    """(the learner, rankings of 8 candidates with 6 features)."""
    from heedful.experiments.run import Scene, Setting
    from heedful.spaces.ranking import Ranking
    from heedful.worlds.queries import feature_bounds, synthetic_queries
    from heedful.worlds.users import Noisy

    world, w_star = synthetic_queries(40, 8, 6, noise=1.0, user=Noisy(5))
    R, S = feature_bounds(world.X, world.offsets, Ranking(5))
    return Setting(6, Ranking(5), R, S, float("nan"), 40, (Scene(0, 0, 0, world, w_star),)).learner(spec), world


def _ordinal(spec: str) -> tuple[Any, Any]:
    """(the learner, instances of 6 features with grades from 1 to 5, or as many as the learner says)."""
    import numpy as np

    from heedful.learners.registry import make_learner
    from heedful.spaces.ordinal import Ranks
    from heedful.worlds.instances import synthetic_ordinal

    learner = make_learner(spec, n_features=6, space=Ranks(5))
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner, synthetic_ordinal(40, 6, getattr(getattr(learner, "space", None), "k", 5))[0]


def _rating(spec: str) -> tuple[Any, Any]:
    """(the learner, 80 users who rate 90 items from 1 to 5, two of them at a time, each item once): they come in any
    order, also after many rounds, so that arrays have to grow."""
    import numpy as np

    from heedful.data.ratings import RatingTable
    from heedful.experiments.ratings import rating_setting

    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((80, 90)) < 0.1)
    names = np.arange(80).astype(str), np.arange(90).astype(str)
    table = RatingTable(users, items, rng.integers(1, 6, users.size).astype(np.float64), *names)
    setting = rating_setting(table, slate=2)
    return setting.learner(spec), setting.scenes[0].world


def _pairwise(spec: str) -> tuple[Any, Any]:
    """(the learner, 5 people who choose between two of 9 items with 3 features, and sometimes call them equally good,
    or cannot judge)."""
    import numpy as np

    from heedful.learners.registry import make_learner
    from heedful.spaces.comparison import Choice
    from heedful.worlds.choices import gaussian_choosers

    features = np.random.default_rng(0).standard_normal((9, 3))
    learner = make_learner(spec, n_features=3, space=Choice(9, True, features))
    try:
        learner.init(np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return learner, gaussian_choosers(5, 9, features=features, tie=0.3, unsure=0.1, lapse=0.05)


WORLDS: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "coactive": _coactive,
    "ordinal": _ordinal,
    "rating": _rating,
    "pairwise": _pairwise,
}
"""What a learner is tried in, by its interaction."""


MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def check(
    learner: Annotated[str, typer.Argument(help="FILE.py:Class[:A=1,...], module:Class, or the name of a built-in.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
) -> None:
    """Try on your learner what every learner promises.

    Same seed, same rounds; proposing changes nothing; compiled equals interpreted; and so on. It meets rankings of 8
    candidates with 6 features; where its docstring says `Interaction: ordinal.` in its first paragraph, instances of 6
    features with grades from 1 to 5; where `Interaction: rating.`, users who rate two items at a time; where
    `Interaction: pairwise.`, people who choose between two of 9 items.
    Ends with 1 where a promise is broken, and says where it breaks. One cause is one broken promise: what fails because
    of it is marked, and tried again once that is mended.
    """
    from rich.markup import escape
    from rich.table import Table

    with reading_input():
        from heedful.learners.registry import about, learner_class

        kind = about(learner_class(learner)).interaction or "coactive"
        if kind not in WORLDS:
            raise ValueError(f"learner: wanted one of {' or '.join(WORLDS)} feedback, got {learner}, which is {kind}")
        mine, world = WORLDS[kind](learner)
    from heedful.core import conformance

    screen, findings = console(), []
    for found in conformance.promises(mine, world):  # each is shown as soon as it is known
        findings.append(found)
        if not json:
            told = found.evidence if found.kept else found.where
            line = Table.grid(padding=(0, 1))
            style = "red" if found.kept is False else "dim"
            line.add_row(MARKS[found.kept], f"{escape(found.promise)}\n[{style}]{escape(told)}[/]")
            screen.print(line)
    broken, open_ = (sum(found.kept is each for found in findings) for each in (False, None))
    if json:
        print_json([found._asdict() for found in findings])
    else:
        left = f", {open_} cannot be told before that is mended" if open_ else ""
        all_told = f"{broken} of {len(findings)} promises broken{left}." if broken else f"All {len(findings)} kept."
        screen.print(f"\n{all_told}")
    if broken:
        raise typer.Exit(1)
