"""`heedful decide` and `heedful feedback`: ask a loop what to show, and tell it what the person answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.answers import print_answers
from heedful.cli.common import (
    Json,
    Name,
    Own,
    numbers,
    open_loop,
    read_json,
    read_text,
    shell_quote,
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
            raise BadInput(f"--context: expected one in {kind}, such as {shell_quote(needed)}, got none")
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
            raise BadInput(f"{error}: {shell_quote(['heedful', 'import', name, '--features', 'FILE'])}") from error
        if is_repeated and not json:  # a program that sends an id again means to
            note(f"{shorten(id)} was decided before, and comes back as it was then; a new decision takes another --id")
        if json:
            print_json(decision.plain() | {"shown": list(decision.shown)})
        else:
            _show(loop, name, decision)


def _show(loop: Loop, name: str, decision: Decision) -> None:
    from rich.markup import escape

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
    command = shell_quote(["heedful", "feedback", name, decision.id, *_options(fields)])
    say(f"\nNext, where somebody {action}: {command}")


def _options(fields: Mapping[str, Any]) -> list[str]:
    """Return the options of `heedful feedback` that say the same as these fields of a piece of feedback."""
    import json

    if not fields.keys() <= _OPTIONS:
        return ["--form", json.dumps(fields, ensure_ascii=False)]
    options = []
    for name, value in fields.items():
        if isinstance(value, Mapping):
            texts = [f"{item}={number:g}" for item, number in value.items()]
        else:
            texts = [value] if isinstance(value, str) else list(value)
        options += [word for text in texts for word in (f"--{name}", text)]
    return options


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


# ---------------------------------------------------------------------------- feedback

Many = list[str] | None
_THUMBS, _CHOICES = ("up", "down"), ("first", "second", "equal", "both_bad", "cannot_judge")
_OPTIONS = {"clicks", "better", "edit", "thumb", "action", "item", "rating", "grade", "choice"}
"""The fields of feedback whose option takes the same value."""


def feedback(
    name: Name,
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="The id that `heedful decide` gave.")],
    clicks: Annotated[
        Many, typer.Option(metavar="ITEM", help="An item that was clicked; repeat it, in the order of the clicks.")
    ] = None,
    better: Annotated[
        Many, typer.Option(metavar="ITEM", help="An item that is better than what was shown; repeat it, best first.")
    ] = None,
    edit: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The corrected text, or the changed attributes as a JSON object.")
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="With --edit: take the candidate that is nearest to it.")
    ] = False,
    thumb: Annotated[
        str | None, typer.Option(metavar="up|down", help="A thumb on what was shown, or on an --item.")
    ] = None,
    action: Annotated[str | None, typer.Option(metavar="NAME", help="What was done with an --item: buy.")] = None,
    item: Annotated[str | None, typer.Option(help="The item that --thumb, --action or --edit is about.")] = None,
    did: Annotated[
        Many, typer.Option(metavar="ITEM=ACTION", help="What was done with an item, one of several; repeat it.")
    ] = None,
    rating: Annotated[Many, typer.Option(metavar="ITEM=NUMBER", help="How good an item is; repeat it.")] = None,
    grade: Annotated[Many, typer.Option(metavar="ITEM=NUMBER", help="How relevant an item is; repeat it.")] = None,
    choice: Annotated[
        str | None,
        typer.Option(
            metavar="first|second|equal|both_bad|cannot_judge", help="The choice between the first two items shown."
        ),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Nothing was clicked or chosen.")] = False,
    form: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Feedback of any form, as the JSON object that HTTP takes."),
    ] = None,
    chain: Annotated[
        Many, typer.Option(metavar="DECISION", help="With --clicks: a later decision of the same search; repeat it.")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            help="The id of this event; sent again with it, it counts once; without, each call is new.",
            show_default="new",
        ),
    ] = None,
    activate: Annotated[
        bool, typer.Option("--activate", help="First log that the deferred decision was shown.")
    ] = False,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The answer has one form: clicks, a better order, a grade, ... Which forms a loop takes depends on what it learns
    from; if it does not take one, it says which it does. Items are named one by one, `--clicks a --clicks b`: a comma
    is part of the name. A JSON object after --edit is taken for changed attributes, anything else for the corrected
    text.

    Exit codes: 0 applied, or a duplicate that changed nothing; 1 the loop cannot be read or written; 2 bad input; 3
    rejected, with the reason.
    """
    forms: dict[str, Any] = {
        "clicks": clicks or None,
        "better": better or None,
        "edit": None if edit is None else _read_edit(edit),
        "nearest": nearest or None,
        "thumb": _one_of("--thumb", _THUMBS, thumb),
        "action": action,
        "item": item,
        "actions": _actions(did) if did else None,
        "rating": numbers("--rating", "ITEM=NUMBER", rating) if rating else None,
        "grade": numbers("--grade", "ITEM=NUMBER", grade) if grade else None,
        "choice": _one_of("--choice", _CHOICES, choice),
        "none": none or None,
        "chain": chain or None,
    }
    fields = {field: value for field, value in forms.items() if value is not None} | _fields(form)
    if not fields and not activate:
        expected = "--clicks, --better, --edit, --thumb, --action, --did, --rating, --grade, --choice, --none or --form"
        raise BadInput(f"feedback: expected {expected}, got none of them")
    with open_loop(name, own_learners) as loop:
        if fields:
            from heedful.loop.interactions.forms import in_taken_form, known_forms, parse_feedback

            interaction = loop.projection.interaction
            parse_feedback(
                in_taken_form(fields, interaction.forms), known_forms(interaction)
            )  # before --activate writes anything
        answers = [loop.activate(decision)] if activate else []
        if fields and not (answers and answers[0].status == "rejected"):
            answers.append(loop.feedback(decision, id=id, **fields))
        print_answers(answers, json, [*(clicks or ()), *(better or ())])


def _fields(form: str | None) -> dict[str, Any]:
    """Return the fields of the JSON object after --form; {} if it is not given. Raise BadInput if it is no object."""
    fields = read_json("--form", form)
    if form is not None and not isinstance(fields, dict):
        raise BadInput(f'--form: expected an object, such as {{"clicks": ["a"]}}, got {shorten(form)}')
    return fields or {}


def _actions(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return `texts`, ITEM=ACTION each, as {item: actions}."""
    actions: dict[str, list[str]] = {}
    for text in texts:
        item, equals, action = text.rpartition("=")
        if not (equals and item and action):
            raise BadInput(f"--did: expected ITEM=ACTION, such as a=buy, got {text!r}")
        actions.setdefault(item, []).append(action)
    return actions


def _one_of(option: str, expected: Sequence[str], value: str | None) -> str | None:
    if value is not None and value not in expected:
        raise BadInput(f"{option}: expected {', '.join(expected[:-1])} or {expected[-1]}, got {value!r}")
    return value


def _read_edit(text: str) -> Any:
    """Return the value after --edit: a JSON object (changed attributes) or the text; raise BadInput if it is blank."""
    if not text.strip():
        raise BadInput("--edit: expected the corrected text, got nothing")
    if text.lstrip().startswith("{"):
        try:
            return read_json("--edit", text)
        except BadInput:
            return text
    return text
