"""`heedful standing`: the ranking of a loop's items by what people chose, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import Json, Name, Own, asking, open_loop
from heedful.cli.console import console, new_table, print_json
from heedful.core.wording import count, share

if TYPE_CHECKING:
    from heedful.results.standing import Standings

ROWS = 50
"""The most rows of the printed table; --json has all."""


def standing(
    name: Name,
    person: Annotated[
        str | None,
        typer.Option(help="The person whose ranking it is; by default everybody's together.", show_default="all"),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Leave this person's answers out; may be repeated.")
    ] = None,
    own: Own = None,
    json: Json = False,
) -> None:
    """Show the ranking by what people chose, how sure it is, and about how many questions are left.

    An item's position lies in the range shown with 90 % probability; "=" marks an item that cannot be told from the
    next one. Without --person the ranking is that of the average of all people. For a person without answers, which is
    said, it is what is known of somebody new.

    Exit codes: 0 said; 1 the loop cannot be read; 2 bad input, such as a loop of another kind.
    """
    from heedful.boards.data_quality import left_out
    from heedful.studies.arena import outputs_of
    from heedful.studies.study import study_of
    from heedful.studies.things import labels

    with open_loop(name, own, read_only=True) as loop, asking():
        found = loop.standing(person, without=without or ())
        before = loop.standing(person) if without else found
        title, arena = str(loop.path), outputs_of(loop.path) is not None
        called = labels(loop, study_of(loop.path), [each.item for each in found.ranking])
    if json:
        from heedful.results.answers import plain

        print_json(plain(found))
    else:
        _show(found, title, called)
        if without:
            first = [called[each.ranking[0].item] for each in (before, found)]
            console().print(left_out(without, *first).message, markup=False, soft_wrap=True)
        if arena:
            told = f"Questions are chosen by this model of people. The leaderboard of the votes: heedful rank {title}"
            console().print(told, markup=False, soft_wrap=True)


def _show(found: Standings, title: str, called: Mapping[str, str]) -> None:
    """Print the ranking `found` under this `title`; `called` is what people saw of each item, by its name."""
    from rich.markup import escape

    screen = console()
    if found.person is not None and not found.answers:  # perhaps the name was mistyped
        told = f"{found.person}: no answers so far; this is what is believed of somebody new\n"
        screen.print(told, markup=False, soft_wrap=True)
    whose = "all together" if found.person is None else found.person
    table = new_table(escape(f"{title}: what {whose} prefer{'s' if found.person is not None else ''}"))
    table.add_column("", justify="right")
    table.add_column("item", overflow="fold")
    for column in ("utility, 90 %", "place", "P(best)", "asked"):
        table.add_column(column, justify="right")
    for i, each in enumerate(found.ranking[:ROWS]):
        where = " to ".join(map(str, dict.fromkeys((each.place_low, each.place_high))))
        sure = share(each.best)
        level = " =" if each.told_apart is False else ""
        cells = [f"{each.utility:+.2f} ± {each.interval[1] - each.utility:.2f}", where, sure, f"{each.asked:,}"]
        table.add_row(str(i + 1), escape(called[each.item]) + level, *cells)
    screen.print(table)
    if len(found.ranking) > ROWS:
        screen.print(f"and {len(found.ranking) - ROWS:,} more: --json has all")
    if any(each.told_apart is False for each in found.ranking[:ROWS]):
        screen.print("= cannot be told from the next: which is better is less than 90 % sure")
    screen.print(f"\n{_verdict(found, called[found.favourite])}", markup=False, soft_wrap=True)
    people = "" if found.person is not None else f" of {count(found.people, 'person', 'people')}"
    screen.print(f"From {count(found.answers, 'answer')}{people}; model version {found.version}", markup=False)


def _verdict(found: Standings, favourite: str) -> str:
    """Return a sentence on how sure the ranking `found` is, and whether to stop asking; `favourite` is what its first
    is called."""
    if found.goal == "best":
        told = f"{favourite} is the best with {share(found.sure)} probability"
    else:
        told = f"{share(found.sure)} of all pairs are expected to be in the right order"
    return f"{told}: {'sure enough to stop' if found.stop else found.left.told}."
