"""Declare features by hand instead of inferring them from rows, for values that a request gives for each candidate,
such as a search score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.core.validation import describe, is_number
from heedful.features.columns import Category, Column, Logarithm, Number, Vector, logarithm
from heedful.features.encoding import Encoding

_KINDS = {"number": ("range",), "logarithm": ("range",), "category": ("levels",), "vector": ("size", "scale")}


def declare(features: Mapping[str, object]) -> Encoding:
    """Return the encoding of features that are declared by hand: `features` maps the name of each to its declaration.

    A declaration is (low, high) for a number or a list of texts for a category. Or in full: {"kind": "number", "range":
    (0, 40)}, {"kind": "logarithm", "range": (0, 10000)}, {"kind": "category", "levels": ["web", "app"]}, {"kind":
    "vector", "size": 8, "scale": 1}. With "optional": true the value may be missing, and one more feature says whether
    it is. The range of a number is that of usual values, and is mapped to -1..1; values outside are allowed, and mapped
    to numbers outside. Of a logarithm both are mapped so, the number and its logarithm. Raise ValueError, naming the
    feature, for any other declaration.
    """
    if not isinstance(features, Mapping) or not features:
        raise ValueError(f"query_features: expected what each is, by name, got {describe(features)}")
    return Encoding(
        columns=tuple([_column(name, declaration) for name, declaration in features.items()]), identifier=""
    )


def _column(name: object, declaration: object) -> Column:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"query_features: expected printable texts as names, got {describe(name)}")
    where = f"query_features: {name}"
    if isinstance(declaration, list | tuple):
        texts = bool(declaration) and all(isinstance(level, str) for level in declaration)
        declaration = {"kind": "category", "levels": declaration} if texts else {"kind": "number", "range": declaration}
    if not isinstance(declaration, Mapping) or declaration.get("kind") not in _KINDS:
        expected = f"expected (low, high), a list of texts, or an object with kind {', '.join(_KINDS)}"
        raise ValueError(f"{where}: {expected}, got {describe(declaration)}")
    kind, optional = declaration["kind"], declaration.get("optional", False)
    if extra := [key for key in declaration if key not in ("kind", "optional", *_KINDS[kind])]:
        expected = f"expected {', '.join(_KINDS[kind])} or optional of a {kind}"
        raise ValueError(f"{where}: {expected}, got another field: {describe(extra[0])}")
    if not isinstance(optional, bool):
        raise ValueError(f"{where}: optional: expected true or false, got {describe(optional)}")
    common: dict[str, Any] = {"name": name, "missing": int(optional), "why": "declared"}
    try:
        return _make_column(kind, declaration, common)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _make_column(kind: str, declaration: Mapping[str, object], common: dict[str, Any]) -> Column:
    if kind in ("number", "logarithm"):
        low, high = _range(declaration.get("range"))
        common |= {"mean": low / 2 + high / 2, "scale": high / 2 - low / 2, "example": f"{low:g} to {high:g}"}
        if kind == "number":
            return Number(**common)
        low, high = logarithm(low), logarithm(high)
        return Logarithm(log_mean=low / 2 + high / 2, log_scale=high / 2 - low / 2, **common)
    if kind == "category":
        levels = declaration.get("levels")
        if not isinstance(levels, list | tuple) or not levels or not all(isinstance(level, str) for level in levels):
            raise ValueError(f"levels: expected a list of texts, got {describe(levels)}")
        return Category(levels=tuple(levels), example=levels[0], **common)
    size, scale = declaration.get("size"), declaration.get("scale", 1.0)
    if not is_number(size, int):
        raise ValueError(f"size: expected a whole number, got {describe(size)}")
    if not is_number(scale, int, float):
        raise ValueError(f"scale: expected a number, got {describe(scale)}")
    return Vector(size=int(size or 0), scale=float(scale), example=f"{size} numbers", **common)


def _range(bounds: object) -> tuple[float, float]:
    if isinstance(bounds, list | tuple) and len(bounds) == 2 and all(is_number(bound, int, float) for bound in bounds):
        low, high = float(bounds[0]), float(bounds[1])
        if -1e100 <= low < high <= 1e100:
            return low, high
    raise ValueError(f"range: expected two numbers, the second the greater, got {describe(bounds)}")
