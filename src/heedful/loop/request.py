"""Requests and feedback as arrays: candidates and contexts become features, names of items become indices.

The file is long because a request has five forms (all items, names, mappings, arrays, search hits) that end in one
`Request`, and feedback is resolved against the same names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, finite_array, list_of
from heedful.data.comparisons import join_names
from heedful.data.frames import rows_in
from heedful.data.hits import are_hits
from heedful.features import Encoding
from heedful.features.encoding import Features
from heedful.jit.kernel import Floats, Ints
from heedful.loop import records
from heedful.loop.catalogue import Catalogue
from heedful.loop.model import Context
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import DecisionRecord, Feedback, FeedbackRecord
from heedful.loop.settings import Manifest
from heedful.loop.strangers import (
    NotOnOffer,
    Strangers,
    from_hits,
    not_asked_about,
    not_shown,
    shown_names,
    split_unknown,
)
from heedful.loop.undeclared import undeclared_fields

if TYPE_CHECKING:
    from heedful.loop.interactions.protocol import Interaction

Array = npt.NDArray[np.float64]

KEPT = ("messages",)
"""Fields of a context that no encoding has and the log keeps: the messages of a prompt, which exports write again."""


class Request(NamedTuple):
    """A parsed request for a decision: m candidates with their features, and the context.

    The candidates are items of the catalogue or came with the request, never both. `items`, `names`, `prior` and
    `attributes` have one entry per candidate, or are empty where they do not apply."""

    x: Any
    """the m candidates as the learner sees them: their N features (m, N) with the caller's score in the last column or,
    in kinds that know items by number, the numbers of the items (m,)"""
    items: tuple[int, ...]
    """the versions of the candidates, if they are items of the catalogue"""
    names: tuple[str, ...]
    """the names of the candidates, if they came with the request"""
    catalogue: int
    """if all items on offer are the candidates, in their order, the version of the catalogue; otherwise 0"""
    called: tuple[str, ...]
    """the names of the candidates, whichever they are"""
    rows: Ints | None
    """the rows (m,) of the m items in the catalogue; None if the candidates came with the request"""
    prior: tuple[float, ...]
    """the caller's score of each candidate, standardised to mean 0 and variance 1; () if none were given or all are
    equal"""
    context: dict[str, Any] | None
    """the attributes of the context as the log keeps them; None if there are none or the loop stores no texts"""
    attributes: tuple[dict[str, Any], ...]
    """the attributes of candidates that came with the request, as the log keeps them"""
    features: Features | None
    """of m candidates that came with the request, their n features (m, n), without products with the context and
    without the caller's score; of m items of the catalogue, their Q query features (m, Q), or None if the loop has
    none"""
    around: Features
    """the features of the context, (0,) if the loop has none"""
    show: int | None
    """how many items will be seen; None if the request does not say"""
    strangers: Strangers | None = None
    """the candidates that are not on offer, which the other fields leave out; None if all are"""
    undeclared: tuple[str, ...] = ()
    """the fields of candidates and of the context that the loop makes no feature of, as `undeclared_fields` names
    them"""

    def numbers(self) -> bytes:
        """Return the features that the log keeps, those of the candidates and then those of the context, as float32
        bytes."""
        came = self.features.astype("<f4", copy=False).tobytes() if self.features is not None else b""
        return came + self.around.astype("<f4", copy=False).tobytes() if self.around.size else came

    def without(self, gone: Collection[str]) -> tuple[Request, Ints]:
        """Return (copy, left): a copy of the request without the candidates whose names are in `gone`, and the indices
        (r,) of the r others in this request.

        If nothing is left, the copy is a request without candidates. The caller's scores stay as they are."""
        m = len(self.called)
        left = [j for j, name in enumerate(self.called) if name not in gone]
        kept, strangers = np.array(left, np.int64), self.strangers
        if strangers is not None:
            strangers = strangers.without(gone, left, m)
            strangers = strangers if strangers.names or not left else None
        elif not left:
            strangers = Strangers(())
        if len(left) == m:
            return self._replace(strangers=strangers), kept
        return self.only(left)._replace(x=self.x[kept], strangers=strangers), kept

    def only(self, kept: list[int]) -> Request:
        """Return a copy of the request for the log, with only the candidates at the indices `kept`, in that order.

        The array `x`, which the learner sees, stays as it is, with all candidates."""
        called = tuple([self.called[j] for j in kept])
        return self._replace(
            items=tuple([self.items[j] for j in kept]) if self.items else (),
            names=called if self.names else (),
            catalogue=0,
            called=called,
            rows=None if self.rows is None else self.rows[kept],
            prior=tuple([self.prior[j] for j in kept]) if self.prior else (),
            attributes=tuple([self.attributes[j] for j in kept]) if self.attributes else (),
            features=None if self.features is None else self.features.take(kept, axis=0),
        )


