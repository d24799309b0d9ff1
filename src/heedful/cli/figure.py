"""`heedful figure`: the figures of the papers, drawn from your data, with a verdict on each of their claims."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json
from heedful.cli.console import BadInput, check_extra, console, new_table, note, notes, print_json, reading_input, say
from heedful.cli.engine import EngineOption, Jobs, check_option, distributing
from heedful.core.engine import cores
from heedful.core.paths import path_kind

if TYPE_CHECKING:
    from heedful.papers.figure import Figure, Outcome, Panel
    from heedful.papers.page import Drawing
    from heedful.papers.run_figure import Sources
    from heedful.papers.runner import Workers

_MARKS = {
    "holds": "[green]✓ holds[/]",
    "does not hold": "[red]✗ does not[/]",
    "cannot be told": "[yellow]? cannot be told[/]",
    "not run": "not run",
}


def figure(
    name: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The figure, such as jair2015/fig7. Without it, all figures are listed."),
    ] = None,
    data: Annotated[Path, typer.Option(metavar="DIR", help="The folder with letor4-mq2008, movielens-1m, ...")] = Path(
        "."
    ),
    letor: Annotated[
        list[Path], typer.Option(metavar="FILE", help="LETOR files for web search, instead of MQ2008.")
    ] = [],  # noqa: B006
    all_: Annotated[bool, typer.Option("--all", help="Every figure, and one HTML page of them.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run less: fewer rounds, orders, people and streams.")] = False,
    labels: Annotated[
        str, typer.Option(metavar="right|published", help="For the figures of [H12]: which labels its data sets have.")
    ] = "right",
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for pictures; made if it is not there.")] = Path(
        "figures"
    ),
    engine: EngineOption = "auto",
    jobs: Jobs = None,
    csv: Annotated[bool, typer.Option("--csv", help="Also write what is drawn as CSV, next to the pictures.")] = False,
    json: Json = False,
) -> None:
    """The verdict on a claim is that it holds, does not hold, or cannot be told. Panels whose data set is not in the
    data folder are left out, with a note. The full sizes are those of the papers: twenty permutations of the queries,
    and all people of the test half for movies. Claims about web search are judged on one pass through the queries. All
    lines of a plot meet the same arrivals, so the statistics are of paired differences. The figures of [H12] use the
    right labels; --labels published uses those that its tables were made with, and compares every cell.

    Example: heedful figure nips2012/table1 --labels published --quick --data DIR

    Exit codes: 0 drawn, whatever became of the claims; 1 no data for it, or something failed; 2 bad input.
    """
    if name is None and not all_:
        return _list(json)
    if name is not None and all_:
        raise BadInput("figure: expected an ID or --all, got both")
    check_option(engine)
    check_extra("matplotlib", "plot", "heedful figure")
    from heedful.data.sushi import check_labels
    from heedful.papers import FIGURES, find_figure, with_labels
    from heedful.papers.run_figure import Sources, missing_panels
    from heedful.papers.runner import Workers

    with reading_input():
        check_labels(labels)
        figures = list(FIGURES.values()) if all_ else [find_figure(str(name))]
        figures = figures if labels == "right" else [with_labels(one, labels) for one in figures]
        if path_kind(data) != "folder":
            raise BadInput(f"--data: expected a folder, got {str(data)!r}")
        out.mkdir(parents=True, exist_ok=True)
    sources = Sources(data, letor)
    for why in dict.fromkeys(why for one in figures for why in missing_panels(one, sources).values()):
        note(f"left out: {why}")
    workers = Workers(jobs or cores(), engine, note, interpreted=None)
    drawings, descriptions = [], []
    for one in figures:
        drawing, described = _draw(one, sources, quick, workers, out, csv)
        drawings.append(drawing)
        descriptions.append(described)
        if not json:
            _show(one, drawing, described)
    if all_:
        _page(drawings, out / "index.html", quick)
    if json:
        print_json(descriptions if all_ else descriptions[0])
    if not any(one.picture for one in drawings):
        raise typer.Exit(1)
    return None


def _draw(
    one: Figure, sources: Sources, quick: bool, workers: Workers, out: Path, csv: bool
) -> tuple[Drawing, dict[str, Any]]:
    """Run the figure `one`, write its pictures and table; return its part of the page, and of --json."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from heedful.papers.drawing import draw
    from heedful.papers.figure import judged_rounds, verdicts
    from heedful.papers.page import Drawing
    from heedful.papers.run_figure import run
    from heedful.papers.series import write_csv

    screen, started = notes(), time.monotonic()
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with (
        Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress,
        distributing(),
        reading_input(),
    ):
        bar = progress.add_task(one.id, total=1.0)
        outcome = run(
            one,
            sources,
            quick=quick,
            workers=workers,
            tell=lambda what, share: progress.update(bar, description=what, completed=share),
        )
    judged = verdicts(one, outcome)
    name = one.id.replace("/", "-")
    pictures = [out / f"{name}.{kind}" for kind in ("png", "svg", "pdf")] if outcome else []
    table = out / f"{name}.csv" if csv and outcome else None
    if outcome:
        draw(one, outcome, pictures, quick=quick)
    if table:
        write_csv(one, outcome, table)
    drawing = Drawing(
        one, judged, pictures[1] if pictures else None, time.monotonic() - started, judged_rounds(outcome)
    )
    files = {"pictures": [str(p) for p in pictures], "csv": str(table) if table else None}
    return drawing, _describe(drawing, outcome, quick) | files


