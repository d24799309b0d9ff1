"""A loop made over HTTP, as `heedful init` makes one out of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.doors import describe
from heedful.loop import Loop
from heedful.loop.log import Closed, Damaged
from heedful.server.problems import of_rows


def found(given: Mapping[str, Any]) -> Callable[[Path], Loop]:
    """What makes the loop in a folder, of the fields of a request. ValueError, by name, when it is called."""

    def make(folder: Path) -> Loop:
        from heedful.features import TEXTS, infer
        from heedful.loop.settings import Settings

        rows = _rows("items", given.get("items"))
        context = _rows("context", given.get("context"))
        settings = given.get("settings") or {}
        if not isinstance(settings, dict):
            raise ValueError(f"settings: wanted an object, got {describe(settings)}")
        if strange := settings.keys() - set(Settings.__struct_fields__):
            wanted = ", ".join(Settings.__struct_fields__)
            raise ValueError(f"settings: wanted {wanted}, got {describe(min(strange))}")
        kinds = given.get("kinds") or {}
        if not isinstance(kinds, dict):
            raise ValueError(f"kinds: wanted an object, got {describe(kinds)}")
        identifier = given.get("identifier")
        if identifier is not None and (not isinstance(identifier, str) or not identifier):
            raise ValueError(f"identifier: wanted the attribute that names the items, got {describe(identifier)}")
        with naming("context"):
            around = infer(context, identifier="") if context else None
        with naming("items"):
            encoding = infer(rows, identifier=identifier, kinds=kinds) if rows else TEXTS
            return Loop.create(
                folder,
                encoding=encoding,
                items=rows,
                learner=given.get("learner") or "fair-pairs",
                settings=Settings(**settings),
                context=around,
                crosses=given.get("crosses") or (),
            )

    return make


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Rows that are refused inside are those of the field `name`."""
    try:
        yield
    except (Closed, Damaged):
        raise
    except ValueError as error:
        raise ValueError(of_rows(name, str(error))) from None


def _rows(name: str, given: Any) -> list[Mapping[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError(f"{name}: wanted a list of objects, got {describe(given)}")
    return given
