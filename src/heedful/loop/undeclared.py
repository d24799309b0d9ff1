"""Fields of requests that a loop makes no feature of: nothing is learned from them, so they are named.

A candidate may be an object with fields, and a context is one. Which of their fields become features was declared when
the loop was made: the columns of items, those of the context, and what each request says of an item (query
features)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from heedful.core.wording import one_line

MOST = 20
"""The most fields of one request that are named; the others are not."""
_CANDIDATES, _CONTEXT = "candidates.", "context."


def undeclared_fields(
    candidates: Iterable[Mapping[str, Any]],
    columns: Collection[str],
    context: Mapping[str, Any] | None,
    around: Collection[str] | None,
) -> tuple[str, ...]:
    """Return the names of fields of a request that the loop does not know, such as ("candidates.bm25",
    "context.country"), at most `MOST`, sorted.

    `candidates` are those that are objects, `columns` the fields that they may have; `around` are those that the
    `context` may have, None for a loop without an encoding of contexts, which keeps every context as it is."""
    strange = {f"{_CANDIDATES}{name}" for each in candidates for name in each if name not in columns}
    if context is not None and around is not None:
        strange |= {f"{_CONTEXT}{name}" for name in context if name not in around}
    return tuple(sorted(strange)[:MOST])


def describe_undeclared(names: Sequence[str], by_number: bool) -> str:
    """Return sentences that name the fields `names`, out of `undeclared_fields`, as no features, with what would use
    them; "" if there are none. `by_number` is that of the loop's interaction."""
    if not names:
        return ""
    return f"no feature of this loop: {', '.join(map(one_line, names))}. {use_of(names, by_number)}"


def use_of(names: Iterable[str], by_number: bool) -> str:
    """Return a sentence that says which option of a new loop would use the fields `names`, out of `undeclared_fields`.

    `by_number` says whether the loop knows items by number, so that it has no features of items."""
    where = {name.partition(".")[0] + "." for name in names}
    told = []
    if _CANDIDATES in where and by_number:
        told.append("Learners of this kind know items by name alone")
    elif _CANDIDATES in where:
        told.append(
            "A new loop uses what requests say of each item where it is declared (init --query-features FILE, or "
            "query_features), and other attributes as columns of its items"
        )
    if _CONTEXT in where:
        told.append(
            "A new loop uses what a context says if it is in its encoding of contexts (context, init --context)"
        )
    return ". ".join(told)
