"""Records of programs that are tables once they are unpacked, each recognised by its fields: logs of Vowpal Wabbit and
Personalizer, and the feedback of Open WebUI."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from heedful.core.validation import describe
from heedful.data.files import cut_list
from heedful.data.json_records import Located
from heedful.data.table import Table, table_of


def unpack(table: Table) -> Table:
    """Return a table of a known form with the columns that its doors know by their names; any other one unchanged.

    Raise ValueError, with the place, for a record of a known form in which something is missing."""
    for fields, read in _FORMS:
        if set(fields) <= set(table.header):
            rows = list(read(table))
            if rows:
                return table_of(rows, table.name)
    return table


def _logged(table: Table) -> Iterator[Located]:
    """Yield the impressions in a log of Vowpal Wabbit (dsjson): what was shown, its probability, its cost below 0."""
    for where, row in table.located():
        context = _object(row.get("c"))
        choices = context.get("_multi") or []
        cost, shown = row.get("_label_cost"), row.get("_label_Action")
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not isinstance(shown, int):
            raise ValueError(f"{where}: _label_cost, _label_Action: expected numbers, got {describe((cost, shown))}")
        names = [_joined(_flat(choice, leaf=True)) for choice in choices]
        apart = len(set(names)) == len(names) >= shown > 0 and all(0 < len(name) <= 60 for name in names)
        rest = _flat({name: value for name, value in context.items() if name != "_multi"})
        marks = {"id": row.get("EventId"), "time": row.get("Timestamp")}
        shown_action = {
            "action": names[shown - 1] if apart else str(shown),
            "probability": row.get("_label_probability"),
        }
        yield where, {**rest, **shown_action, "reward": 0.0 - cost, **{k: v for k, v in marks.items() if v is not None}}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _flat(value: Mapping[str, Any], before: str = "", *, leaf: bool = False) -> dict[str, Any]:
    """Return the values in nested objects by their path, or with `leaf` by their last name alone."""
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        path = name if leaf or not before else f"{before}.{name}"
        flat |= _flat(inner, path, leaf=leaf) if isinstance(inner, Mapping) else {path: inner}
    return flat


def _joined(values: Mapping[str, Any]) -> str:
    return str(next(iter(values.values()))) if len(values) == 1 else cut_list([f"{k}={v}" for k, v in values.items()])


def _thumbs(table: Table) -> Iterator[Located]:
    """Yield the votes in feedback of Open WebUI: a thumb is for, or against, a model compared to each one beside it."""
    for where, row in table.located():
        data = _object(row.get("data"))
        rating, model, others = (data.get(name) for name in ("rating", "model_id", "sibling_model_ids"))
        if row.get("type") != "rating" or str(rating) not in ("1", "-1") or not isinstance(others, list):
            continue
        for other in others:
            marks = {name: row[name] for name in ("id", "updated_at") if name in row}
            if len(others) > 1:
                marks["id"] = f"{row.get('id')} {other}"
            winner = "model_a" if str(rating) == "1" else "model_b"
            yield where, marks | {"person": row.get("user_id"), "model_a": model, "model_b": other, "winner": winner}


_FORMS: tuple[tuple[tuple[str, ...], Callable[[Table], Iterator[Located]]], ...] = (
    (("_label_cost", "_label_probability", "_label_Action"), _logged),
    (("type", "data", "meta", "user_id"), _thumbs),
)
"""The fields by which a form is recognised, and what reads its records."""
