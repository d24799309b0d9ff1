"""From a table of models to what a loop of routes is created with: which columns are costs, what is crossed with
what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.core.validation import check_count, describe
from heedful.features import Encoding, encode_names
from heedful.features.columns import LIMIT, Category, Column, Ignored, Number, Prose, Text, Vector, number
from heedful.jit.kernel import Floats, Ints
from heedful.loop.settings import Manifest

COST, COST_IN, COST_OUT = "cost", "cost_in", "cost_out"
IN_SHARE = 0.75
"""How much the price of a token that goes in counts: three go in for each that comes out."""
WEIGHT, PROMPT = "cost_weight", "prompt"
BUCKETS = 256
"""How many buckets the words of prompts are hashed into if they come without an embedding."""
OTHERS = (
    "encoding: expected those that a table of models makes (leave encoding out), with costs and a cost weight, "
    "got others"
)
"""Why a loop of routes cannot be made with other encodings."""
MOST = 1000
"""The most models of a loop."""


class Costs(NamedTuple):
    """Where the features of a candidate say what a model costs, for C columns of costs, and what a unit of cost is
    worth."""

    weight: float
    """the cost weight of a request that says none: utility per unit of cost"""
    shares: Floats
    """how much each column of costs counts (C,); the sum is 1"""
    raw: Ints
    """indices of the costs (C,)"""
    given: Ints
    """indices of the costs times the cost weight that the request says (C,)"""
    missing: Ints
    """indices of the costs, 0 if the request says a cost weight (C,)"""

    @property
    def columns(self) -> Ints:
        return np.concatenate([self.raw, self.given, self.missing])

    def price(self, x: Floats) -> Floats:
        """Return what each of m candidates `x` (m, N) costs (m,)."""
        return np.asarray(x[:, self.raw] @ self.shares, np.float64)

    def charge(self, x: Floats) -> Floats:
        """Return what the cost of each of m candidates `x` (m, N) takes away from its utility (m,): cost weight times
        cost."""
        each = x[:, self.given] + self.weight * x[:, self.missing]
        return np.asarray(each @ self.shares, np.float64)


def cost_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns of costs in the table `rows`: ("cost",) or ("cost_in", "cost_out").

    Raise ValueError, naming the column, unless there is one or the other."""
    there = [name for name in (COST, COST_IN, COST_OUT) if any(name in row for row in rows)]
    if there == [COST] or there == [COST_IN, COST_OUT]:
        return tuple(there)
    expected = f"expected a column {COST}, or {COST_IN} and {COST_OUT}"
    raise ValueError(f"{COST}: {expected}, got {' and '.join(there) or 'none of them'}")


