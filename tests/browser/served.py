"""What a test looks at, and how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

from processes import Process

Opened = Callable[..., Page]
"""`opened(url, **options)`: a page in a window of its own."""


class Served(NamedTuple):
    """A loop of its own for one test, on the module's server."""

    name: str
    path: Path
    server: Process

    @property
    def url(self) -> str:
        """Its first page."""
        return f"{self.server.url}/loops/{self.name}"
