"""The input for any form of feedback: one control for each field, chosen by the field's JSON schema.

A field that names one item is a radio button on each card, a field that names several a tick box, and a field with a
number for each item an input on each card. Fields about no item (choices, texts, numbers) are below the cards. So a
page can take kinds of feedback that it knows nothing about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.loop.interactions.fields import Field, fields_of
from heedful.loop.interactions.forms import Form
from heedful.studies.things import label

PREFIX = "field."
"""The beginning of the names of the controls in the HTML form."""


class Input(Field):
    """A field of feedback with the HTML control in which people fill it in."""

    @property
    def label(self) -> str:
        """its name as people read it"""
        return label(self.name).capitalize()

    @property
    def required(self) -> bool:
        """whether it may not be left empty"""
        return self.own or self.kind == "item"

    @property
    def on_cards(self) -> bool:
        """True if the control is on each card, not below the cards."""
        return self.kind in ("item", "items", "numbers", "texts")

    @property
    def input_name(self) -> str:
        """The name of the control in the HTML form."""
        return f"{PREFIX}{self.name}"

    def input_name_of(self, item: str) -> str:
        """Return the name of the control on the card of `item`."""
        return f"{self.input_name}:{item}"


class FieldsWidget(NamedTuple):
    """The controls with which a page takes feedback."""

    form: str
    """the name of the form whose fields are shown"""
    fields: tuple[Input, ...]
    """the fields of that form, each with its control"""
    buttons: tuple[tuple[str, str], ...]
    """(name of a form with a single value, label of its button)"""
    noun: str
    """what an answer is called: "rating\""""
    question: str
    """what a person is asked"""


def board(loop: Loop) -> FieldsWidget:
    """Return the controls with which the page of a loop takes feedback.

    The fields are those of the loop's first form of feedback with more than one possible value. Each form with only one
    possible value becomes a button."""
    interaction = loop.projection.interaction
    forms = list(interaction.forms.values())
    buttons = [form for form in forms if _constant(form) is not None]
    form = next(form for form in forms if form not in buttons)
    labels = tuple([(button.name, f"{button.hint[:1].upper()}{button.hint[1:]}") for button in buttons])
    question = interaction.fill(interaction.words.question)
    return FieldsWidget(form.name, inputs_of(form), labels, interaction.words.answer, question)


def inputs_of(form: Form) -> tuple[Input, ...]:
    """Return the fields of a form of feedback as controls: first the field of its own name, then the others."""
    return tuple([Input(*field) for field in fields_of(form)])


def _constant(form: Form) -> object:
    """Return the single value that a form of feedback can have; None if it can have several."""
    values = form.schema.get("enum", ())
    return values[0] if len(values) == 1 and not form.more_fields else None


# ---------------------------------------------------------------------------- what was posted


def parse(loop: Loop, names: Sequence[str], posted: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of a piece of feedback, {name: value}, from the HTML form `posted` for the cards `names`.

    Raise ValueError, naming the field, if one is missing or invalid."""
    kind, forms = posted.get("kind", ""), {form.name: form for form in loop.projection.interaction.forms.values()}
    if kind not in forms:
        raise ValueError(f"kind: expected {' or '.join(forms)}, got {describe(kind)}")
    if (constant := _constant(forms[kind])) is not None:
        return {kind: constant}
    fields = {field.name: _value(field, names, posted) for field in inputs_of(forms[kind])}
    if fields[kind] is None:
        raise ValueError(f"{kind}: expected an answer, got none")
    return {name: value for name, value in fields.items() if value is not None}


def items_of(loop: Loop, fields: Mapping[str, object]) -> list[str]:
    """Return the names of the items chosen in fields that take one item each; `fields` is what `parse` returned."""
    forms = loop.projection.interaction.forms.values()
    chosen = [field.name for form in forms if form.name in fields for field in fields_of(form) if field.kind == "item"]
    return [str(fields[name]) for name in chosen if name in fields]


def _value(field: Input, names: Sequence[str], posted: Mapping[str, str]) -> object:
    """Return the value of a field in the HTML form `posted` for the cards `names`; None if it was left empty."""
    if field.kind == "items":
        return [name for name in names if posted.get(field.input_name_of(name))] or None
    if field.on_cards and field.kind != "item":
        texts = {name: text for name in names if (text := posted.get(field.input_name_of(name), "").strip())}
        if field.kind == "texts":
            return texts or None
        return {name: _number(f"{field.name}[{describe(name)}]", text) for name, text in texts.items()} or None
    text = posted.get(field.input_name, "").strip()
    if not text:
        return None
    if field.kind == "tick":
        return True
    if field.kind == "number":
        return _number(field.name, text)
    if field.kind == "json":
        try:
            value: object = msgspec.json.decode(text)
            return value
        except (msgspec.MsgspecError, RecursionError):
            raise ValueError(f"{field.name}: expected JSON, got {describe(text)}") from None
    return text


def _number(name: str, text: str) -> float:
    """Return the number in `text`, as an int if it is whole. Raise ValueError, beginning with `name`, if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a number, got {describe(text)}")
    return int(value) if value == int(value) else value
