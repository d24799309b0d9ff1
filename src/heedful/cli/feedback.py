"""`heedful feedback`: tell a loop what the person answered. Its options are the fields of all forms of feedback."""

from __future__ import annotations

from contextlib import suppress
from inspect import Parameter
from typing import Annotated, Any, Optional

import typer

from heedful.cli.answers import print_answers
from heedful.cli.common import DecisionId, Json, Name, Own, grouped, numbers, open_loop, read_json, shorten
from heedful.cli.console import BadInput
from heedful.cli.feedback_options import FIELDS, FORMS
from heedful.cli.signature import add_parameters, option
from heedful.loop.interactions.fields import Field
from heedful.loop.interactions.forms import in_taken_form, known_forms, parse_feedback

UNSAID: tuple[Any, ...] = (None, False, ())
"""The values of options that were not given."""
REPEATED = {"items": "ITEM", "numbers": "ITEM=NUMBER", "texts": "ITEM=TEXT"}
"""The kinds of fields whose option may be repeated, with what stands for its value in the help."""


def feedback(
    name: Name,
    decision: DecisionId,
    form: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Feedback of any form, as the JSON object that HTTP takes."),
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
    **given: Any,
) -> None:
    """The answer has one form: clicks, a better order, a grade, ... Which forms a loop takes depends on what it learns
    from; if it does not take one, it says which it does. Items are named one by one, `--clicks a --clicks b`: a comma
    is part of the name. A JSON object after --edit is taken for changed attributes, anything else for the corrected
    text.

    Exit codes: 0 applied, or a duplicate that changed nothing; 1 the loop cannot be read or written; 2 bad input; 3
    rejected, with the reason.
    """
    read = {
        field.name: _read(field, f"--{name}", given[name])
        for name, field in FIELDS.items()
        if given[name] not in UNSAID
    }
    fields = read | _fields(form)
    if not fields and not activate:
        *most, last = [f"--{name}" for name, field in FIELDS.items() if field.own] + ["--form"]
        raise BadInput(f"feedback: expected {', '.join(most)} or {last}, got none of them")
    with open_loop(name, own_learners) as loop:
        if fields:
            interaction = loop.projection.interaction
            taken = in_taken_form(fields, interaction.forms)
            parse_feedback(taken, known_forms(interaction))  # before --activate writes anything
        answers = [loop.activate(decision)] if activate else []
        if fields and not (answers and answers[0].status == "rejected"):
            answers.append(loop.feedback(decision, id=id, **fields))
        named = [item for field in FIELDS.values() if field.kind == "items" for item in read.get(field.name, ())]
        print_answers(answers, json, named)


def _read(field: Field, option: str, given: Any) -> Any:
    """Return the value of a field from what was `given` to its option, texts or a flag."""
    if field.kind == "numbers":
        return numbers(option, REPEATED["numbers"], given)
    if field.kind == "texts":
        such = "=".join(next(iter(FORMS[field.name].example.items())))
        return grouped(option, f"{REPEATED['texts']}, such as {such}", given)
    if field.takes_object and given.lstrip().startswith("{"):
        with suppress(BadInput):  # it is a text that begins so
            return read_json(option, given)
    if field.kind in ("number", "json"):
        return read_json(option, given)
    if field.kind == "text" and not given.strip():
        raise BadInput(f"{option}: expected a text, got nothing")
    return given


def _fields(form: str | None) -> dict[str, Any]:
    """Return the fields of the JSON object after --form; {} if it is not given. Raise BadInput if it is no object."""
    fields = read_json("--form", form)
    if form is not None and not isinstance(fields, dict):
        raise BadInput(f'--form: expected an object, such as {{"clicks": ["a"]}}, got {shorten(form)}')
    return fields or {}


def _option(name: str, field: Field) -> Parameter:
    """Return the option of `heedful feedback` for a field of feedback."""
    repeated = field.kind in REPEATED
    with_ = "" if field.own else f"with {', '.join(f'--{form}' for form in field.forms)}: "
    help = f"{with_}{field.hint}{'; may be repeated' if repeated else ''}."
    help = help[0].upper() + help[1:]
    if field.kind == "tick":
        return option(name, bool, False, help)
    standing = "|".join(field.options) or field.schema.get("title", REPEATED.get(field.kind, field.kind)).upper()
    return option(name, Optional[list[str] if repeated else str], None, help, metavar=standing)  # noqa: UP045


add_parameters(feedback, [_option(name, field) for name, field in FIELDS.items()], before="form", names={})
