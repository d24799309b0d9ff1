"""Hits of a search engine, as they come as candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

HIT = "_id"
"""The field by which an object is recognised as a hit of a search engine."""


def are_hits(candidates: object) -> bool:
    """Return whether candidates are hits of a search engine: a sequence whose first entry is a mapping with the key
    `_id`."""
    if not isinstance(candidates, Sequence) or isinstance(candidates, str) or not len(candidates):
        return False
    return isinstance(candidates[0], Mapping) and HIT in candidates[0]