class Requests:
    """Translates requests and feedback of one loop into arrays and indices, by the loop's encodings and its items.

    `unknown` counts the values that came for which the encodings have no category, by "column=value"."""

    def __init__(self, manifest: Manifest, catalogue: Catalogue, interaction: Interaction[Any]) -> None:
        self.manifest, self.catalogue, self.interaction = manifest, catalogue, interaction
        self.unknown = Counter[str]()
        self._crossed = manifest.crossed()
        self._candidates = manifest.candidates
        self._n_items = self._candidates.size
        self._query = manifest.query
        self._n_query = 0 if self._query is None else self._query.size
        self._n_context = manifest.context.size if manifest.context is not None else 0
        places = self._candidates.places
        self._featured = frozenset([name for name, at in places.items() if at])
        self._fields = {*places, "features", "query_features", "id", self._candidates.identifier or "id"}
        self._around = None if manifest.context is None else {*manifest.context.places, "features", *KEPT}
        self._by_number = interaction.by_number
        self._n = len(interaction.names)
        self._nothing = np.empty((0, self._n))
        texts = [column.name for column in manifest.encoding.columns if column.kind in ("text", "prose")]
        self._text = texts[0] if len(texts) == 1 else None

    # ------------------------------------------------------------------------ deciding

    def parse(self, candidates: Any, context: Any, prior: object, show: Any) -> Request:
        """Parse a request for a decision into arrays; every candidate has to be on offer or come with features.

        The arguments are those of `Loop.decide`, without hits of a search engine. Raise ValueError, naming the field,
        on bad input, and LookupError for an item that is not on offer."""
        if show is not None:
            check_count("show", show)
        attributes: tuple[dict[str, Any], ...] = ()
        items: tuple[int, ...] = ()
        names: tuple[str, ...] = ()
        rows: Ints | None = None
        came: Features | None = None
        named = self._are_items(candidates)
        if self._by_number and (isinstance(candidates, np.ndarray) or not named):
            expected = f"expected names of items on offer, in {self.interaction.words.loop}"
            raise ValueError(f"candidates: {expected}, got what came along")
        if prior is not None and not self.interaction.ranks:
            raise ValueError(f"prior: expected none in {self.interaction.words.loop}, got {describe(prior)}")
        catalogue = 0
        if candidates is None:
            catalogue, called, items, rows = self.catalogue.at_version()
            if not items:
                raise ValueError("candidates: expected some, or items on offer, got neither")
        elif isinstance(candidates, np.ndarray):
            if self._query is not None:
                raise ValueError(f"candidates: expected {self._check_query()}, got an array")
            came = self._matrix(candidates)
            called = names = _numbers(len(came))
        elif _objects(candidates) and named:
            came = None if self._query is None else self._query_rows(candidates)
            called, items, standing = self._on_offer(list(self.requested_names(candidates) or ()))
            rows = np.array(standing, np.int64)
        elif _objects(candidates):
            called, came, whole_rows = self._inline(candidates)
            names = called
            kept = [self._to_store(f"candidates[{j}]", each) for j, each in enumerate(whole_rows)]
            attributes = tuple([each for each in kept if each is not None])
        else:
            called, items, standing = self._on_offer(candidates)
            rows = np.array(standing, np.int64)
        if items and not catalogue and len(items) == len(self.catalogue.current):
            whole = self.catalogue.at_version()
            catalogue = whole.version if items == whole.items else 0
        if rows is not None and came is None and self._query is not None:
            came = self._query_rows([{"id": name} for name in called], called)
        encoded = self._context(context)
        scores = _standardise(self._scores(prior, len(called), called))
        kept_context = self._to_store("context", context)
        x = self._numbers(rows, came, encoded, scores)
        return Request(
            x, items, names, catalogue, called, rows, scores, kept_context, attributes, came, encoded, show,
            undeclared=self._undeclared(candidates, context),
        )  # fmt: skip

    def nothing(self, context: Any, show: Any) -> Request:
        """Return a request without candidates, for one that names none, or only such as are not on offer.

        `context` and `show` are those of `Loop.decide`. Raise ValueError, naming the field, if one makes no sense."""
        if show is not None:
            check_count("show", show)
        around, kept = self._context(context), self._to_store("context", context)
        return Request(
            x=self._none(), items=(), names=(), catalogue=0, called=(), rows=None, prior=(), context=kept,
            attributes=(), features=None, around=around, show=show, undeclared=self._undeclared(None, context),
        )  # fmt: skip

    def _undeclared(self, candidates: Any, context: Any) -> tuple[str, ...]:
        """Return the fields of a checked request that the loop makes no feature of, as `undeclared_fields` names
        them."""
        objects = candidates if _objects(candidates) else ()
        return undeclared_fields(objects, self._fields, context, self._around) if objects or context else ()

    def _none(self) -> Any:
        """Return the empty array `x` of a request without candidates."""
        return np.empty(0, np.int64) if self._by_number else self._nothing

    def sift(self, candidates: object, prior: object) -> tuple[list[Any], Any, Strangers] | None:
        """Split candidates that `parse` refused into those on offer and the others, each name once.

        Return (candidates on offer, their scores out of `prior`, the others). Return None if there is nothing to split,
        so that `parse` refused them for another reason: all are on offer and differ, or they are not names or mappings
        with ids. Raise ValueError for what cannot be candidates."""
        if not isinstance(candidates, Sequence) or isinstance(candidates, str | bytes):
            return None
        if not candidates:
            self._scores(prior, 0, ())
            return [], None, Strangers(())
        along = _objects(candidates)
        if along and self._says(candidates):  # each has to name an item
            identifier = self._candidates.identifier or "id"
            if not all(isinstance(each, Mapping) and (identifier in each or "id" in each) for each in candidates):
                return None
        names = self._names_of(candidates) if along else records.check_names("candidates", candidates)
        known = self.catalogue.current.__contains__ if self._are_items(candidates) else lambda name: True
        return split_unknown(names, candidates, prior, known)

    def _are_items(self, candidates: Sequence[Any]) -> bool:
        """Return whether candidates are items of the catalogue, and not mappings with attributes of their own."""
        if not _objects(candidates) or self._says(candidates):
            return True
        objects = [each for each in candidates if isinstance(each, Mapping)]
        if self._query is not None or len(objects) < len(candidates):
            return False
        if any("features" in each or not self._featured.isdisjoint(each) for each in objects):
            return False
        current = self.catalogue.current
        return any(name in current for name in self._names_of(candidates))

    def without_hits(self, candidates: Any, prior: object) -> tuple[Any, Any]:
        """Return (candidates, prior) in which hits of a search engine are replaced; other candidates are returned as
        they are.

        A hit is {"_id": ..., "_score": ..., "_source": {...}}. If any of them is an item on offer, the candidates
        become their names, otherwise mappings with their attributes; their scores become the prior unless one was
        given. Raise ValueError, naming the field, for a malformed hit."""
        if not are_hits(candidates):
            return candidates, prior
        identifier = self.manifest.encoding.identifier or "id"
        query = () if self._query is None else self._query.places.keys()
        return from_hits(candidates, prior, identifier, self.catalogue.current, query)

    def _to_store(self, name: str, given: Mapping[str, object] | None) -> dict[str, Any] | None:
        """Return what the log keeps of `given`, attributes that came with a request in the field `name`; None if it
        keeps nothing."""
        try:
            return self.manifest.attributes_to_log(given, self.manifest.encoding)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def requested_names(self, candidates: Any) -> tuple[str, ...] | None:
        """Return the names of the candidates that a request asks for, on offer or not; None if it asks for all
        items."""
        if candidates is None:
            return None
        if isinstance(candidates, np.ndarray):
            return _numbers(len(self._matrix(candidates)))
        if isinstance(candidates, list | tuple) and not candidates:
            return ()
        candidates, _ = self.without_hits(candidates, None)
        return self._names_of(candidates) if _objects(candidates) else records.check_names("candidates", candidates)

    def _names_of(self, candidates: Sequence[object]) -> tuple[str, ...]:
        """Return the names of candidates that are mappings: their ids, or "0", "1", ... by position."""
        _check_few(candidates)
        identifier = self.manifest.encoding.identifier or "id"
        return tuple(
            records.check_id(f"candidates[{j}]: {identifier}", each.get(identifier, each.get("id", str(j))))
            for j, each in enumerate(candidates)
            if isinstance(each, Mapping)
        )

    def _on_offer(self, candidates: object) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
        """Return (names, versions, rows) of candidates that are named items of the catalogue, in the order of the
        request."""
        if type(candidates) is list:  # nearly always: what is on offer has been through the door
            try:
                items, rows = self.catalogue.standing(candidates)
                if 0 < len(set(rows)) == len(rows) <= records.MOST_CANDIDATES:
                    return self.catalogue.names_at(rows), items, rows
            except (KeyError, TypeError):
                pass  # said below, by name
        asked = records.distinct("candidates", candidates)
        try:
            return asked, *self.catalogue.standing(asked)
        except KeyError as error:
            raise self.not_on_offer(error.args[0]) from None

    def not_on_offer(self, name: str) -> NotOnOffer:
        """Return the error for a candidate `name` that is not an item on offer."""
        some = join_names(islice(self.catalogue.current, 3))
        expected = f"items on offer, such as {some}" if some else "items on offer, of which there are none"
        return NotOnOffer(f"candidates: expected {expected}, got {describe(name)}; put it on offer first")

    def _matrix(self, features: npt.NDArray[Any]) -> Features:
        """Return candidates that are given as an array of features (m, n), m candidates with n features, as float32."""
        shape = features.shape
        if features.ndim != 2 or shape[1] != self._n_items or not 1 <= shape[0] <= records.MOST_CANDIDATES:
            got = " x ".join(map(str, shape)) or "a number"
            raise ValueError(f"candidates: expected features, m x {self._n_items}, got {got}")
        expected = "candidates: expected finite numbers that fit into float32"
        if features.dtype.kind not in "fiu":
            raise ValueError(f"{expected}, got {features.dtype}")
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.asarray(features, np.float32)
            flat = X.reshape(-1)  # where the sum of the squares is finite they all are, and that takes half the time
            if not math.isfinite(flat.dot(flat)) and not np.isfinite(X).all():
                raise ValueError(f"{expected}, got one that is not")
        return X

    def _inline(
        self, candidates: Sequence[Mapping[str, object]]
    ) -> tuple[tuple[str, ...], Features, Sequence[Mapping[str, object]]]:
        """Return (names, features, attributes for the log) of m candidates that bring attributes of their own, features
        (m, n)."""
        _check_few(candidates)
        current, kept = self.catalogue.current, list(candidates)
        identifier = self.manifest.encoding.identifier or "id"
        rows, names, whole = [], [], True
        for j, candidate in enumerate(candidates):
            if not isinstance(candidate, Mapping):
                raise ValueError(f"candidates[{j}]: expected an object, as the others are, got {describe(candidate)}")
            given = candidate.get(identifier, candidate.get("id", str(j)))
            names.append(records.check_id(f"candidates[{j}]: {identifier}", given))
            if self._query is not None and not _is_encoded(self._candidates, candidate):
                raise ValueError(f"candidates[{j}]: features: expected them, as the first has them, got none")
            try:
                self.interaction.check_items(self.manifest, [candidate])
                row = encode_row(self._candidates, candidate, self.unknown)
            except ValueError as error:
                raise ValueError(f"candidates[{j}]: {str(error).removeprefix('row 1: ')}") from None
            if names[j] in current and not self._featured <= candidate.keys() and "features" not in candidate:
                version = current[names[j]]
                row = _change(self._candidates, self.catalogue.features([version])[0], candidate, row)
                own = self.catalogue.attributes(version)
                kept[j] = {name: own.get(name) for name in self._candidates.places if name in self._featured} | dict(
                    candidate
                )
                whole = whole and not _is_encoded(self._candidates, own)
            rows.append(row)
        return records.distinct("candidates", names), np.array(rows, np.float32), kept if whole else ()

    def _says(self, candidates: Sequence[Any]) -> bool:
        """Return whether candidates that are mappings are items on offer with query features (what a request says of
        each)."""
        return self._query is not None and "features" not in candidates[0]

    def _check_query(self) -> str:
        assert self._query is not None
        each = ", ".join([column.name for column in self._query.columns])
        return f'items on offer with {each} of each, as {{"{self._candidates.identifier or "id"}": ...}}'

    def _query_rows(self, candidates: Sequence[object], called: Sequence[str] = ()) -> Features:
        """Return the query features (m, Q) of m candidates: Q features of each that the request gives, such as a search
        score."""
        query = self._query
        assert query is not None
        out = np.empty((len(candidates), query.size), np.float32)
        for j, candidate in enumerate(candidates):
            where = f"candidates[{j}]" if not called else f"candidates: {describe(called[j])}"
            if not isinstance(candidate, Mapping):
                raise ValueError(f"{where}: expected {self._check_query()}, got {describe(candidate)}")
            try:
                out[j] = self._query_row(candidate)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
        return out

    def _query_row(self, candidate: Mapping[str, object]) -> Features:
        query, identifier = self._query, self._candidates.identifier or "id"
        assert query is not None
        identifier = identifier if identifier in candidate else "id"
        if identifier not in candidate:
            raise ValueError(f"{identifier}: expected the name of an item on offer, got nothing")
        encoded = "query_features" in candidate
        known = {"query_features"} if encoded else query.places.keys()
        if strange := [name for name in candidate if name != identifier and name not in known]:
            expected = ", ".join((identifier, *known))
            raise ValueError(f"expected {expected}, got another field: {describe(strange[0])}")
        if encoded:
            return check_encoded_row("query_features", candidate["query_features"], query.size)
        return query.encode(candidate, self.unknown, complete=True)

    def _context(self, context: object) -> Features:
        if context is not None and not isinstance(context, Mapping):
            raise ValueError(f"context: expected an object, got {describe(context)}")
        if self.manifest.context is None:
            return _NO_CONTEXT
        try:
            if context is not None:
                self.interaction.check_context(context)
            return encode_row(self.manifest.context, context or {}, self.unknown)
        except ValueError as error:
            raise ValueError(f"context: {error}") from None

    def _scores(self, prior: object, m: int, names: Sequence[str]) -> list[float | None]:
        """Return the caller's scores of `m` candidates as they were given, None for a candidate without; [] if none
        were."""
        if prior is None:
            return []
        if isinstance(prior, Mapping):
            prior = {records.check_id("prior", name): score for name, score in prior.items()}
            strange = sorted(set(prior) - set(names))
            if strange:
                raise ValueError(f"prior: expected scores of candidates, got one of {describe(strange[0])}")
            return [records.check_number(f"prior[{describe(n)}]", prior[n]) if n in prior else None for n in names]
        if isinstance(prior, Sequence) and not isinstance(prior, str | bytes) and len(prior) == m:
            return [records.check_number(f"prior[{j}]", score) for j, score in enumerate(prior)]
        if isinstance(prior, np.ndarray) and prior.shape == (m,):
            return self._scores(prior.tolist(), m, names)
        raise ValueError(f"prior: expected {m} scores, one for each candidate, got {describe(prior)}")

    def _numbers(
        self, rows: Ints | None, came: Features | None, context: Features | None, prior: Sequence[float]
    ) -> Any:
        """Return what the learner sees of m candidates: N features with the scores `prior` last (m, N), or numbers of
        items (m,)."""
        if self._by_number and rows is not None:
            return self.catalogue.items_at(rows)
        if rows is None or self._crossed is not None or came is not None:
            X: Any = came if rows is None else self.catalogue.at(rows)
            if rows is not None and came is not None:
                X = np.concatenate([X, came], axis=1)
            return self._whole(X, context, prior)
        x = self.catalogue.whole(rows)
        if prior:
            x[:, -1] = prior
        return x

    def _whole(self, X: Floats, context: Any, prior: Sequence[float]) -> Array:
        x = np.empty((len(X), self._n))
        if self._crossed is not None:
            self._crossed.apply(context, X, x[:, :-1])
        else:
            x[:, :-1] = X
        x[:, -1] = prior if len(prior) else 0.0
        return x

    def context(self, decision: LoggedDecision) -> Context:
        """Return a logged decision with the arrays that the learner saw when it was made, and that it learns from."""
        record, arrays, rows = decision.record, decision.arrays, decision.rows
        if not record.items and not record.names:  # nothing of what was asked for was on offer
            return Context(record, self._none(), decision.person)
        came = self.came(record, arrays) if rows is None or self._n_query else None
        encoded = np.frombuffer(arrays[len(arrays) - 4 * self._n_context :], "<f4") if self._n_context else None
        return Context(record, self._numbers(rows, came, encoded, record.prior), decision.person)

    # ------------------------------------------------------------------------ feedback

    def resolve(
        self,
        given: Feedback,
        decision: DecisionRecord,
        names: Sequence[str],
        items: Callable[[], Floats],
        find: Callable[[str], tuple[int, dict[str, int]]],
    ) -> tuple[FeedbackRecord, Features | None]:
        """Look up the names in a piece of feedback; return (its record for the log, features or None).

        `given` is the feedback, `decision` the decision that it answers and `names` those of its m candidates.
        `items()` returns the n features of each (m, n). `find(id)` returns (sequence number, candidate's index by name)
        of what a later decision showed to the same person. The features returned are those of an object that was not
        among the candidates, such as an edited text, (n,) float32. Raise LookupError, with the reason, if the feedback
        names what was not there, and ValueError, naming the field, if a value makes no sense."""
        if given.form == "clicks":
            return self._clicks(given, decision, names, find), None
        place = _places(names, len(given.names))
        kept = not self.interaction.by_number
        chosen = [place(name) for name in given.names]
        shown_only = not kept or given.form in ("thumb", "reward", "action")
        for name, j in zip(given.names, chosen):
            if j < 0 and kept:
                raise not_asked_about(given.form, name, names)
            if shown_only and j not in decision.shown:
                raise not_shown(given.form, name, shown_names(decision, names))
        if given.form == "edit":
            return self._edit(given, decision, chosen[0] if chosen else decision.shown[0], items())
        if given.form == "actions":
            self._check_actions(given)
            return FeedbackRecord(given.form, chosen, done=[list(names) for names in given.done]), None
        values = list(given.values)
        if given.form == "action":
            values = [self.manifest.settings.weight(given.text or "")]
        if given.form == "choice" and len(decision.shown) < 2:
            raise LookupError("choice: expected a decision that showed two, got one that showed one")
        return FeedbackRecord(given.form, chosen, values, text=given.text), None

    def _check_actions(self, given: Feedback) -> None:
        """Raise ValueError, naming the field, for an action that the loop's settings do not list."""
        known = self.manifest.settings.actions
        for item, names in zip(given.names, given.done):
            for name in names:
                if name not in known:
                    expected = f"expected {', '.join(known)}, got {describe(name)}"
                    raise ValueError(f"actions[{describe(item)}]: {expected}")

    def _clicks(
        self,
        given: Feedback,
        decision: DecisionRecord,
        names: Sequence[str],
        find: Callable[[str], tuple[int, dict[str, int]]],
    ) -> FeedbackRecord:
        later = [find(id) for id in given.chain]
        place, shown = _places(names, len(given.names)), set(decision.shown)
        chosen: list[int] = []
        chain: list[tuple[int, int]] = []
        for name in given.names:
            j = place(name)
            if j in shown:
                chosen.append(j)
                continue
            for seq, others in later:
                if name in others:
                    chain.append((seq, others[name]))
                    chosen.append(-len(chain))
                    break
            else:
                raise not_shown("clicks", name, shown_names(decision, names))
        return FeedbackRecord("clicks", chosen, chain=chain)

    def _edit(
        self, given: Feedback, decision: DecisionRecord, base: int, X: Floats
    ) -> tuple[FeedbackRecord, Features | None]:
        """Return (record, features) of a correction of the candidate with index `base`, out of m candidates with n
        features `X` (m, n)."""
        encoding = self._candidates
        if given.given is None and self._text is None:
            raise ValueError("edit: expected the attributes that were changed, as the items have no or several texts")
        changed = given.given if given.given is not None else {str(self._text): given.text}
        try:
            row = encode_row(encoding, changed, self.unknown)
        except ValueError as error:
            raise ValueError(f"edit: {error}") from None
        if not _is_encoded(encoding, changed):
            strange = [name for name in changed if not encoding.places.get(name)]
            if strange:
                raise ValueError(f"edit: expected columns of the encoding, got {describe(strange[0])}")
            row = _change(encoding, X[base], changed, row)
        text = given.text if self.manifest.settings.store_text else None
        kept = self.manifest.attributes_to_log(given.given, encoding)
        if not given.values:
            return FeedbackRecord("edit", [-1], base=base, text=text, given=kept), row
        order = [*decision.shown, *sorted(set(range(len(X))) - set(decision.shown))]
        gaps = np.square(np.asarray(X, np.float64)[order] - row).sum(axis=1)
        return FeedbackRecord("edit", [order[int(np.argmin(gaps))]], base=base, text=text, given=kept), None

    def extra(
        self,
        feedback: FeedbackRecord,
        arrays: bytes | None,
        context: Context,
        row: Callable[..., Floats],
        decided: bytes,
    ) -> Array:
        """Return the features (r, N) of the r objects in a piece of feedback that were not among the candidates; r may
        be 0.

        Such an object is a corrected one, for example an edited text, whose features are in `arrays`; or a candidate of
        a later decision, whose features (1, N) `row(seq, candidate)` returns. N is the number of features that the
        learner sees. `context` is the decision that the feedback answers with its arrays, `decided` the bytes that were
        logged with it."""
        if feedback.form == "edit" and arrays:
            X = np.frombuffer(arrays, "<f4").reshape(1, self._n_items)
            encoded = np.frombuffer(decided[len(decided) - 4 * self._n_context :], "<f4") if self._n_context else None
            return self._whole(X, encoded, [float(context.x[feedback.base, -1])])
        if not feedback.chain:
            return self._nothing
        return np.concatenate([row(seq, candidate) for seq, candidate in feedback.chain])

    def items(self, record: DecisionRecord, arrays: bytes) -> Floats:
        """Return the features of the m candidates of the logged decision `record` (m, n), n of each, without context
        and caller's score.

        `arrays` are the bytes that were logged with it."""
        came = self.came(record, arrays)
        if not record.items:
            return came
        X = self.catalogue.features(record.items)
        return np.concatenate([X, came], axis=1) if self._n_query else X

    def came(self, record: DecisionRecord, arrays: bytes) -> Features:
        """Return the features that came with the request of the logged decision `record`; `arrays` are the bytes logged
        with it.

        If the request brought its candidates along, they are (m, n), n features of each of m candidates; if the
        candidates are items on offer, (m, Q), the Q features that the request gave each item, where Q may be 0."""
        width, split = self._n_query if record.items else self._n_items, len(arrays) - 4 * self._n_context
        return np.frombuffer(arrays[:split], "<f4").reshape(-1 if width else len(record.items), width)


