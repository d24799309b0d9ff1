"""Real data, where there is some beside the checkout; and a cache of compiled loops that lasts for the run."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

DATA = Path(os.environ.get("HEEDFUL_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared" / "data")

settings.register_profile("tests", deadline=None, print_blob=True)
settings.load_profile("tests")
