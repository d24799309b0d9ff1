"""The Chromium that drives the pages: which one is there, and how one comes here.

`python tests/browser/chromium.py` sees to it that there is one and says which; `make test-all` runs that first. As root
where apt-get has the package (Debian) that is Debian's `chromium`, else it is Playwright's download, in Playwright's
cache. HEEDFUL_CHROMIUM=FILE names one of your own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WANTED = (
    "expected a Chromium for the tests of the pages, and there is none. Install Debian's package as root (apt-get "
    "install chromium), or Playwright's (.venv/bin/python -m playwright install --with-deps chromium), or name one "
    "that is here: HEEDFUL_CHROMIUM=/path/to/chrome make test-all"
)


def find() -> Path | None:
    """A Chromium that starts, or None. FileNotFoundError: HEEDFUL_CHROMIUM names one that does not."""
    if named := os.environ.get("HEEDFUL_CHROMIUM"):
        if not _starts(Path(named)):
            raise FileNotFoundError(f"HEEDFUL_CHROMIUM: expected a Chromium that starts, got {named!r}")
        return Path(named)
    return next((path for path in _candidates() if _starts(path)), None)


def _candidates() -> Iterator[Path]:
    for name in NAMES:
        if path := shutil.which(name):
            yield Path(path)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield Path(playwright.chromium.executable_path)


def _starts(path: Path) -> bool:
    """It says its version. Some systems have a `chromium-browser` that only says what to install instead."""
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.returncode == 0 and any(char.isdigit() for char in told.stdout)


def install() -> bool:
    """Install one, saying how; False where nothing worked."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and shutil.which("apt-get"):
        print("heedful: no Chromium here; installing Debian's package chromium (apt-get), for the tests of the pages")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        packages = ["chromium", "fonts-liberation"]  # a Chromium without a font draws no words
        told = [
            _run("apt-get", "update", "-qq", env=quiet),
            _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages, env=quiet),
        ]
        if all(told) and find():
            return True
    print("heedful: no Chromium here; fetching Playwright's (about 180 MB, once), for the tests of the pages")
    needs = ["--with-deps"] if is_root and shutil.which("apt-get") else []
    return _run(sys.executable, "-m", "playwright", "install", "--no-shell", *needs, "chromium") and bool(find())


def _run(*command: str, env: dict[str, str] | None = None) -> bool:
    try:
        return subprocess.run(command, env=env).returncode == 0
    except OSError as error:
        print(f"heedful: {command[0]}: {error}")
        return False


def main() -> None:
    """See to it that there is a Chromium."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what is installed talks in between
    try:
        path = find()
        if path is None and install():
            path = find()
    except FileNotFoundError as error:
        sys.exit(f"heedful: {error}")
    if path is None:
        sys.exit(f"heedful: {WANTED}")
    print(f"heedful: the pages are tried in {path}")


if __name__ == "__main__":
    main()