def encode_row(encoding: Encoding, row: Mapping[str, object], unknown: Counter[str]) -> Features:
    """Return the N features of a row (N,): encoded from its attributes, or as given in {"id": ..., "features": [...]}.

    Categories that the encoding does not know are counted in `unknown`, by "column=value". Raise ValueError, naming the
    column, if the row cannot be encoded.
    """
    if not _is_encoded(encoding, row):
        return encoding.encode(row, unknown)
    return check_encoded_row("features", row["features"], encoding.size)


def check_encoded_row(name: str, given: object, size: int) -> Features:
    """Return `given`, a sequence of `size` numbers, as float32 features.

    Raise ValueError for anything else; `name` is the field that the message names."""
    features = finite_array(name, given, 1, size)
    if features.size and float(np.abs(features).max()) > float(np.finfo(np.float32).max):
        raise ValueError(f"{name}: expected numbers that fit into float32, got one that does not")
    return features.astype(np.float32)


def encode_rows(encoding: Encoding, rows: Sequence[object], unknown: Counter[str]) -> Features:
    """Return the features (m, N) of m `rows`, N features each: encoded from attributes, or as given in the field
    `features`.

    Categories that the encoding does not know are counted in `unknown`, by "column=value". Raise ValueError, with the
    number of the row from 1, if one cannot be encoded."""
    X = np.empty((len(rows), encoding.size), np.float32)
    for i, row in enumerate(rows):
        try:
            if not isinstance(row, Mapping):
                raise ValueError(f"expected an object, got {describe(row)}")
            X[i] = encode_row(encoding, row, unknown)
        except ValueError as error:
            raise ValueError(f"row {i + 1}: {error}") from None
    return X