def _describe(drawing: Drawing, outcome: Outcome, quick: bool) -> dict[str, Any]:
    """Return a figure as --json prints it."""
    from heedful.papers.figure import plain

    one = drawing.figure
    claims = [
        {"says": claim.says, "verdict": verdict.conclusion, "found": verdict.words, "paired": plain(verdict.paired)}
        for claim, verdict in zip(one.claims, drawing.verdicts)
    ]
    return {
        "id": one.id,
        "title": one.title,
        "paper": one.paper,
        "note": one.note,
        "judged_on": drawing.judged_on,
        "quick": quick,
        "seconds": drawing.seconds,
        "claims": claims,
        "panels": {panel.key: _lines(panel, outcome[panel.key]) for panel in one.panels if panel.key in outcome},
        "paper_numbers": [{"panel": key, "line": label, "paper": value} for key, label, value in one.paper_numbers],
    }


def _lines(panel: Panel, lines: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `lines` of `panel` for --json, by label, each with its average regret at checkpoints, or its value."""
    import numpy as np

    from heedful.experiments.run import average_regret, checkpoints, standard_error
    from heedful.papers.figure import plain
    from heedful.papers.panels import CHOICES

    described = {}
    for label, ran in lines.items():
        T = ran.regrets.shape[1]
        marks = np.arange(1, T + 1) if panel.world in CHOICES else np.union1d(checkpoints(T), ran.once or T)
        average = ran.regrets if panel.world in CHOICES else average_regret(ran.regrets)[:, marks - 1]
        if panel.kind == "distribution":  # the rankings of a chain are one cluster
            marks, average = marks[:1], ran.regrets.mean(axis=1, keepdims=True)
        described[label] = {
            "learner": ran.learner,
            "person": ran.line.user,
            "runs": len(ran.regrets),
            "rounds": marks.tolist(),
            "regret": average.mean(axis=0).tolist(),
            "stderr": plain(standard_error(average)),
            "seconds_per_run": float(ran.seconds.mean()) if ran.seconds.size else None,
            "theorem": ran.theorem,
            "lacking": ran.lacking,
            "bound_rounds": ran.marks.tolist(),
            "bound": plain(ran.bound),
        }
    return described


def _list(json: bool) -> None:
    from heedful.papers import FIGURES
    from heedful.papers.panels import WORLDS

    rows = [
        {
            "id": one.id,
            "title": one.title,
            "paper": one.paper,
            "worlds": list(dict.fromkeys(panel.world for panel in one.panels)),
            "claims": [claim.says for claim in one.claims],
        }
        for one in FIGURES.values()
    ]
    if json:
        return print_json(rows)
    columns = ("figure", "what", "needs", "claims")
    table = new_table("Figures of the papers", columns, right=("claims",), whole="figure")
    for row in rows:
        table.add_row(f"[bold]{row['id']}[/]", str(row["title"]), ", ".join(row["worlds"]), str(len(row["claims"])))
    screen = console()
    screen.print(table)
    for key, words in WORLDS.items():
        say(f"{key}: {words}")
    screen.print("\nNothing is fetched: docs/data.md says where the data sets live.")
    return None


def _show(one: Figure, drawing: Drawing, described: dict[str, Any]) -> None:
    """Print the claims of the figure `one`, each with its verdict, and the files written."""
    from rich.markup import escape

    if one.paper_numbers:
        _print_comparison(one, described)
    table = new_table(f"{one.id}: {one.title}", ("the paper says", "here", "found"), whole="here")
    for claim, verdict in zip(one.claims, drawing.verdicts):
        table.add_row(escape(claim.says), _MARKS[verdict.conclusion], escape(verdict.words))
    screen = console()
    screen.print(table)
    for words in (one.note, drawing.judged_on):
        if words:
            screen.print(words, markup=False)
    for path in (*described["pictures"], described["csv"]):
        if path:
            say(path)


def _print_comparison(one: Figure, described: dict[str, Any]) -> None:
    """Print a table of the final value of each line in each panel, with the paper's number in brackets."""
    paper = {(key, label): value for key, label, value in one.paper_numbers}
    panels = list(described["panels"])
    table = new_table(f"{one.title} (the paper's)", ("", *panels), right=panels)
    for label in dict.fromkeys(line.label for panel in one.panels for line in panel.lines):
        cells = []
        for key, lines in described["panels"].items():
            mean, error = lines[label]["regret"][-1], lines[label]["stderr"][-1]
            scatter = "" if error is None else f" ± {error:.3f}"
            printed = f" ({paper[key, label]:.3f})" if (key, label) in paper else ""
            cells.append(f"{mean:.3f}{scatter}{printed}")
        table.add_row(label, *cells)
    console().print(table)


def _page(drawings: list[Drawing], path: Path, quick: bool) -> None:
    from heedful.papers.page import page

    seconds = sum(one.seconds for one in drawings)
    size = "small sizes (--quick)" if quick else "full size"
    path.write_text(page(drawings, f"Every figure at {size}, in {seconds:,.0f} s."), encoding="utf-8")
    note(f"all of them: {path}")
