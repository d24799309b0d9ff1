"""The command line in this process: what it printed, where, and how it ended."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple

from typer import testing

from heedful.cli import app

testing._get_command = cache(testing._get_command)  # made once, and not for each line


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def heedful(line: str, *paths: object, width: int = 160, charset: str = "utf-8") -> Ended:
    """Run a command line, words apart by spaces and {} for each of `paths`, in a terminal of `width` columns whose
    characters are those of `charset`."""
    filled = iter(map(str, paths))
    args = [word.replace("{}", next(filled)) if "{}" in word else word for word in line.split()]
    result = testing.CliRunner(charset=charset).invoke(app, args, env={"COLUMNS": str(width)}, prog_name="heedful")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def bad(got: Ended, told: str, code: int = 2) -> None:
    """It ended with that sentence, and nothing else anywhere."""
    assert (got.code, got.out, got.err) == (code, "", f"heedful: {told}\n")


def refusal(line: str, *paths: object, code: int = 2, width: int = 160) -> str:
    """Run a command line that is refused; return the sentence that is all that it says."""
    got = heedful(line, *paths, width=width)
    assert (got.code, got.out, got.err[:9], got.err.count("\n")) == (code, "", "heedful: ", 1), got
    return got.err[9:-1]


def done(line: str, *paths: object, width: int = 160, charset: str = "utf-8", notes: bool = False) -> Ended:
    """Run a command line that must go well; it has nothing to say besides, unless it may print `notes`."""
    got = heedful(line, *paths, width=width, charset=charset)
    assert (got.code, got.err if not notes else "") == (0, ""), got
    return got
