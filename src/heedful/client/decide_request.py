"""A request for a decision, and the fallback that stands in for the server's answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.client import messages
from heedful.client.fallback import Decision, Prior, caller_order, fall_back
from heedful.client.messages import FLOATS, MSGPACK, Call
from heedful.core.ids import new_id
from heedful.core.validation import check_count, describe, list_of
from heedful.data.hits import HIT, are_hits


class DecideRequest:
    """The arguments of one `decide` call, checked as far as possible without the loop.

    `call` is the HTTP request to send, `fallback` makes the decision that replaces a missing answer."""

    def __init__(
        self,
        loop: str,
        candidates: Sequence[object] | None,
        features: npt.ArrayLike | None,
        prior: Prior,
        show: int | None,
        id: str | None,
        deferred: bool,
        how: Mapping[str, object] | None = None,
        **fields: object,
    ) -> None:
        if show is not None:
            check_count("show", show)
        if prior is not None and not isinstance(prior, Mapping):
            prior = list_of("prior", prior, "scores, or an object of them by name")
        self.id = new_id() if id is None else str(id)
        self._loop, self._prior, self._show, self.deferred = loop, prior, show, deferred
        self._strict, self._after = (how or {}).get("strict"), (how or {}).get("after")
        self._fields = messages.present_fields(**fields)  # person and context
        query = {**self._fields, **messages.present_fields(show=show, deferred=deferred or None, **(how or {}))}
        self._rows: npt.NDArray[np.float32] | None = None
        self._listed: list[object] | None = None
        if features is not None:
            self._rows, rows = _rows(features, candidates, prior)
            query.pop("strict", None)  # numbered candidates are all known
            parameters = {**query, "prior": None if prior is None else True, "id": self.id}
            self.call = Call("POST", messages.path("loops", loop, "decisions", **parameters), rows.tobytes(), FLOATS)
        else:
            self._listed = None if candidates is None else list_of("candidates", candidates, "names or of objects")
            fields = {**messages.present_fields(candidates=self._listed, prior=prior), **query, "id": self.id}
            sent = (messages.body(fields, MSGPACK), MSGPACK) if self._objects else messages.short(fields)
            self.call = Call("POST", messages.path("loops", loop, "decisions"), *sent)

    @property
    def _objects(self) -> bool:
        return bool(self._listed) and isinstance((self._listed or [None])[0], Mapping)

    def is_cut(self, shown: int, identifier: str) -> bool:
        """Return whether an answer with `shown` items means that the loop always shows fewer items than it is asked
        about: one item, or a pair.

        `identifier` is the attribute that names candidates given as objects."""
        if self._show is not None or self._listed is None or self._after is not None or shown >= len(self._listed):
            return False
        return shown < len(set(self._names(self._listed, identifier)))

    def fallback(self, reason: str, identifier: str, few: int | None = None, gone: Collection[str] = ()) -> Decision:
        """Return the decision that is used if the server does not answer: the caller's own order.

        `reason` says why, `identifier` is the attribute that names candidates given as objects, and `few` is the number
        of items that the loop is known to show (None: as many as were asked for). `gone` are the names of items that
        the page before showed."""
        candidates: Any = self._listed
        if self._rows is not None:
            candidates = [{"id": str(j), "features": row} for j, row in enumerate(self._rows.tolist())]
        names, prior = self._names(candidates, identifier), self._prior
        if prior is None and are_hits(candidates):
            prior = {name: hit.get("_score") for name, hit in zip(names[::-1], candidates[::-1])}
        record = messages.present_fields(
            candidates=names if candidates is None else candidates,
            prior=self._prior,
            **self._fields,
            strict=self._strict,
        )
        order = [name for name in dict.fromkeys(caller_order(names, prior)) if name not in gone]
        record["shown"] = order[: self._show or few]
        path = messages.path("loops", self._loop, "records")
        return fall_back(path, self.id, record, reason, self.deferred)

    def _names(self, candidates: Sequence[object] | None, identifier: str) -> list[str]:
        """Return the names of the candidates as the server would name them; without `candidates`, those in the mapping
        `prior`."""
        if candidates is None:
            return [str(name) for name in self._prior] if isinstance(self._prior, Mapping) else []
        if candidates and isinstance(candidates[0], Mapping):
            rows = [candidate if isinstance(candidate, Mapping) else {} for candidate in candidates]
            if are_hits(candidates):
                return [str(row.get(HIT, j)) for j, row in enumerate(rows)]
            return [str(row.get(identifier, row.get("id", j))) for j, row in enumerate(rows)]
        return [str(name) for name in candidates]


def features_of(features: object, candidates: object = None) -> npt.NDArray[np.float32]:
    """Return features as a float32 array (m, N): m candidates, N features.

    Raise ValueError for anything else, for numbers that are not finite, or if `candidates` are given, too."""
    if candidates is not None:
        raise ValueError('features: expected no candidates with them, got both; their names are "0", "1", ...')
    X = _numbers(features)
    if X.ndim != 2 or not X.size:
        raise ValueError(f"features: expected rows of numbers, got {describe(features)}")
    if not np.isfinite(X).all():
        raise ValueError("features: expected finite numbers that fit into float32, got one that is not")
    return X


def _rows(
    features: object, candidates: object, prior: object
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return (the features (m, N) as float32: N features of each of m candidates; the array to send)."""
    X = features_of(features, candidates)
    if prior is None:
        return X, X
    scores = np.empty(0) if isinstance(prior, Mapping) else _numbers(prior)
    if scores.shape != (len(X),):
        raise ValueError(f"prior: expected {len(X)} scores, one for each row, got {describe(prior)}")
    return X, np.column_stack([X, scores]).astype("<f4")


def _numbers(value: object) -> npt.NDArray[np.float32]:
    """Return `value` as a float32 array."""
    try:
        with np.errstate(over="ignore"):
            return np.array(value, "<f4", order="C")
    except (TypeError, ValueError, OverflowError):  # rows of several lengths, words, objects
        return np.empty(0, np.float32)
