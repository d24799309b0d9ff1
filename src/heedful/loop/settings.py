"""What a loop is founded on: its learner, its encoding, its settings. Frozen in the first event of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.core.validation import check_count, describe, is_number
from heedful.features import Encoding, FeatureCross
from heedful.learners.registry import is_packaged, learner_class
from heedful.loop import records
from heedful.loop.interactions.settings import KindSettings

SCHEMA = 1

ACTIONS = {"view": 0.1, "cart": 0.5, "buy": 1.0, "hide": -1.0}


class Settings(KindSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a loop decides and what it keeps. ValueError, by name, for what makes no sense."""

    k: int = 10
    """how many positions count when an order is corrected, and 1 shows a single item; where items are known by number,
    how many are shown where a request does not say"""
    control: float = 0.05
    """the share of decisions that keep the caller's order, for comparison; where items are known by number
    and there is no caller's score, that order is drawn"""
    exploration: float | None = None
    """how often two neighbours are swapped, 0 to 0.5; None for the learner's own default"""
    shrink: float = 0.0
    """above 0: learn an offset per person, which counts half after that many of their lessons, or answers"""
    actions: dict[str, Any] = msgspec.field(default_factory=lambda: dict(ACTIONS))
    """what each action says of its item: above 0 for it, below 0 against it, and how loudly; where numbers
    are learned, the number that it stands for and how many answers it counts as, (value, weight)"""
    repeats: bool = False
    """whether what a person is done with is shown to them again: an item, or a pair before all were asked; only some
    interactions take it"""
    strict: bool = False
    """whether a request is refused that names what is not on offer, something twice, or nothing; without, what is known
    of it is ranked"""
    late_after: float = 3600.0
    """seconds after a decision from which feedback on it is called late; it is learned all the same"""
    store_text: bool = True
    """whether texts are kept; without, only their features are"""
    keep_unshown: bool = True
    """whether candidates that came with a request are kept in the log where they were not shown; without, feedback can
    name only what was"""
    durable: Literal["decision", "feedback"] = "decision"
    """what is on the disk before it is answered: "decision", every event; "feedback", every event but decisions, which
    reach the disk with the next feedback at the latest: a power cut may lose those that nobody has answered"""
    snapshot_every: int = 20_000
    """lessons after which a snapshot is kept"""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, np.generic):
                msgspec.structs.force_setattr(self, name, value.item())
        check_count("k", self.k, most=1024)
        check_count("snapshot_every", self.snapshot_every)
        check_count("seed", self.seed, least=0, most=2**63 - 1)
        check_share("control", self.control, 1.0)
        if self.exploration is not None:
            check_share("exploration", self.exploration, 0.5)
        check_share("shrink", self.shrink, 1e9)
        check_share("late_after", self.late_after, 1e12)
        for name in ("store_text", "keep_unshown", "repeats", "strict"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected true or false, got {describe(getattr(self, name))}")
        if self.durable not in ("decision", "feedback"):
            raise ValueError(f'durable: expected "decision" or "feedback", got {describe(self.durable)}')
        if not isinstance(self.actions, Mapping):
            raise ValueError(f"actions: expected a weight for each action, got {describe(self.actions)}")
        for name, value in _checked_by_kind(self).items():
            msgspec.structs.force_setattr(self, name, value)

    def weight(self, action: str) -> float:
        """What an action says, from -1 to 1. ValueError for one that the loop does not know."""
        if action not in self.actions:
            raise ValueError(f"action: expected {', '.join(self.actions)}, got {describe(action)}")
        return float(self.actions[action] / max(abs(weight) for weight in self.actions.values()))


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The first event of a log: all that the fold depends on besides the events that follow."""

    learner: str
    encoding: Encoding
    context: Encoding | None = None
    crosses: tuple[tuple[str, str], ...] | Literal["all"] = ()
    settings: Settings
    query: Encoding | None = None
    """of what a request says of each candidate"""
    learner_version: str = ""
    schema: int = SCHEMA

    @classmethod
    def of(cls, learner: Any, encoding: Any, context: Any, crosses: Any, settings: Any, query: Any = None) -> Manifest:
        """A manifest of parts that fit each other. ValueError, by name, where they do not."""
        if not isinstance(learner, str):
            raise ValueError(f"learner: expected its name, such as fair-pairs, got {describe(learner)}")
        if not isinstance(encoding, Encoding):
            raise ValueError(f"encoding: expected an Encoding, such as infer(rows), got {describe(encoding)}")
        if context is not None and not isinstance(context, Encoding):
            raise ValueError(f"context: expected an Encoding, such as infer(rows), got {describe(context)}")
        if not isinstance(settings, Settings):
            raise ValueError(f"settings: expected Settings(...), got {describe(settings)}")
        from heedful.loop.interactions.registry import interaction_type

        kind = interaction_type(learner, settings)
        if settings.repeats and not kind.takes_repeats:
            raise ValueError(f"repeats: expected false in {kind.loop}, got true")
        if query is not None:
            _check_query(query, encoding)
        if kind.by_number:
            for name, given in (("query_features", query), ("context", context)):
                if given is not None:
                    raise ValueError(f"{name}: expected none in {kind.loop}, which knows items by number, got some")
        if crosses != "all":
            try:
                crosses = tuple((a, b) for a, b in crosses)
            except (TypeError, ValueError):
                raise ValueError(f'crosses: expected "all" or pairs of columns, got {describe(crosses)}') from None
        if crosses and context is None:
            raise ValueError("crosses: expected an encoding of the context too, whose columns are crossed")
        if not settings.store_text:
            encoding, context = without_texts(encoding), without_texts(context)
        about = {"context": context, "crosses": crosses, "settings": settings, "query": query}
        manifest = cls(learner=learner, encoding=encoding, **about)
        manifest.crossed()
        kind.check_manifest(manifest)
        return manifest

    def crossed(self) -> FeatureCross | None:
        """The products of context and item; None where there are none."""
        if self.context is None or not self.crosses:
            return None
        return FeatureCross(self.context, self.candidates, self.crosses)

    @property
    def candidates(self) -> Encoding:
        """The encoding of a candidate: the item's columns, then those of what a request says of it."""
        if self.query is None:
            return self.encoding
        return msgspec.structs.replace(self.encoding, columns=(*self.encoding.columns, *self.query.columns))

    @property
    def candidate_names(self) -> list[str]:
        """The names of the features of a candidate: its own, or with those of the context."""
        crossed = self.crossed()
        return list(crossed.names if crossed else self.candidates.names)

    def item_payload(self, row: Mapping[str, Any]) -> str:
        """An item's attributes as the log keeps them."""
        kept = row if self.settings.store_text else self._without_texts(row, self.encoding)
        return plain_json(kept)

    def kept(self, row: Mapping[str, Any] | None, encoding: Encoding | None) -> dict[str, Any] | None:
        """A request's or candidate's attributes as the log keeps them: nothing where texts are not stored."""
        if row is None or not self.settings.store_text or encoding is None:
            return None
        return plain(row)

    @staticmethod
    def _without_texts(row: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
        keep = {column.name for column in encoding.columns if column.kind in ("number", "category")}
        return {name: value for name, value in row.items() if name in keep or name == encoding.identifier}

    def to_json(self, learner_version: str) -> str:
        """As the log's first event keeps it."""
        return records.encode(msgspec.structs.replace(self, learner_version=learner_version))

    @staticmethod
    def from_json(written: str) -> Manifest:
        """What `to_json` wrote. ValueError where it is something else, or a newer heedful's."""
        try:
            manifest = decoder(Manifest).decode(written)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(
                f"loop: expected the settings of a loop, got: {error}; was it made by a newer heedful?"
            ) from None
        if manifest.schema != SCHEMA:
            raise ValueError(f"loop: expected schema {SCHEMA}, got {manifest.schema}: upgrade heedful to open it")
        return manifest


def _checked_by_kind(settings: Settings) -> dict[str, Any]:
    """The settings that mean something of their own in a loop of their kind, as they are kept. ValueError, by name."""
    from heedful.loop.interactions.protocol import Interaction
    from heedful.loop.interactions.registry import interaction_made_by

    return (interaction_made_by(settings) or Interaction).check_settings(settings)


def _check_query(query: Any, encoding: Encoding) -> None:
    """ValueError where these cannot be the features that a request says of each candidate."""
    if not isinstance(query, Encoding) or not query.size:
        raise ValueError(f"query_features: expected an Encoding, such as declare(features), got {describe(query)}")
    taken = {column.name for column in encoding.columns} | {encoding.identifier or "id", "features", "query_features"}
    if twice := [column.name for column in query.columns if column.name in taken]:
        raise ValueError(f"query_features: expected names that no attribute of an item has, got {describe(twice[0])}")


def built_learner(manifest: Manifest, named: str | None = None) -> Any:
    """The learner that a loop is founded on. `named` names one of the caller's own again: a log says what code ran,
    but does not run it. LookupError where that is missing, ValueError where it is another or does not fit a loop."""
    spec = manifest.learner
    if named is not None and named != spec:
        raise ValueError(f"learner: expected {spec}, which this loop was made with, got {named}")
    builtin = is_packaged(spec.strip().partition(":")[0])
    if named is None and not builtin:
        raise LookupError(f"learner: {spec} is not one of heedful's: name it when opening the loop, learner={spec!r}")
    from heedful.loop.interactions.registry import interaction_type

    learner = interaction_type(spec, manifest.settings).make_learner(spec, manifest)
    exploration = manifest.settings.exploration
    if exploration is not None:
        if "swap" in learner._fields:
            learner = learner._replace(swap=float(exploration))
        elif exploration > 0.0:
            raise ValueError(f"exploration: expected none or 0 for {spec}, which does not swap, got {exploration}")
    learner.init(np.random.default_rng(0))
    return learner


def check_learner(spec: str) -> None:
    """ValueError, by name, where `spec` names no learner, or gives it parameters that it does not have."""
    from heedful.loop.interactions.registry import interaction_class

    interaction_class(learner_class(spec)).check_spec(spec)


def check_share(name: str, value: Any, most: float) -> None:
    """ValueError unless value is a number from 0 to `most`."""
    if not is_number(value, int, float) or not 0.0 <= value <= most:
        raise ValueError(f"{name}: expected a number from 0 to {most:g}, got {describe(value)}")


def without_texts(encoding: Any) -> Any:
    """An encoding that encodes the same and quotes nothing of the rows it was inferred from."""
    if encoding is None:
        return None
    columns = []
    for column in encoding.columns:
        quiet = {"example": ""} | ({"words": tuple("" for _ in column.words)} if column.kind == "text" else {})
        columns.append(msgspec.structs.replace(column, **quiet))
    return msgspec.structs.replace(encoding, columns=tuple(columns))


DEEPEST = 16
"""How deeply attributes may be nested: what is written has to be read again."""


def plain_json(row: Mapping[str, Any]) -> str:
    """Attributes as JSON; numpy's numbers and arrays as the numbers they are. ValueError where JSON cannot say them."""
    try:
        written = msgspec.json.encode(dict(row), enc_hook=_plain).decode()
        _check_shallow(msgspec.json.decode(written), DEEPEST)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        expected = f"expected what JSON can say, nested at most {DEEPEST} deep"
        raise ValueError(f"attributes: {expected}, got {describe(row)}: {error}") from None
    return written


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as JSON gives them back."""
    decoded: dict[str, Any] = msgspec.json.decode(plain_json(row))
    return decoded


def _check_shallow(value: Any, depth: int) -> None:
    if depth == 0:
        raise ValueError("nested too deep")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_shallow(part, depth - 1)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{describe(value)} is not JSON")
