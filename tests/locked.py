"""A folder that this user may not enter, also where the tests run as the administrator, whom nothing stops."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing in `folder` be looked at or opened, as in a folder without its x, and let `Path.is_file` and its like
    say no then, as from Python 3.14 on."""

    def refuse(does: Callable[..., Any]) -> Callable[..., Any]:
        def does_outside(path: Any, *args: Any, **options: Any) -> Any:
            if not isinstance(path, int) and folder in Path(os.path.abspath(os.fsdecode(path))).parents:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return does(path, *args, **options)

        return does_outside

    opening = refuse(open)
    for where, name, changed in (
        (os, "stat", refuse(os.stat)),
        (os, "open", refuse(os.open)),
        (builtins, "open", opening),
        (io, "open", opening),
        (Path, "is_file", lambda path: os.path.isfile(path)),
        (Path, "is_dir", lambda path: os.path.isdir(path)),
        (Path, "exists", lambda path: os.path.exists(path)),
        (Path, "is_fifo", lambda path: False),
    ):
        monkeypatch.setattr(where, name, changed)
