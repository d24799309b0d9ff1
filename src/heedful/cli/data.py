"""`heedful data`: list the data sets that the loaders know, and check whether a folder holds them undamaged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.console import BadInput, console, new_table, print_json, reading_input

_MARKS = {
    "ok": "[green]✓ ok[/]",
    "damaged": "[red]✗ damaged[/]",
    "missing": "[red]✗ missing[/]",
    "unknown": "? unknown",
}


def data(
    folder: Annotated[
        Path | None, typer.Argument(help="Check the data sets in this folder and its sub-folders.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
) -> None:
    """List the data sets that are known, or check those in a folder.

    Nothing is downloaded: the list says where the official copy of each is. A check compares files with the SHA-256
    sums that are known.

    Exit codes: 0 listed, or all files are right; 1 a file is damaged or missing; 2 bad input.
    """
    if folder is None:
        _list(json)
    else:
        _check(folder, json)


def _list(json: bool) -> None:
    from rich.markup import escape

    from heedful.data.datasets import KNOWN

    if json:
        return print_json([known._asdict() | {"files": dict(known.files)} for known in KNOWN])
    table = new_table("Data sets")
    for name in ("data set", "what", "format", "licence", "check sums"):
        table.add_column(name, overflow="fold")
    for known in KNOWN:
        sums = f"{len(known.files)} files" if known.files else "none"
        table.add_row(f"[bold]{known.key}[/]", escape(known.title), known.format, escape(known.licence), sums)
    screen = console()
    screen.print(table)
    for known in KNOWN:
        screen.print(f"{known.key}: {known.home}", markup=False, soft_wrap=True)
        for file, sha256 in known.files.items():
            told = f"sha256 {sha256}" if sha256 else "no sum on record"
            screen.print(f"  {file}, uncompressed: {told}", markup=False, highlight=False, soft_wrap=True)
    screen.print("\nNothing is fetched. `heedful data FOLDER` compares what you have with the sums on record.")
    return None


def _check(folder: Path, json: bool) -> None:
    from rich.markup import escape

    from heedful.data.datasets import check

    with reading_input():
        findings = check(folder)
        if not findings:
            raise BadInput(f"{folder}: no known data set in it; `heedful data` lists them")
    if json:
        print_json([finding._asdict() for finding in findings])
    else:
        table = new_table(f"Data sets in {escape(str(folder))}")
        for name in ("data set", "file", "", "detail"):
            table.add_column(name, overflow="fold")
        for found in findings:
            detail = "" if found.status == "ok" else found.detail
            table.add_row(found.dataset, escape(found.file), _MARKS[found.status], escape(detail))
        console().print(table)
    if any(found.status in ("damaged", "missing") for found in findings):
        raise typer.Exit(1)
