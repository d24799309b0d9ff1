"""100 examples a property, or what its own budget says."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from budget import FACTOR

settings.register_profile(
    "tests",
    deadline=None,
    print_blob=True,
    max_examples=100 * FACTOR,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
