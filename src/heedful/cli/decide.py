"""`heedful decide`: ask a loop what to show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import (
    Json,
    Name,
    Own,
    open_loop,
    read_json,
    read_text,
    shorten,
)
from heedful.cli.console import BadInput, console, new_table, note, print_json, say
from heedful.core.formatting import short

if TYPE_CHECKING:
    from heedful.loop import Loop
    from heedful.results.answers import Decision

ROWS = 50
"""The most rows of a printed table; --json has all."""
ATTRIBUTES = 4
"""The most attributes of an item in a printed table."""


def decide(
    name: Name,
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM]...", help="The items to decide among, by name.", show_default="all"),
    ] = None,
    person: Annotated[str | None, typer.Option(help="The person whom the decision is for.")] = None,
    context: Annotated[
        str | None, typer.Option(metavar="JSON", help="What is known of the request, as an object.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Your own scores: {item: number}, or a list in the order of the items."),
    ] = None,
    show: Annotated[
        int | None,
        typer.Option(min=1, help="How many items to show.", show_default="all, or as many as the loop shows"),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            help="The id of the decision; if it is sent again, the same decision comes back.", show_default="new"
        ),
    ] = None,
    deferred: Annotated[
        bool, typer.Option("--deferred", help="The decision counts as shown only once it is activated.")
    ] = False,
    repeats: Annotated[
        bool | None,
        typer.Option(
            "--repeats/--no-repeats",
            help="Also show items that the person has answered, in a loop that leaves them out.",
            show_default="as the loop says",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A JSON list of objects to decide among, in place of ITEMs; - for stdin."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="DECISION", help="Make the next page of this decision: leave out what it showed."),
    ] = None,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The output has the decision's id, by which `heedful feedback` tells the loop what the person answered, and the
    probability of showing just this.

    Exit codes: 0 decided; 1 the loop cannot be read or written; 2 bad input, such as an item that is not on offer.
    """
    if candidates is not None and items:
        raise BadInput("--candidates: expected no ITEM with it, got one")
    offered: Any = items or None
    if candidates is not None:
        offered = read_json("--candidates", read_text("--candidates", candidates))
        if (
            not isinstance(offered, list)
            or not all(isinstance(candidate, dict) for candidate in offered)
            or not offered
        ):
            raise BadInput(f"--candidates: expected a list of objects, got {shorten(repr(offered))}")
    around, scores = read_json("--context", context), read_json("--prior", prior)
    with open_loop(name, own_learners) as loop:
        from heedful.loop.strangers import NotOnOffer

        is_repeated = id is not None and loop.projection.find_decision(id) is not None
        if around is None and not is_repeated and (needed := loop.projection.interaction.example_request()):
            kind = loop.projection.interaction.words.loop
            raise BadInput(f"--context: expected one in {kind}, such as {shlex.join(needed)}, got none")
        try:
            decision = loop.decide(
                offered,
                person=person,
                context=around,
                prior=scores,
                show=show,
                id=id,
                deferred=deferred,
                repeats=repeats,
                strict=True,  # a user who mistypes a name gets an error
                after=after,
            )
        except NotOnOffer as error:
            raise BadInput(f"{error}: {shlex.join(['heedful', 'import', name, '--features', 'FILE'])}") from error
        if is_repeated and not json:  # a program that sends an id again means to
            note(f"{shorten(id)} was decided before, and comes back as it was then; a new decision takes another --id")
        if json:
            print_json(decision.plain() | {"shown": list(decision.shown)})
        else:
            _show(loop, name, decision)


def _show(loop: Loop, name: str, decision: Decision) -> None:
    from rich.markup import escape

    from heedful.cli.feedback_options import options_of
    from heedful.loop.undeclared import describe_undeclared

    shown = decision.shown[:ROWS]
    rows = _attributes(loop, decision, len(shown))
    columns = [column.name for column in loop.manifest.encoding.columns if column.kind != "ignored"]
    if not loop.manifest.encoding.size:  # no column is a feature
        columns = list(dict.fromkeys(name for row in rows for name in row))
    identifier = loop.manifest.encoding.identifier  # the column of items has it
    columns = [
        column for column in columns if column != identifier and any(row.get(column) is not None for row in rows)
    ]
    columns = columns[:ATTRIBUTES]
    table = new_table(escape(f"{loop.path}: what to show"))
    table.add_column("", justify="right")
    predicted, words = decision.predicted, loop.projection.interaction.words
    if predicted is not None:
        table.add_column(words.prediction or "predicted", justify="right")
    for title in ("item", *columns):
        table.add_column(escape(title), overflow="fold")
    for i, (item, row) in enumerate(zip(shown, rows)):
        cells = ["" if row.get(column) is None else shorten(row[column], 40) for column in columns]
        predictions = [] if predicted is None else ["" if (value := predicted[i]) is None else short(value)]
        table.add_row(str(i + 1), *predictions, escape(item), *map(escape, cells))
    screen = console()
    screen.print(table)
    if len(decision.shown) > ROWS:
        screen.print(f"and {len(decision.shown) - ROWS:,} more: --show N for fewer, --json for all")
    chance = "unknown" if decision.probability is None else short(decision.probability)
    say(f"decision {decision.id}")
    screen.print(f"probability of just this {chance}; arm {decision.arm}; model version {decision.version}")
    if decision.sure is not None:
        than = shown[1] if len(shown) > 1 else "any other"
        say(f"{shown[0]} is better than {than} with probability {decision.sure:.2f}, by what was learned")
    if predicted is not None:
        from heedful.loop.interactions.telling import unordered

        if why := unordered(
            words,
            decision.arm,
            [v if v is None else float(short(v).replace(",", "")) for v in predicted],
        ):
            say(why)
    if decision.unknown:
        say(f"not on offer then, so in the place of your score, or last: {', '.join(decision.unknown)}")
    if decision.undeclared:
        say(describe_undeclared(decision.undeclared, loop.projection.interaction.by_number))
    if not decision.shown:
        return
    action, fields = loop.projection.interaction.example(loop.projection.model, decision.shown)
    command = shlex.join(["heedful", "feedback", name, decision.id, *options_of(fields)])
    say(f"\nNext, where somebody {action}: {command}")


def _attributes(loop: Loop, decision: Decision, n: int) -> list[Mapping[str, Any]]:
    """Return the attributes that the loop stores of the first n items in a decision; {} for an item without any."""
    import msgspec

    from heedful.loop.strangers import around

    logged = loop.projection.find_decision(decision.id)
    if logged is None:
        return [{}] * n
    record = logged.record
    if record.attributes:
        return [record.attributes[j] for j in record.shown[:n]]
    if not record.items:
        return [{}] * n
    versions: list[int] = around([record.items[j] for j in record.shown], record, lambda _: 0)[:n]
    attributes = {event.seq: msgspec.json.decode(event.payload) for event in loop.projection.log.many(versions)}
    return [attributes.get(version, {}) for version in versions]
