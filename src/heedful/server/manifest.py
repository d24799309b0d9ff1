"""Creating a loop: over HTTP, with the same choices as `heedful init` on a table of items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.storage import Closed, Damaged, Place

if TYPE_CHECKING:
    from heedful.features import Encoding
    from heedful.loop.interactions.protocol import Interaction
    from heedful.loop.settings import Settings


def create_loop(body: Mapping[str, Any], folder: Place) -> Loop:
    """Create a loop in `folder` from the JSON fields `body` of a request: learner, items, encodings and settings.

    Raise ValueError, naming the field, if one makes no sense."""
    from heedful.features import infer
    from heedful.loop.interactions.registry import interaction_type
    from heedful.loop.settings import Settings

    rows = _rows("items", body.get("items"))
    requests = _rows("context", body.get("context"))
    settings = _object("settings", body.get("settings"))
    if strange := settings.keys() - set(Settings.__struct_fields__):
        expected = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: expected {expected}, got {describe(min(strange))}")
    kinds = _kinds_of_columns(body.get("kinds"))
    learner, crosses, features = body.get("learner"), body.get("crosses"), body.get("features")
    if crosses is not None and crosses != "all" and not isinstance(crosses, list):
        raise ValueError(f'crosses: expected "all" or a list of pairs of columns, got {describe(crosses)}')
    identifier = body.get("identifier")
    if identifier is not None and (not isinstance(identifier, str) or not identifier):
        raise ValueError(f"identifier: expected the attribute that names the items, got {describe(identifier)}")
    with naming("context"):
        keep = [context for context, _ in _pairs(crosses)]
        context = infer(requests, identifier="", keep=keep) if requests else None
    loop_settings = Settings(**settings)
    if features is not None and not isinstance(features, bool):
        raise ValueError(f"features: expected true or false, got {describe(features)}")
    kind = interaction_type(learner, loop_settings)
    _check_columns(kind, features, kinds)
    if kind.arrange is not None:
        for field, value in (("crosses", crosses), ("kinds", kinds)):
            if value:
                expected = f"expected none in {kind.words.loop}, which encodes columns itself"
                raise ValueError(f"{field}: {expected}, got some")
    with naming("items"):
        return encode_loop(
            folder, rows or None, learner, loop_settings, identifier=identifier, kinds=kinds, features=features,
            context=context, crosses=crosses or (), query_features=body.get("query_features"),
        )  # fmt: skip


def encode_loop(
    folder: Place,
    rows: Sequence[Mapping[str, Any]] | None,
    learner: str | None,
    settings: Settings,
    *,
    identifier: str | None,
    kinds: Mapping[str, str],
    features: bool | None,
    context: Encoding | None,
    crosses: Any,
    query_features: Any,
) -> Loop:
    """Create a loop in `folder`, with that encoding of its items, `rows` (None: of texts), which its kind needs.

    `identifier` is the column of names, None to find it, `kinds` are those of columns. Without `features` a kind that
    can do without has items by their names alone. `crosses` are "all" or pairs of columns. `query_features` declares
    what a request says of each item. Raise ValueError, beginning with the field or row, if something makes no sense,
    and what `Loop.create` raises."""
    from heedful.features import TEXTS, declare, encode_names, infer
    from heedful.loop.interactions.registry import interaction_type

    kind, query = interaction_type(learner, settings), None if query_features is None else declare(query_features)
    if kind.arrange is not None:
        encoding, context, crosses = kind.arrange(rows or (), identifier, context)
    elif kind.by_number and not (kinds if features is None else features):
        encoding = encode_names(rows or (), identifier=identifier)
    else:
        keep = [item for _, item in _pairs(crosses)]
        encoding = TEXTS if rows is None else infer(rows, identifier=identifier, kinds=kinds, keep=keep)
    return Loop.create(
        folder,
        encoding=encoding,
        items=rows or (),
        learner=learner,
        settings=settings,
        context=context,
        crosses=crosses,
        query_features=query,
    )


def _kinds_of_columns(value: object) -> dict[str, str]:
    """Return the field `kinds` of a request: the kind of each column that it names."""
    kinds = _object("kinds", value)
    for column, kind in kinds.items():
        if not isinstance(kind, str):
            raise ValueError(f"kinds: {column}: expected a kind, such as number, got {describe(kind)}")
    return kinds


def _pairs(crosses: Any) -> list[Any]:
    """Return the pairs of columns (one of the context, one of the items) in `crosses`; what is no pair is left out."""
    return [pair for pair in crosses or () if crosses != "all" and isinstance(pair, list | tuple) and len(pair) == 2]


def _check_columns(kind: type[Interaction[Any]], features: bool | None, kinds: Mapping[str, str]) -> None:
    """Raise ValueError if `features` or `kinds` of a request describe columns at which this `kind` does not look."""
    from heedful.loop.interactions.registry import interactions

    if features is not None and not kind.by_number:
        where = " or ".join(sorted(kind.words.loop for kind in interactions().values() if kind.by_number))
        raise ValueError(f"features: expected it in {where} alone, got it in another")
    if features is False and kinds:
        raise ValueError("kinds: expected none where features is false, got some")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Raise errors of the block that name a row ("row 3: ...") as errors of the field `name` ("items[2]: ...")."""
    try:
        yield
    except (Closed, Damaged):
        raise
    except ValueError as error:
        message = re.sub(r"^row (\d+): ", lambda match: f"{name}[{int(match[1]) - 1}]: ", str(error))
        raise ValueError(message) from None


def _rows(name: str, value: object) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise ValueError(f"{name}: expected a list of objects, got {describe(value)}")
    return value


def _object(name: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{name}: expected an object, got {describe(value)}")
    return value
