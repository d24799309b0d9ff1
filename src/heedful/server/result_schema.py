"""The JSON schema of results: msgspec structs made from the named tuples of `heedful.results`.

What a class says of itself is the description of its schema, and the text below a field that of the field."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from textwrap import dedent
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from heedful.results.answers import Answer, Finite


@cache
def schema_of(result: type) -> type[msgspec.Struct]:
    """Return a struct with the fields of `result`, a named tuple, as `heedful.results.answers.plain` writes them.

    A field that is None by default may be left out, but for those of an `Answer`, which is always written whole."""
    hints, defaults, fields = get_type_hints(result, include_extras=True), result._field_defaults, []  # type: ignore[attr-defined]
    texts = _texts(result)
    for name, hint in hints.items():
        kind, optional = json_type(hint), name in defaults and defaults[name] is None and result is not Answer
        if optional:
            kind = reduce(or_, [part for part in get_args(kind) if part is not NoneType]) | UnsetType
        described: Any = Annotated[kind, Meta(description=texts[name])]
        fields.append((name, described, UNSET) if optional else (name, described))
    made = msgspec.defstruct(result.__name__, fields, kw_only=True, module=result.__module__)
    made.__doc__ = inspect.getdoc(result)
    return made


def _texts(result: type) -> dict[str, str]:
    """Return the text below each field, in one line."""
    named: Any = ast.parse(dedent(inspect.getsource(result))).body[0]
    texts = {}
    for field, text in zip(named.body, named.body[1:]):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return texts


def json_type(hint: Any) -> Any:
    """Return the type that JSON has in place of the type of a field."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Finite:
        return float | None
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return schema_of(hint)
    if origin is tuple and parts[1:] == (...,):
        return list[json_type(parts[0])]  # type: ignore[misc]
    if origin is tuple:  # so many of one type
        return Annotated[list[parts[0]], Meta(min_length=len(parts), max_length=len(parts))]  # type: ignore[valid-type]
    if origin in (Union, UnionType):
        return reduce(or_, [json_type(part) for part in parts])
    if origin is list:
        return list[json_type(parts[0])]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[parts[0], json_type(parts[1])]  # type: ignore[misc, valid-type]
    return hint
