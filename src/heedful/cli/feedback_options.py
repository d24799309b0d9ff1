"""Options of `heedful feedback`: the fields of all forms of feedback, and the options that say what fields say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from heedful.loop.interactions.fields import all_forms, fields_of

FORMS = all_forms()
CALLED = {"actions": "did"}
"""Fields whose option is not called as they are."""
FIELDS = {CALLED.get(field.name, field.name): field for field in fields_of(*FORMS.values())}
"""The fields of all forms, by the names of their options."""


def options_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the options of `heedful feedback` that say the same as these fields of a piece of feedback."""
    options, of = list[str](), {field.name: (f"--{name}", field) for name, field in FIELDS.items()}
    for name, value in fields.items():
        option, field = of.get(name, ("", None))
        if field is not None and field.kind == "numbers":
            texts = [f"{item}={number:g}" for item, number in value.items()]
        elif field is not None and field.kind == "items":
            texts = [value] if isinstance(value, str) else list(value)
        elif field is not None and field.kind in ("item", "choice", "text") and isinstance(value, str):
            texts = [value]
        else:
            return ["--form", json.dumps(fields, ensure_ascii=False)]
        options += [word for text in texts for word in (option, text)]
    return options