def check_rows(rows: object) -> list[Mapping[str, Any]]:
    """Return the `rows` of items as a list of mappings, one for each row; a data frame is turned into one.

    Raise ValueError for anything else."""
    listed: list[Mapping[str, Any]] = list_of("items", rows_in("items", rows), "objects")
    for i, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise ValueError(f"items[{i}]: expected an object, got {describe(row)}")
    return listed


def _change(encoding: Encoding, base: Floats, changed: Mapping[str, object], row: Features) -> Features:
    """Return the features (n,) of an object with the features `base` (n,) in which the columns that `changed` has are
    other ones, as in its features `row` (n,)."""
    whole = np.array(base, np.float32)
    for places in (encoding.places[name] for name in changed if name in encoding.places):
        whole[places.start : places.stop] = row[places.start : places.stop]
    return whole


def _is_encoded(encoding: Encoding, row: Mapping[str, object]) -> bool:
    """Return whether a row gives its features as numbers in a field `features`, which is no column, instead of
    attributes."""
    return "features" in row and "features" not in encoding.places and not any(encoding.places.get(n) for n in row)


def _check_few(candidates: Sequence[object]) -> None:
    """Raise ValueError if there are more than `MOST_CANDIDATES` candidates, before any of them is looked at."""
    if len(candidates) > records.MOST_CANDIDATES:
        raise ValueError(
            f"candidates: expected a list of 1 to {records.MOST_CANDIDATES}, got {len(candidates)} of them"
        )