def check_costs(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError, with the number of the row from 1 and the column, unless each cost in `columns` of `rows` is a
    number from 0 to 1000."""
    for i, row in enumerate(rows, 1):
        for name in columns:
            try:
                cost = number(name, row.get(name))
            except ValueError as error:
                raise ValueError(f"row {i}: {error}") from None
            if cost is None or not 0.0 <= cost <= LIMIT:
                got = "none" if cost is None else describe(row[name])
                raise ValueError(f"row {i}: {name}: expected a number from 0 to {LIMIT:g}, got {got}")


def encode_models(rows: Sequence[Mapping[str, Any]], identifier: str | None = None) -> Encoding:
    """Return the encoding of a table of models: each name is a feature of its own, and so is each column of costs.

    `rows` has a row for each model; `identifier` is the column of their names, None to find it. Raise ValueError,
    naming the column, if there are not two models, no name, no cost, or a cost that makes no sense."""
    if not rows:
        raise ValueError("items: expected at least one model, got none")
    if len(rows) > MOST:
        raise ValueError(f"items: expected at most {MOST:,} models, got {len(rows):,}")
    costs = cost_columns(rows)
    check_costs(costs, rows)
    found = encode_names(rows, identifier=identifier)
    names = [found.name_of(row) for row in rows]
    if len(names) == 1:
        raise ValueError(f"items: expected two models or more to choose from, got {names[0]} alone")
    columns: list[Column] = []
    for column in found.columns:
        if column.name == found.identifier:
            columns.append(Category(name=column.name, levels=tuple(names), example=names[0], why="names the model"))
        elif column.name in costs:
            columns.append(Number(name=column.name, mean=0.0, scale=1.0, example=column.example, why="what it costs"))
        else:
            columns.append(Ignored(name=column.name, example=column.example, why="nothing is learned from it"))
    return Encoding(columns=tuple(columns), identifier=found.identifier)


def embeddings(size: int) -> Encoding:
    """Return the encoding of prompts that come with an embedding of `size` numbers, {"embedding": [...]}.

    Raise ValueError, naming the option, for a size below 1 or above 2^20."""
    check_count("--embedding", size, most=2**20)
    return Encoding(columns=(Vector(name="embedding", size=size, scale=1.0, why="as asked"),), identifier="")


def encode_prompts(context: Encoding | None) -> Encoding:
    """Return the encoding of requests: that of `context`, and the cost weight that a request may say.

    Without a `context` requests have a text, {"prompt": ...}, whose words are hashed into `BUCKETS` buckets. Raise
    ValueError if the context has a column for the cost weight already."""
    words = Text(name=PROMPT, words=("",) * BUCKETS, why="words of the prompt")
    columns: tuple[Column, ...] = (words,) if context is None else context.columns
    if any(column.name == WEIGHT for column in columns):
        raise ValueError(f"context: expected no column {WEIGHT}, as each request may say it, got one")
    weight = Number(name=WEIGHT, mean=0.0, scale=1.0, missing=1, why="a request may say it")
    return Encoding(columns=(*columns, weight), identifier="")


def crosses(items: Encoding, context: Encoding) -> list[tuple[str, str]]:
    """Return the pairs (column of the context, column of the models) whose products are features.

    Each column of the prompt is crossed with the name of the model, the cost weight with the costs. `items` and
    `context` are the encodings."""
    prompts = [column.name for column in context.columns if column.features() and column.name != WEIGHT]
    return [(name, items.identifier) for name in prompts] + [(WEIGHT, name) for name in _costs(items)]


def arrange(
    rows: Sequence[Mapping[str, Any]], identifier: str | None, context: Encoding | None
) -> tuple[Encoding, Encoding, list[tuple[str, str]]]:
    """Return (the encoding of the models `rows`, that of requests, the pairs of columns that are crossed).

    `identifier` is the column of the models' names, None to find it; `context` the encoding of prompts, None for their
    words."""
    items, prompts = encode_models(rows, identifier), encode_prompts(context)
    return items, prompts, crosses(items, prompts)


def models_of(encoding: Encoding) -> tuple[str, ...]:
    """Return the names of the models of the loop whose items have this `encoding`."""
    [names] = [column.levels for column in encoding.columns if isinstance(column, Category)]
    return names


def check_request(encoding: Encoding | None, context: Mapping[str, Any]) -> None:
    """Raise ValueError, naming the attribute, if the `context` of a request lacks what its `encoding` needs, or
    its cost weight makes no sense."""
    if context.get(WEIGHT) is not None:
        check_weight(WEIGHT, context[WEIGHT])
    if encoding is None or "features" in context:
        return
    for column in encoding.columns:
        if column.name != WEIGHT and column.features() and not column.missing and context.get(column.name) is None:
            expected = f"{column.size} numbers" if isinstance(column, Vector) else "a value"
            others = f"; there is {', '.join(map(repr, sorted(context)))}" if context else ""
            raise ValueError(f"{column.name}: expected {expected}, got none{others}")
        value = context.get(column.name)
        if isinstance(column, Text | Prose) and not isinstance(value, str | None):
            raise ValueError(f"{column.name}: expected a text, got {describe(value)}")


def find_costs(manifest: Manifest) -> Costs:
    """Return where the features of a candidate say what a model costs, in a loop with this `manifest`.

    Raise ValueError, naming the field, if the encodings are not those that a table of models makes."""
    names, costs = list(manifest.candidate_names), _costs(manifest.encoding)
    try:
        raw, given, missing = (
            [names.index(f"{before}{name}") for name in costs]
            for before in ("", f"{WEIGHT} × ", f"{WEIGHT} missing × ")
        )
    except ValueError:
        costs = []
    if not costs:
        raise ValueError(OTHERS)
    shares = np.array([1.0] if len(costs) == 1 else [IN_SHARE, 1.0 - IN_SHARE])
    return Costs(
        float(manifest.settings.cost_weight or 0.0),
        shares,
        *(np.array(each, np.int64) for each in (raw, given, missing)),
    )


def check_models(manifest: Manifest, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError, with the number of the row from 1 and the column, if one of `rows` is no model of the loop with
    this `manifest`: it has another name, or no cost that makes sense."""
    encoding = manifest.encoding
    check_costs(_costs(encoding), rows)
    names = [column.levels for column in encoding.columns if isinstance(column, Category)]
    if len(names) != 1:
        raise ValueError(OTHERS)
    [known] = names
    for i, row in enumerate(rows, 1):
        if (name := encoding.name_of(row)) not in known:
            told = f"{', '.join(known[:8])}{' ...' if len(known) > 8 else ''}"
            how = "for another, make a loop of the new table and import an export of this one into it"
            raise ValueError(f"row {i}: {encoding.identifier}: expected one of {told}, got {describe(name)}; {how}")


def check_weight(name: str, value: object) -> float:
    """Return the cost weight `value` as a float. Raise ValueError, naming the field `name`, unless it is a number from
    0 to 1000."""
    try:
        weight = number(name, value)
    except ValueError:
        weight = None
    if weight is None or isinstance(value, bool | str) or not 0.0 <= weight <= LIMIT or not math.isfinite(weight):
        raise ValueError(f"{name}: expected a number from 0 to {LIMIT:g}, got {describe(value)}")
    return weight


def _costs(items: Encoding) -> list[str]:
    return [column.name for column in items.columns if isinstance(column, Number)]
