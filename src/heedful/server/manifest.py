"""Creating a loop over HTTP, with the same choices as `heedful init` on a table of items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.server.problems import of_rows
from heedful.storage import Closed, Damaged, Place

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import Interaction


def loop_maker(given: Mapping[str, object]) -> Callable[[Place], Loop]:
    """Return a function that creates a loop at the place it is given, from the JSON fields `given` of a request.

    The fields name the learner, the items, the encodings and the settings. The function raises ValueError, naming the
    field, if one makes no sense."""
    return partial(_create, given)


def _create(given: Mapping[str, Any], folder: Place) -> Loop:
    from heedful.features import TEXTS, declare, encode_names, infer
    from heedful.loop.interactions.registry import interaction_type
    from heedful.loop.settings import Settings

    rows = _rows("items", given.get("items"))
    context = _rows("context", given.get("context"))
    settings = _object("settings", given.get("settings"))
    if strange := settings.keys() - set(Settings.__struct_fields__):
        expected = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: expected {expected}, got {describe(min(strange))}")
    kinds = _kinds_of_columns(given.get("kinds"))
    learner, crosses = given.get("learner"), given.get("crosses")
    pairs = _pairs(crosses)
    identifier = given.get("identifier")
    if identifier is not None and (not isinstance(identifier, str) or not identifier):
        raise ValueError(f"identifier: expected the attribute that names the items, got {describe(identifier)}")
    with naming("context"):
        around = infer(context, identifier="", keep=[pair[0] for pair in pairs]) if context else None
    told, said = Settings(**settings), given.get("query_features")
    features = given.get("features")
    if features is not None and not isinstance(features, bool):
        raise ValueError(f"features: expected true or false, got {describe(features)}")
    kind = interaction_type(learner, told)
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
            settings=told,
            context=around,
            crosses=() if crosses is None else crosses,
            query_features=None if said is None else declare(said),
        )


def _kinds_of_columns(given: object) -> dict[str, str]:
    """Return the field `kinds` of a request: the kind of each column that it names."""
    kinds = _object("kinds", given)
    for column, kind in kinds.items():
        if not isinstance(kind, str):
            raise ValueError(f"kinds: {column}: expected a kind, such as number, got {describe(kind)}")
    return kinds


def _pairs(crosses: object) -> list[list[str]]:
    """Return the pairs of columns (one of the context, one of the items) in the field `crosses` of a request. Entries
    that are no pairs are returned, too; they are refused later."""
    if crosses is not None and crosses != "all" and not isinstance(crosses, list):
        raise ValueError(f'crosses: expected "all" or a list of pairs of columns, got {describe(crosses)}')
    return [pair for pair in crosses if isinstance(pair, list) and len(pair) == 2] if isinstance(crosses, list) else []


def _check_columns(kind: type[Interaction[Any]], features: bool | None, kinds: Mapping[str, str]) -> None:
    """Raise ValueError if a request sets `features` or `kinds`, which describe the items' columns, for a `kind` of loop
    that does not take them."""
    from heedful.loop.interactions.registry import interactions

    if features is not None and kind.item_features != "asked":
        asked = [each.words.loop for each in interactions().values() if each.item_features == "asked"]
        where = " or ".join(sorted(asked))
        raise ValueError(f"features: expected it in {where} alone, got it in another")
    if features is False and kinds:
        raise ValueError("kinds: expected none where features is false, got some")
    if kind.item_features == "none" and kinds:
        raise ValueError(f"kinds: expected none in {kind.words.loop}, which looks at no column, got some")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Within the block, errors that name a row ("row 3: ...") are raised as errors of the field `name` ("items[2]:
    ...")."""
    try:
        yield
    except (Closed, Damaged):
        raise
    except ValueError as error:
        raise ValueError(of_rows(name, str(error))) from None


def _rows(name: str, given: object) -> list[Mapping[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError(f"{name}: expected a list of objects, got {describe(given)}")
    return given


def _object(name: str, given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"{name}: expected an object, got {describe(given)}")
    return given