def _objects(candidates: object) -> bool:
    if type(candidates) is list and candidates and type(candidates[0]) is str:
        return False  # nearly always
    return (
        isinstance(candidates, Sequence)
        and not isinstance(candidates, str)
        and len(candidates) > 0
        and isinstance(candidates[0], Mapping)
    )


def _places(names: Sequence[str], asked: int) -> Callable[[str], int]:
    """Return a function from one of `names` to its index, -1 for any other; `asked` is about how often it will be
    called."""
    if asked > 4:
        there = {name: j for j, name in enumerate(names)}
        return lambda name: there.get(name, -1)
    return lambda name: names.index(name) if name in names else -1


_NO_CONTEXT = np.zeros(0, np.float32)


@lru_cache(maxsize=64)
def _numbers(m: int) -> tuple[str, ...]:
    """Return the names "0", "1", ... of m candidates."""
    return tuple(map(str, range(m)))


def _standardise(given: Sequence[float | None]) -> tuple[float, ...]:
    """Return the caller's scores `given` of m candidates, standardised to mean 0 and variance 1; () if there are none,
    or all are equal."""
    largest = max((abs(score) for score in given if score is not None), default=0.0)
    if largest == 0.0:
        return ()
    given = [None if score is None else score / largest for score in given]
    there = [score for score in given if score is not None]
    mean = sum(there) / len(there) if there else 0.0
    spread = (sum((score - mean) ** 2 for score in there) / max(len(there), 1)) ** 0.5
    if spread <= 1e-12:
        return ()
    return tuple([0.0 if score is None else (score - mean) / spread for score in given])
