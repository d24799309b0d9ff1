"""How long hypothesis looks: `make test` 100 examples a property, `make test-long` (HEEDFUL_LONG=1) 2,000."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("tests", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("tests"), max_examples=2000)
settings.load_profile("long" if os.environ.get("HEEDFUL_LONG") else "tests")
