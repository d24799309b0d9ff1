"""What to install where an optional package is missing, and where the examples are."""

from __future__ import annotations

from pathlib import Path

CLONE = (Path(__file__).resolve().parents[3] / "pyproject.toml").is_file()
"""Whether this heedful runs in a clone of its repository, and is not an installed copy."""
EXAMPLES = Path(__file__).resolve().parents[3 if CLONE else 1] / "examples"
"""The folder of examples: that of the clone, or the one that was installed with the package."""


def lacking(why: str, package: str, extra: str) -> str:
    """Return that `why` (such as "--plot") needs `package`, and the command that installs the `extra` with it."""
    return f"{why} needs {package}, which is not installed: pip install '{'.' if CLONE else 'heedful'}[{extra}]'"
