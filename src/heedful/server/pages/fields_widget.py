"""The widget for any form of feedback: a plain field for each that the form declares, on the cards or below them.

A field that names an item is a radio button on each card, one that names several a tick box, a number for each item an
input on each card. What is about no item stands below: choices, texts, numbers. So a page takes feedback of a kind that
it knows nothing of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.loop.interactions.forms import ITEM, Form
from heedful.server.pages.feature_phrases import label

PREFIX = "field."
"""How the names of a form's own fields begin, in what a browser posts."""


class Field(NamedTuple):
    """One field of a form, as a page has it."""

    name: str
    label: str
    kind: str
    """on each card: item, items, numbers, texts; below them: choice, tick, number, text, json"""
    options: tuple[str, ...] = ()
    """of a choice"""
    required: bool = True

    @property
    def on_cards(self) -> bool:
        """Whether it stands on each card."""
        return self.kind in ("item", "items", "numbers", "texts")

    @property
    def input_name(self) -> str:
        """The name that a browser posts it by."""
        return f"{PREFIX}{self.name}"

    def input_name_of(self, item: str) -> str:
        """The same of one card."""
        return f"{self.input_name}:{item}"


class Board(NamedTuple):
    """What a page takes: the fields of one form, and forms that are a single button."""

    form: str
    fields: tuple[Field, ...]
    buttons: tuple[tuple[str, str], ...]
    """(name of a form, what its button says)"""
    noun: str
    question: str


def board(loop: Loop) -> Board:
    """The fields of the first form that is not a single button, and the buttons."""
    card = loop.projection.interaction.describe()
    buttons = [form for form in card.forms if _constant(form) is not None]
    form = next(form for form in card.forms if form not in buttons)
    pressed = tuple([(each.name, f"{each.hint[:1].upper()}{each.hint[1:]}") for each in buttons])
    return Board(form.name, fields_of(form), pressed, card.answer, card.question)


def fields_of(form: Form) -> tuple[Field, ...]:
    """The fields that a form declares."""
    return (
        _field(form.name, form.schema, True),
        *[_field(name, schema, schema is ITEM) for name, schema in form.beside.items()],
    )


def _field(name: str, schema: Mapping[str, Any], required: bool) -> Field:
    called = label(name).capitalize()
    for one in schema.get("anyOf", (schema,)):  # the first that a page can take
        kind, options = _kind(one)
        if kind != "json":
            return Field(name, called, kind, options, required)
    return Field(name, called, "json", (), required)


def _kind(schema: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    if schema is ITEM:
        return "item", ()
    if "enum" in schema:
        return "choice", tuple([each if isinstance(each, str) else _json(each) for each in schema["enum"]])
    kind = schema.get("type")
    if kind == "array" and schema.get("items") is ITEM:
        return "items", ()
    if kind == "object" and (inner := schema.get("additionalProperties")):
        return ("numbers" if inner.get("type") in ("number", "integer") else "texts"), ()
    return {"boolean": "tick", "number": "number", "integer": "number", "string": "text"}.get(str(kind), "json"), ()


def _constant(form: Form) -> Any:
    """The one value that a form may have; None where there are several."""
    values = form.schema.get("enum", ())
    return values[0] if len(values) == 1 and not form.beside else None


# ---------------------------------------------------------------------------- what was posted


def parse(loop: Loop, names: Sequence[str], given: Mapping[str, str]) -> dict[str, Any]:
    """Feedback as a form says it of these cards. ValueError, by name, where it says nothing."""
    kind, forms = given.get("kind", ""), {form.name: form for form in loop.projection.interaction.describe().forms}
    if kind not in forms:
        raise ValueError(f"kind: expected {' or '.join(forms)}, got {describe(kind)}")
    if (constant := _constant(forms[kind])) is not None:
        return {kind: constant}
    found = {field.name: _value(field, names, given) for field in fields_of(forms[kind])}
    if found[kind] is None:
        raise ValueError(f"{kind}: expected an answer, got none")
    return {name: value for name, value in found.items() if value is not None}


def _value(field: Field, names: Sequence[str], given: Mapping[str, str]) -> Any:
    """The value of a field; None where nothing was said."""
    if field.kind == "items":
        return [name for name in names if given.get(field.input_name_of(name))] or None
    if field.on_cards and field.kind != "item":
        texts = {name: text for name in names if (text := given.get(field.input_name_of(name), "").strip())}
        if field.kind == "texts":
            return texts or None
        return {name: _number(f"{field.name}[{describe(name)}]", text) for name, text in texts.items()} or None
    text = given.get(field.input_name, "").strip()
    if not text:
        return None
    if field.kind == "tick":
        return True
    if field.kind == "number":
        return _number(field.name, text)
    if field.kind == "json":
        try:
            return msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            raise ValueError(f"{field.name}: expected JSON, got {describe(text)}") from None
    return text


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a number, got {describe(text)}")
    return int(value) if value == int(value) else value


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
