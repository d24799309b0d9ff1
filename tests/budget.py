"""How long hypothesis looks: `make test-long` (HEEDFUL_LONG=1) four times as long, which ends within the hour."""

from __future__ import annotations

import os

from hypothesis import settings

FACTOR = 4 if os.environ.get("HEEDFUL_LONG") else 1


def examples(n: int) -> settings:
    """n examples for a property whose examples are dear."""
    return settings(max_examples=n * FACTOR)
