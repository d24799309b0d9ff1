"""Turn the rows of a table into features: infer an encoding from rows, apply it to items, and cross context with items.

`infer` looks at some rows once and decides what each column becomes; the encoding that it returns never changes.
docs/features.md explains the choices.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe
from heedful.data.files import cut_list
from heedful.features.columns import Column, Number, Vector
from heedful.features.declaring import declare
from heedful.features.encoding import TEXTS, UNSEEN, Description, Encoding, Features

if TYPE_CHECKING:
    from heedful.features.inference import encode_names, infer

__all__ = [
    "TEXTS",
    "UNSEEN",
    "Column",
    "Description",
    "Encoding",
    "FeatureCross",
    "Features",
    "declare",
    "encode_names",
    "infer",
    "vectors",
]


def __getattr__(name: str) -> Any:
    """Import `infer` and `encode_names` when they are first used; applying an encoding does not need them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from heedful.features import inference

    return getattr(inference, name)


def vectors(size: int) -> Encoding:
    """Return the encoding of items that come with a vector each, {"id": ..., "vector": [...]}, of `size` numbers.

    The numbers are used as they are. Raise ValueError unless `size` is a positive whole number.
    """
    check_count("size", size)
    column = Vector(name="vector", size=size, scale=1.0, why="the caller's own")
    return Encoding(columns=(column,), identifier="id")


MOST_MULTIPLIED = 64
"""The greatest number of features of an item that are multiplied with one another."""


class FeatureCross(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Encoding of items in a context: the item's features, then products of a feature of the context and one of the
    item, then `products` of two features of the item.

    - `context`, `item`: the encodings of the rows that describe contexts and of those of the items.
    - `pairs`: pairs (column of the context, column of the item), all products of whose features are taken; "all" takes
      all features of both.
    - `products`: whether each two features of the item are multiplied that are of different columns, and each number
      with itself.

    A context feature alone would add the same to the score of every candidate, which changes no order, so only products
    are added. Two vectors of one size, such as embeddings by one model, are multiplied number by number; the sum of
    these products is their similarity. Raise ValueError for a pair of unknown columns, one that is given twice, and
    products of more than 64 features.
    """

    context: Encoding
    item: Encoding
    pairs: tuple[tuple[str, str], ...] | Literal["all"] = "all"
    products: bool = False

    def __post_init__(self) -> None:
        if self.products and self.item.size > MOST_MULTIPLIED:
            expected = f"expected false for more than {MOST_MULTIPLIED} features of an item, of which there are"
            raise ValueError(f"products: {expected} {self.item.size}, got true")
        if self.pairs == "all":
            return
        for pair in self.pairs:
            for side, encoding, name in (("context", self.context, pair[0]), ("item", self.item, pair[1])):
                names = [column.name for column in encoding.columns if column.features()]
                if name not in names:
                    possible = cut_list(names) or "none"
                    raise ValueError(f"pairs: expected a column of the {side} ({possible}), got {describe(name)}")
        pair, times = Counter(self.pairs).most_common(1)[0] if self.pairs else (("", ""), 1)
        if times > 1:
            raise ValueError(f"pairs: expected each once, got {pair} {times} times")

    @cached_property
    def names(self) -> list[str]:
        """Names of the N' features that `apply` returns: those of the item, then those of the products."""
        crossed = [f"{self.context.names[c]} × {self.item.names[i]}" for c, i in zip(*self._places)]
        multiplied = [f"{self.item.names[i]} × {self.item.names[j]}" for i, j in zip(*self._factors)]
        return [*self.item.names, *crossed, *multiplied]

    @cached_property
    def size(self) -> int:
        """Number N' of the features that `apply` returns."""
        return self.item.size + len(self._places[0]) + self.n_products

    @property
    def n_products(self) -> int:
        """Number of products of two features of the item; they are the last features."""
        return len(self._factors[0])

    @cached_property
    def _places(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Indices of the two factors of each of p products: (p,) into the context's features, (p,) into the item's."""
        pairs = product(self.context.places, self.item.places) if self.pairs == "all" else self.pairs
        sizes = [{c.name: c.size for c in e.columns if isinstance(c, Vector)} for e in (self.context, self.item)]
        both = [np.empty((2, 0), np.int64)]
        for a, b in pairs:
            c, i = np.array(self.context.places[a], np.int64), np.array(self.item.places[b], np.int64)
            if a in sizes[0] and sizes[0][a] == sizes[1].get(b):
                n = min(c.size, i.size)  # if both may be missing, the last is that both are
                both.append(np.stack([c[:n], i[:n]]))
            else:
                both.append(np.stack([np.repeat(c, i.size), np.tile(i, c.size)]))
        c, i = np.concatenate(both, axis=1)
        return c, i

    @cached_property
    def _items(self) -> slice | npt.NDArray[np.int64]:
        """The second of `_places`; a slice if they are in a row, of which numpy makes no copy."""
        i = self._places[1]
        return slice(i[0], i[-1] + 1) if i.size and (np.diff(i) == 1).all() else i

    @cached_property
    def _factors(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Indices, into the item's features, of the two factors of each product of these: (q,) and (q,)."""
        columns = self.item.columns if self.products else ()
        of = [(c, name in values) for c in columns for values in [c.feature_names()] for name in c.features()]
        pairs = [
            (i, j)
            for i, (first, _) in enumerate(of)
            for j, (second, value) in enumerate(of[i:], i)
            if second is not first or (i == j and value and isinstance(first, Number))
        ]
        both = np.array(pairs, np.int64).reshape(-1, 2).T
        return both[0], both[1]

    def apply(self, context: npt.ArrayLike | None, X: npt.ArrayLike, out: Any = None) -> Features:
        """Return the features (m x N', float32) of m items in one context: the N features of each item, then N' - N
        products.

        `X` (m x N): the features of each item; `context` (C,): the C features of the context, None for none. They are
        written into `out` (m x N'), if that is given. Raise ValueError, naming the argument, if a shape is wrong.
        """
        context = np.asarray(() if context is None else context, np.float32)
        X = np.asarray(X, np.float32)
        if context.shape != (self.context.size,):
            raise ValueError(f"context: expected shape ({self.context.size},), got {context.shape}")
        if X.ndim != 2 or X.shape[1] != self.item.size:
            raise ValueError(f"X: expected shape (m, {self.item.size}), got {X.shape}")
        features: Features = np.empty((len(X), self.size), np.float32) if out is None else out
        n, last = self.item.size, self.size - self.n_products
        features[:, :n] = X
        np.multiply(X[:, self._items], context[self._places[0]], out=features[:, n:last], dtype=np.float32)
        np.multiply(X[:, self._factors[0]], X[:, self._factors[1]], out=features[:, last:], dtype=np.float32)
        return features
