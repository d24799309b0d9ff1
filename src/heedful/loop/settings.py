"""What a loop is created with: its learner, its encodings and its settings.

They are the first event of the log and never change. The file is long because each setting is described and checked in
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.core.validation import check_between, check_count, check_range, describe, is_number, names_of
from heedful.features import UNSEEN, Encoding, FeatureCross
from heedful.learners.registry import UnknownLearner, is_own, is_packaged, learner_class
from heedful.loop import records
from heedful.loop.interactions.named import name_fitting
from heedful.loop.interactions.registry import interaction_type
from heedful.loop.interactions.settings import KindSettings

SCHEMA = 1
"""the version of the manifest's format"""

ACTIONS = {"view": 0.1, "cart": 0.5, "buy": 1.0, "hide": -1.0}
"""the default weights of actions, by name; below 0 speaks against the item"""


class Settings(KindSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of a loop: how it decides and what it keeps. They are fixed when it is created.

    Raise ValueError, naming the field, for what makes no sense. In some kinds of feedback (ratings, comparisons) the
    learner knows items by number, not by features; where that makes a difference the fields say so."""

    control: float = 0.05
    """the share of decisions, 0 to 1, that show the caller's own order instead of the learned one (the control), so
    that the two can be compared. Where items are known by number and the caller gives no score, it is a random order"""
    rewards: tuple[float, float] | None = None
    """the lowest and the highest reward, where a single item is shown (k = 1); None for 0 and 1"""
    exploration: float | None = None
    """the probability with which the learner swaps two neighbours in a list, 0 to 0.5, so that they can be compared;
    None for the learner's default. Where a single item is shown it is drawn, with this twice in standard deviations"""
    sampled: float = 0.0
    """the share of decisions, 0 to 1 - `control`, whose list is drawn at random around the learned order (Plackett-Luce
    over ranks), so that every list has a known probability above 0; only where lists are ordered by features"""
    temperature: float = 1.0
    """the spread of those draws, 0.05 to 100: near 0 the lists are the learned order itself, with larger values all
    lists become equally likely"""
    shrink: float = 0.0
    """above 0, a state is learned for each person in addition to the shared one; it counts half after this many of the
    person's lessons. 0: all people share one state"""
    actions: dict[str, Any] = msgspec.field(default_factory=lambda: dict(ACTIONS))
    """the weight of each action by name, above 0 if it is for its item and below 0 if it is against it; in a loop that
    learns ratings (value, weight): the rating that the action stands for, and how many ratings it counts as"""
    repeats: bool = False
    """whether a person is shown again what they have rated or compared already; only where items are known by number"""
    strict: bool = False
    """whether a request is refused if it names an item that is not on offer, names one twice, or names none; otherwise
    those that are on offer are ranked"""
    late_after: float = 3600.0
    """how many seconds after a decision was shown feedback counts as late; it is learned all the same"""
    none_after: float | None = None
    """how many seconds after a list was shown silence is an answer: the loop then answers none to a list without
    feedback, which teaches what none teaches. For pages that report clicks alone. None: silence says nothing; only
    where lists are ordered by features"""
    store_text: bool = True
    """whether the log keeps texts, and attributes that come with requests, as they were given; otherwise only their
    features, and of items the numbers and categories"""
    keep_unshown: bool = True
    """whether candidates that came with a request and were not shown are kept in the log; otherwise feedback can name
    only what was shown"""
    products: bool = False
    """whether the products of each two features of an item are features too, and squares of numbers: what one is worth
    may then depend on another; only where the learner goes by features, of which an item has 64 at most"""
    durable: Literal["decision", "feedback"] = "decision"
    """what is on the disk before it is answered: with "decision" every event, with "feedback" every event but
    decisions; these reach the disk with the next feedback at the latest, so that a power cut may lose decisions that
    nobody has answered"""
    snapshot_every: int = 20_000
    """the number of lessons after which a snapshot is written"""
    seed: int = 0
    """the seed of all random draws, 0 to 2^63 - 1; each decision has a generator of its own, made from it and the
    decision's id"""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, np.generic):
                msgspec.structs.force_setattr(self, name, value.item())
        check_count("k", self.k, most=1024)
        check_count("snapshot_every", self.snapshot_every)
        check_count("seed", self.seed, least=0, most=2**63 - 1)
        check_share("control", self.control, 1.0)
        check_share("sampled", self.sampled, 1.0 - self.control)
        check_between("temperature", self.temperature, 0.05, 100.0)
        if self.exploration is not None:
            check_share("exploration", self.exploration, 0.5)
        check_share("shrink", self.shrink, 1e9)
        check_share("late_after", self.late_after, 1e12)
        if self.none_after is not None and not (is_number(self.none_after, int, float) and 0 < self.none_after <= 1e12):
            got = describe(self.none_after)
            raise ValueError(f"none_after: expected none, or a number of seconds above 0, at most 1e12, got {got}")
        for name in ("store_text", "keep_unshown", "repeats", "strict", "products"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected true or false, got {describe(getattr(self, name))}")
        if self.durable not in ("decision", "feedback"):
            raise ValueError(f'durable: expected "decision" or "feedback", got {describe(self.durable)}')
        if not isinstance(self.actions, Mapping):
            raise ValueError(f"actions: expected a weight for each action, got {describe(self.actions)}")
        kind = interaction_type(None, self)
        if kind.by_number and self.shrink > 0.0:
            expected = f"expected 0 in {kind.words.loop}, whose learner knows people apart"
            raise ValueError(f"shrink: {expected}, got {self.shrink:g}")
        if self.rewards is not None:
            if not kind.rewarded:
                expected = f"expected none in {kind.words.loop}, as they are of a single item (k 1)"
                raise ValueError(f"rewards: {expected}, got {describe(self.rewards)}")
            msgspec.structs.force_setattr(self, "rewards", check_range("rewards", self.rewards))
        for name, value in kind.check_settings(self).items():
            msgspec.structs.force_setattr(self, name, value)

    def weight(self, action: str) -> float:
        """Return the weight of `action` divided by the greatest weight in size, so from -1 to 1.

        Raise ValueError for an action that the settings do not list."""
        if action not in self.actions:
            raise ValueError(f"action: expected {', '.join(self.actions)}, got {describe(action)}")
        return float(self.actions[action] / max(abs(weight) for weight in self.actions.values()))


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a loop is created with: learner, encodings of items and requests, settings. The first event of its log keeps
    it.

    Together with the other events of the log it determines the model."""

    learner: str
    """the learner with its parameters: "second-order:epsilon=0.1", "FILE.py:Class\""""
    encoding: Encoding
    """how the attributes of an item become features"""
    context: Encoding | None = None
    """how the attributes of a request become features; None if it has none"""
    crosses: tuple[tuple[str, str], ...] | Literal["all"] = ()
    """pairs (context column, item column) whose products are features too; "all" for all pairs"""
    settings: Settings
    """how the loop decides and what it keeps"""
    query: Encoding | None = None
    """how query features become features: what a request says of each candidate, such as a search score; None if it
    says nothing"""
    learner_version: str = ""
    """the version of the learner's code when the loop was created"""
    schema: int = SCHEMA
    """the version of this format"""

    @classmethod
    def of(cls, learner: Any, encoding: Any, context: Any, crosses: Any, settings: Any, query: Any = None) -> Manifest:
        """Return a manifest of these parts after checking them; the arguments are those of `Loop.create`.

        - `learner`: a name with parameters.
        - `encoding`, `context`, `query`: the encodings of items, of requests and of query features; the last two may be
          None.
        - `crosses`: pairs (context column, item column) whose products are features, or "all".
        - `settings`: if they store no texts, examples and words of the rows are removed from the encodings.

        Raise ValueError, naming the field, if a part is of the wrong type or they do not fit together."""
        if not isinstance(learner, str):
            raise ValueError(f"learner: expected its name, such as posterior, got {describe(learner)}")
        if not isinstance(encoding, Encoding):
            raise ValueError(f"encoding: expected an Encoding, such as infer(rows), got {describe(encoding)}")
        if context is not None and not isinstance(context, Encoding):
            raise ValueError(f"context: expected an Encoding, such as infer(rows), got {describe(context)}")
        if not isinstance(settings, Settings):
            raise ValueError(f"settings: expected Settings(...), got {describe(settings)}")
        kind = interaction_type(learner, settings)
        if settings.repeats and not kind.by_number:
            raise ValueError(f"repeats: expected false in {kind.words.loop}, got true")
        if settings.products and (kind.by_number or kind.arrange is not None):
            raise ValueError(f"products: expected false in {kind.words.loop}, got true")
        if query is not None:
            _check_query(query, encoding)
        if kind.by_number:
            for name, given in (("query_features", query), ("context", context)):
                if given is not None and (name != "context" or given.size):
                    expected = f"expected none in {kind.words.loop}, which knows items by number"
                    raise ValueError(f"{name}: {expected}, got some")
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
        _check_kind(kind, manifest)
        return manifest

    def crossed(self) -> FeatureCross | None:
        """Return the map from the features of a request and of an item to those of a candidate, with products of the
        two, and of two features of the item.

        None if the loop has neither (`crosses`, the setting `products`)."""
        if not self.crosses and not self.settings.products:
            return None
        return FeatureCross(self.context or UNSEEN, self.candidates, self.crosses, self.settings.products)

    @property
    def n_products(self) -> int:
        """the number of products of two features of an item, which are a candidate's last features but for the caller's
        score (`prior`)"""
        crossed = self.crossed()
        return 0 if crossed is None else crossed.n_products

    @property
    def candidates(self) -> Encoding:
        """the encoding of a candidate: the columns of an item, then those of the query features"""
        if self.query is None:
            return self.encoding
        return msgspec.structs.replace(self.encoding, columns=(*self.encoding.columns, *self.query.columns))

    @property
    def candidate_names(self) -> list[str]:
        """the names of a candidate's features, products with those of the request included, without the caller's score
        (`prior`)"""
        crossed = self.crossed()
        return list(crossed.names if crossed else self.candidates.names)

    def item_payload(self, row: Mapping[str, object]) -> str:
        """Return the attributes `row` of an item as the JSON that the log keeps, without texts if the settings store
        none.

        Raise ValueError if JSON cannot express them."""
        kept = row if self.settings.store_text else self._without_texts(row, self.encoding)
        return plain_json(kept)

    def attributes_to_log(self, row: Mapping[str, object] | None, encoding: Encoding | None) -> dict[str, Any] | None:
        """Return the attributes `row`, of a request or of a candidate that came with it, as plain values for the log.

        Return None, for nothing, if the setting `store_text` is off (only features are kept then), if there are no
        attributes, or if `encoding` is None. Raise ValueError if JSON cannot express them."""
        if row is None or not self.settings.store_text or encoding is None:
            return None
        return plain(row)

    @staticmethod
    def _without_texts(row: Mapping[str, object], encoding: Encoding) -> dict[str, Any]:
        keep = {
            column.name for column in encoding.columns if column.kind in ("number", "logarithm", "category", "tags")
        }
        return {name: value for name, value in row.items() if name in keep or name == encoding.identifier}

    def to_json(self, learner_version: str) -> str:
        """Return the manifest, with this `learner_version`, as the JSON that the log's first event keeps."""
        return records.encode(msgspec.structs.replace(self, learner_version=learner_version))

    @staticmethod
    def from_json(written: str) -> Manifest:
        """Return the manifest in the JSON text `written`, which `to_json` made.

        Raise ValueError if the text is no manifest, or was written by a newer version of heedful."""
        try:
            manifest = decoder(Manifest).decode(written)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(
                f"loop: expected the settings of a loop, got: {error}; was it made by a newer heedful?"
            ) from None
        if manifest.schema != SCHEMA:
            raise ValueError(f"loop: expected schema {SCHEMA}, got {manifest.schema}: upgrade heedful to open it")
        return manifest


def _check_kind(kind: Any, manifest: Manifest) -> None:
    """Raise ValueError, naming the field, if a loop of this `kind` cannot be created with `manifest`."""
    settings, loop = manifest.settings, kind.words.loop
    if settings.sampled > 0.0 and not kind.samples_lists:
        raise ValueError(f"sampled: expected 0 in {loop}, got {settings.sampled:g}")
    if settings.none_after is not None and not kind.orders:
        got = f"{settings.none_after:g}"
        raise ValueError(f"none_after: expected none in {loop}, in which none is no judgement, got {got}")


def _check_query(query: object, encoding: Encoding) -> None:
    """Raise ValueError unless `query` can be the encoding of query features: an encoding of columns that no item
    has."""
    if not isinstance(query, Encoding) or not query.size:
        raise ValueError(f"query_features: expected an Encoding, such as declare(features), got {describe(query)}")
    taken = {column.name for column in encoding.columns} | {encoding.identifier or "id", "features", "query_features"}
    if twice := [column.name for column in query.columns if column.name in taken]:
        raise ValueError(f"query_features: expected names that no attribute of an item has, got {describe(twice[0])}")


def named_learners(learner: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return as a tuple the learners that are named when a loop is opened: none, one ("FILE.py:Class") or several.
    Raise ValueError for anything that is not a text."""
    return () if learner is None else (learner,) if isinstance(learner, str) else tuple(names_of("learner", learner))


def built_learner(manifest: Manifest, named: Sequence[str] = ()) -> Any:
    """Return the learner that `manifest` names, with its hyperparameters, after checking that it fits the loop.

    If that is the user's own, a class in a Python file, `named` has to name it again as "FILE.py:Class", such as
    "mine.py:Ranker", because opening a log does not run code that only the log names. Others of the user's own may be
    named with it, to be tried in an experiment. Raise LookupError if the user's own learner is not named, and
    ValueError if another one is named in its place or the learner does not fit the loop."""
    spec = manifest.learner
    builtin = is_packaged(spec.strip().partition(":")[0])
    if others := [name for name in named if name != spec and not is_own(name)]:
        raise ValueError(f"learner: expected {spec}, which this loop was made with, got {', '.join(others)}")
    if not builtin and spec not in named:
        if named:
            told = f"expected {spec}, which this loop was made with, got {', '.join(named)}"
        else:
            told = f"{spec} is not one of heedful's: name it when opening the loop, learner={spec!r}"
        raise LookupError(f"learner: {told}")
    kind = interaction_type(spec, manifest.settings)
    try:
        learner = kind.make_learner(spec, manifest)
    except UnknownLearner as error:
        raise name_fitting(error, lambda name: kind.make_learner(name, manifest)) from None
    exploration = manifest.settings.exploration
    if exploration is not None:
        if "swap" in learner._fields:
            learner = learner._replace(swap=float(exploration))
        elif exploration > 0.0:
            raise ValueError(f"exploration: expected none or 0 for {spec}, which does not swap, got {exploration}")
    learner.init(np.random.default_rng(0))
    return learner


def candidate_manifest(manifest: Manifest, spec: str, named: Sequence[str] = ()) -> tuple[Manifest, Any]:
    """Return (the manifest of a loop with the learner `spec` in place of its own, that learner).

    `named` are the user's own learners ("FILE.py:Class") that the loop was opened with. If the learner does not swap
    neighbours, the loop's setting `exploration` is left out. Raise LookupError if `spec` is a learner of the user's own
    from a file that none of `named` is from, and ValueError if it does not fit."""
    check_named(spec, manifest.learner, *named)
    settings = manifest.settings
    if settings.exploration and "swap" not in getattr(learner_class(spec), "_fields", ()):
        settings = msgspec.structs.replace(settings, exploration=None)
    other = msgspec.structs.replace(manifest, learner=spec, settings=settings)
    return other, built_learner(other, (spec,))


def check_named(spec: str, *named: str) -> None:
    """Raise LookupError if `spec` is a learner of the user's own ("FILE.py:Class") from another file than the learners
    `named`.

    A log may name any file; nothing of it is run unless the user named it."""
    if is_own(spec) and file_of(spec) not in map(file_of, named):
        raise LookupError(
            f"learner: {spec} is not one of heedful's, and its file was not named when opening the loop: "
            f"learner={spec!r}"
        )


def file_of(spec: str) -> str:
    """Return the file or module in a learner's name, FILE.py:Class or module:Class, with or without parameters."""
    return spec.strip().partition(":")[0]


def check_share(name: str, value: object, most: float) -> None:
    """Raise ValueError, naming the field `name`, unless `value` is a number from 0 to `most`."""
    if not is_number(value, int, float) or not 0.0 <= value <= most:
        raise ValueError(f"{name}: expected a number from 0 to {most:g}, got {describe(value)}")


def without_texts(encoding: Any) -> Any:
    """Return an encoding that gives the same features, without the examples and words of the rows that it was inferred
    from.

    None stays None."""
    if encoding is None:
        return None
    columns = []
    for column in encoding.columns:
        quiet = {"example": ""} | ({"words": tuple("" for _ in column.words)} if column.kind == "text" else {})
        columns.append(msgspec.structs.replace(column, **quiet))
    return msgspec.structs.replace(encoding, columns=tuple(columns))


DEEPEST = 16
"""How deeply attributes may be nested, so that their JSON can be read again."""


def plain_json(row: Mapping[str, object]) -> str:
    """Return the attributes `row` as JSON, with numpy's numbers and arrays as plain numbers and lists.

    Raise ValueError for what JSON cannot express, or what is nested more than `DEEPEST` deep."""
    try:
        written = msgspec.json.encode(dict(row), enc_hook=_plain).decode()
        if written.count("[") + written.count("{") > DEEPEST:  # else nothing can be nested so deep
            _check_shallow(msgspec.json.decode(written), DEEPEST)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        expected = f"expected what JSON can say, nested at most {DEEPEST} deep"
        raise ValueError(f"attributes: {expected}, got {describe(row)}: {error}") from None
    return written


def plain(row: Mapping[str, object]) -> dict[str, Any]:
    """Return the attributes `row` as plain values, as they come back from JSON. Raise ValueError as `plain_json`
    does."""
    decoded: dict[str, Any] = msgspec.json.decode(plain_json(row))
    return decoded


def _check_shallow(value: object, depth: int) -> None:
    if depth == 0:
        raise ValueError("nested too deep")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_shallow(part, depth - 1)


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{describe(value)} is not JSON")
