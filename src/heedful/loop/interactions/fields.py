"""The fields of feedback as people and programs fill them in: inputs of a page, options of a command, arguments of a
tool. All of it is read off the JSON schemas that forms declare, so that nobody else lists forms."""

from __future__ import annotations

from typing import NamedTuple

from heedful.loop.interactions.forms import FORMS, ITEM, Form, Json
from heedful.loop.interactions.registry import interactions
from heedful.loop.records import encode


class Field(NamedTuple):
    """A field of one form of feedback, or of several."""

    name: str
    """its name in the JSON of the feedback"""
    schema: Json
    hint: str
    """what it says, in one line"""
    forms: tuple[str, ...]
    """the names of the forms that it belongs to"""

    @property
    def own(self) -> bool:
        """whether it alone makes a form; otherwise it stands beside such a field"""
        return self.name in self.forms

    @property
    def kind(self) -> str:
        """what is filled in: item, items, numbers or texts (one for each of several items), choice (one of `options`),
        tick (true, or nothing), number, text, or json for all else

        Of alternatives (anyOf) it is the first that is not json."""
        kinds = (_kind(schema) for schema in self.schema.get("anyOf", (self.schema,)))
        return next((kind for kind in kinds if kind != "json"), "json")

    @property
    def options(self) -> tuple[str, ...]:
        """the possible values of a choice"""
        return tuple([value if isinstance(value, str) else encode(value) for value in self.schema.get("enum", ())])

    @property
    def takes_object(self) -> bool:
        """whether an object may stand in place of its text"""
        return self.kind == "text" and any(schema.get("type") == "object" for schema in self.schema.get("anyOf", ()))


def fields_of(*forms: Form) -> list[Field]:
    """Return the fields of `forms`: of each that of its own name, then those that may stand beside it; each once."""
    found: dict[str, Field] = {}
    for form in forms:
        for name, schema in {form.name: form.schema, **form.more_fields}.items():
            hint = form.hint if name == form.name else _hint(schema)
            before = found.get(name, Field(name, schema, hint, ()))
            found[name] = before._replace(forms=(*before.forms, form.name))
    return list(found.values())


def all_forms() -> dict[str, Form]:
    """Return the forms of feedback that come with heedful, by name: those of `FORMS`, and what kinds bring besides."""
    found = dict(FORMS)
    for kind in interactions().values():
        for name, form in kind.forms.items():
            found.setdefault(name, form)
    return found


def _hint(schema: Json) -> str:
    return "the item that it is about" if schema is ITEM else str(schema.get("description", "goes with it"))


def _kind(schema: Json) -> str:
    if schema is ITEM:
        return "item"
    if "enum" in schema:
        return "tick" if schema["enum"] == [True] else "choice"
    kind = schema.get("type")
    if kind == "array" and schema.get("items") is ITEM:
        return "items"
    if kind == "object" and (inner := schema.get("additionalProperties")):
        return "numbers" if inner.get("type") in ("number", "integer") else "texts"
    return {"boolean": "tick", "number": "number", "integer": "number", "string": "text"}.get(str(kind), "json")
