"""The texts of a loop's items: in which column they are, and what the log has kept of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from heedful.loop import Loop
from heedful.loop.packing import LoggedDecision


def text_column(loop: Loop, option: str | None = None) -> str:
    """Return the column of the items of `loop` that has their texts: `option`, the one column of texts, or "text".

    Raise ValueError, naming the option, if the loop has other columns, and several of texts or none."""
    columns = loop.manifest.encoding.columns
    if option is not None:
        return option
    texts = [column.name for column in columns if column.kind in ("text", "prose")]
    if len(texts) == 1:
        return texts[0]
    if not texts and (not columns or any(column.name == "text" for column in columns)):
        return "text"
    kind = f"those of {', '.join(map(repr, texts))}" if texts else "a loop without texts"
    raise ValueError(f"text: expected the column of an item that has its text, as --option text=COLUMN, got {kind}")


def described(loop: Loop, column: str, texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return candidates for `texts`, by name, as a request describes them."""
    return [{loop.manifest.encoding.identifier or "id": name, column: text} for name, text in texts.items()]


class TextReader:
    """Looks up the texts of candidates in a `column` of a loop's items, where the log has kept them: in the decision,
    or in the item."""

    def __init__(self, loop: Loop, column: str) -> None:
        self.column = column
        self._log = loop.projection.log
        self._items: dict[int, Mapping[str, Any]] = {}

    def text(self, decision: LoggedDecision, candidate: int) -> str | None:
        """Return the text of the candidate with this index; None if the log has none."""
        rows: Sequence[Mapping[str, Any]] = decision.record.attributes
        if rows:
            row = rows[candidate]
        elif decision.record.items:
            row = self._item(decision.record.items[candidate])
        else:
            return None
        value = row.get(self.column)
        return value if isinstance(value, str) else None

    def _item(self, version: int) -> Mapping[str, Any]:
        if version not in self._items:
            event = self._log.at(version)
            content = None if event is None else msgspec.json.decode(event.payload)
            self._items[version] = content if isinstance(content, Mapping) else {}
        return self._items[version]
