"""100 examples a property, or what its own budget says; and the figures that tests tell."""

from __future__ import annotations

import pytest
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests measured, whatever came of them: `record_property("told", "...")`."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, told in report.user_properties:
                    if name == "told":
                        terminalreporter.write_line(f"measured: {told}")
