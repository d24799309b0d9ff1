"""What options are given is read as typer reads it, values that are refused included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from heedful.cli.coercion import PlainCommand


def run(cls: type[TyperCommand], line: list[str]) -> tuple[list[Any], int, str]:
    """The arguments that a command of this class is called with, its exit code, and what it prints."""
    app, seen = typer.Typer(), []

    @app.command(cls=cls)
    def command(
        name: str,
        others: Annotated[list[str] | None, typer.Argument()] = None,
        show: Annotated[int | None, typer.Option(min=1, max=20)] = None,
        offset: int = 0,
        share: float = 0.5,
        click: Annotated[list[str] | None, typer.Option()] = None,
        file: Path | None = None,
        flag: bool | None = None,
        shout: Annotated[str, typer.Option(parser=str.upper)] = "a",
    ) -> None:
        seen.append((name, others, show, offset, share, click, file, flag, shout))

    got = CliRunner().invoke(app, line)
    return [seen, [type(each) for each in seen[0]] if seen else []], got.exit_code, got.output


LINES = (
    "a",
    "",
    "a b c",
    "a --show 5",
    "a --show 20",
    "a --show 21",
    "a --show 0",
    "a --show 005",
    "a --show five",
    "a --show 1_0",
    "a --show 5.0",
    "a --offset=-3",
    "a --offset 12",
    "a --offset ٣",
    "a --share .25",
    "a --share x",
    "a --click x --click y",
    "a --file missing.csv",
    "a --flag",
    "a --no-flag",
    "a --shout loud",
    "a --nothing",
    "--help",
)


@pytest.mark.parametrize("line", LINES)
def test_arguments_and_errors_are_those_of_typer(line: str) -> None:
    assert run(PlainCommand, line.split()) == run(TyperCommand, line.split())


def test_the_lines_above_are_taken_and_refused() -> None:
    codes = [run(PlainCommand, line.split())[1] for line in LINES]
    assert codes.count(0) > 10
    assert codes.count(2) > 5
