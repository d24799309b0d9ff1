"""Creating a loop over HTTP, with the same choices as `heedful init` on a table of items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.storage import Closed, Damaged, Place

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import Interaction


def create_loop(body: Mapping[str, Any], folder: Place) -> Loop:
    """Create a loop in `folder` from the JSON fields `body` of a request: learner, items, encodings and settings.

    Raise ValueError, naming the field, if one makes no sense."""
    from heedful.features import TEXTS, declare, encode_names, infer
    from heedful.loop.interactions.registry import interaction_type
    from heedful.loop.settings import Settings

    rows = _rows("items", body.get("items"))
    context = _rows("context", body.get("context"))
    settings = _object("settings", body.get("settings"))
    if strange := settings.keys() - set(Settings.__struct_fields__):
        expected = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: expected {expected}, got {describe(min(strange))}")
    kinds = _kinds_of_columns(body.get("kinds"))
    learner, crosses = body.get("learner"), body.get("crosses")
    pairs = _pairs(crosses)
    identifier = body.get("identifier")
    if identifier is not None and (not isinstance(identifier, str) or not identifier):
        raise ValueError(f"identifier: expected the attribute that names the items, got {describe(identifier)}")
    with naming("context"):
        around = infer(context, identifier="", keep=[pair[0] for pair in pairs]) if context else None
    loop_settings, query_features = Settings(**settings), body.get("query_features")
    features = body.get("features")
    if features is not None and not isinstance(features, bool):
        raise ValueError(f"features: expected true or false, got {describe(features)}")
    kind = interaction_type(learner, loop_settings)
    _check_columns(kind, features, kinds)
    with naming("items"):
        if kind.arrange is not None:
            for field, there in (("crosses", crosses), ("kinds", kinds)):
                if there:
                    expected = f"expected none in {kind.words.loop}, which encodes columns itself"
                    raise ValueError(f"{field}: {expected}, got some")
            encoding, around, crosses = kind.arrange(rows, identifier, around)
        elif kind.item_features != "all" and not (kinds if features is None else features):
            encoding = encode_names(rows, identifier=identifier)
        else:
            keep = [pair[1] for pair in pairs]
            encoding = infer(rows, identifier=identifier, kinds=kinds, keep=keep) if rows else TEXTS
        return Loop.create(
            folder,
            encoding=encoding,
            items=rows,
            learner=learner,
            settings=loop_settings,
            context=around,
            crosses=() if crosses is None else crosses,
            query_features=None if query_features is None else declare(query_features),
        )


def _kinds_of_columns(value: object) -> dict[str, str]:
    """Return the field `kinds` of a request: the kind of each column that it names."""
    kinds = _object("kinds", value)
    for column, kind in kinds.items():
        if not isinstance(kind, str):
            raise ValueError(f"kinds: {column}: expected a kind, such as number, got {describe(kind)}")
    return kinds


def _pairs(crosses: object) -> list[list[str]]:
    """Return the pairs of columns (one of the context, one of the items) in the field `crosses` of a request."""
    if crosses is not None and crosses != "all" and not isinstance(crosses, list):
        raise ValueError(f'crosses: expected "all" or a list of pairs of columns, got {describe(crosses)}')
    return [pair for pair in crosses if isinstance(pair, list) and len(pair) == 2] if isinstance(crosses, list) else []


def _check_columns(kind: type[Interaction[Any]], features: bool | None, kinds: Mapping[str, str]) -> None:
    """Raise ValueError if `features` or `kinds` of a request describe columns at which this `kind` does not look."""
    from heedful.loop.interactions.registry import interactions

    if features is not None and kind.item_features != "asked":
        asked = [kind.words.loop for kind in interactions().values() if kind.item_features == "asked"]
        where = " or ".join(sorted(asked))
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
