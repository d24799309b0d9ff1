"""`heedful sweep`: run every cell of a grid, on all processors; a cell that has a result already is not run again."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json
from heedful.cli.console import Failure, console, new_table, note, notes, number, print_json, reading_input, say
from heedful.cli.engine import EngineOption, Interpreted, Jobs, check_option, distributing
from heedful.cli.grid import Cell, load_cell, read_grid, write_cell, write_whole
from heedful.core.engine import run_tasks
from heedful.core.formatting import short
from heedful.data.spreadsheet import write_rows
from heedful.experiments.registry import grid_experiments

if TYPE_CHECKING:
    from heedful.core.engine import Engine
    from heedful.experiments.setting import Setting


def sweep(
    grid: Annotated[Path, typer.Argument(help="What to run, in TOML.")],
    out: Annotated[Path, typer.Option(help="The folder for results, one file a cell; made if it is not there.")] = Path(
        "runs"
    ),
    engine: EngineOption = "auto",
    jobs: Jobs = None,
    interpreted: Interpreted = None,
    json: Json = False,
) -> None:
    """A grid looks like this. Paths are relative to its folder, and a list in a learner's table stands for each of its
    values:

        data = {letor = ["letor4-mq2008/S*.txt.gz"]}
        users = ["strict:alpha=0.5", "noisy:depth=10"]
        seeds = 5
        rounds = 784

        [[learners]]
        name = "second-order"
        gamma = [0.1, 1, 10]

    It can be stopped at any time: the next run computes what is missing. RUNS/summary.csv has a row for every learner
    with every user of the latest grid.
    """
    check_option(engine)
    with reading_input():
        cells = read_grid(grid)
        out.mkdir(parents=True, exist_ok=True)
    results, todo = [], []
    for cell in cells:
        result, wrong = load_cell(out, cell)
        if wrong:
            note(f"{cell.name} is computed again: {wrong}")
        if result is None:
            todo.append(cell)
        else:
            results.append((cell, result))
    stored = len(results)
    computed, failures = _compute_all(out, todo, engine, jobs, interpreted)
    note(f"{len(computed)} cells computed, {stored} there before{f', {len(failures)} failed' if failures else ''}")
    order = {cell.name: i for i, cell in enumerate(cells)}
    rows = _summary(sorted(results + computed, key=lambda pair: order[pair[0].name]))  # sums in one order
    rounds = cells[0].spec["rounds"] if cells else None
    for row in rows:
        if rounds and row["rounds"] < rounds:
            note(
                f"{row['learner']} with {row['user']}: nothing was left to ask after {row['rounds']} of {rounds} rounds"
            )
    write_whole(out / "summary.csv", _as_csv(rows))
    if json:
        counts = {"computed": len(computed), "kept": stored, "failed": len(failures)}
        print_json({"cells": counts, "summary": rows})
    elif rows:
        _show(rows, out)
    for failure in dict.fromkeys(failures):
        note(failure)
    if failures:
        raise Failure(f"{len(failures)} of {len(cells)} cells failed; the next run tries them again")


def _compute_all(
    out: Path, todo: list[Cell], engine: Engine, jobs: int | None, interpreted: bool | None
) -> tuple[list[tuple[Cell, dict[str, Any]]], list[str]]:
    """Do the runs `todo`, write their results into `out`; return (runs with results, error messages of the others)."""
    from rich.progress import Progress

    results, failures, slow, screen = [], [], set[str](), notes()
    if not todo:
        return [], []
    names = [f"{cell.spec['learner']} with {cell.spec['user']}" for cell in todo]
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress, distributing():
        bar = progress.add_task("cells", total=len(todo))
        # They are in the order of users and seeds, so a worker finds the data of the cell before in memory.
        shared = (bool(interpreted) if engine == "ray" else interpreted,)
        outcomes = run_tasks(compute, todo, engine=engine, jobs=jobs, shared=shared, names=names, tell=note)
        for index, outcome, error in outcomes:
            cell = todo[index]
            if error is None:
                result, text = outcome
                write_cell(out, cell, result)
                results.append((cell, result))
                slow |= {text} if text else set()
            else:
                failures.append(str(error).splitlines()[0])
            progress.advance(bar)
    for text in sorted(slow):
        note(text)
    return results, failures


# What the help says of each experiment is the experiment's own.
sweep.__doc__ = "\n\n".join(
    [inspect.cleandoc(sweep.__doc__ or ""), *(experiment.grid_help for experiment in grid_experiments().values())]
)


# ---------------------------------------------------------------------------- one cell, in any process


def _setting(cell: Cell) -> Setting:
    """Return what the run `cell` simulates: data, simulated user, and the random worlds of its seed alone."""
    data, user, seed = cell.spec["data"], cell.spec["user"], cell.spec["seed"]
    experiment = grid_experiments()[data["kind"]]
    setting = experiment.setting(cell.files, data, user, cell.seeds if experiment.all_seeds else (seed,))
    return setting._replace(scenes=tuple(scene for scene in setting.scenes if scene.seed == seed))


def compute(interpreted: bool | None, cell: Cell) -> tuple[dict[str, Any], str]:
    """Run `cell`, one learner with one simulated user on one seed; `interpreted` is as in `simulate`.

    Return (its result, a sentence on why the learner could not be compiled, or "").
    """
    from heedful.experiments.run import InterpretedNotice, Run, checkpoints, curve, simulate

    setting, name = _setting(cell), cell.spec["learner"]
    learners, rounds = {name: setting.learner(cell.learner)}, cell.spec["rounds"] or setting.rounds
    events = list(simulate(learners, setting, rounds, interpreted=interpreted))
    average = curve([event for event in events if isinstance(event, Run)])
    marks = checkpoints(average.mean.size)
    result = {
        "rounds": average.mean.size,
        "checkpoints": marks.tolist(),
        "regret": average.mean[marks - 1].tolist(),
        "stderr": [number(value) for value in average.stderr[marks - 1].tolist()],
        "rounds_per_second": average.rounds_per_second,
    }
    why = next((event.reason for event in events if isinstance(event, InterpretedNotice)), "")
    return result, f"{name} runs interpreted: {why}" if why else ""


# ---------------------------------------------------------------------------- all cells together


def _summary(cells: list[tuple[Cell, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a row for each user and learner: regret over seeds, its error over seeds or, with one, over people."""
    import numpy as np

    from heedful.experiments.run import standard_error

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell, result in cells:
        groups.setdefault((cell.spec["user"], cell.spec["learner"]), []).append(result)
    rows = []
    for (user, learner), results in groups.items():
        t = max(set.intersection(*[set(result["checkpoints"]) for result in results]))
        indices = [result["checkpoints"].index(t) for result in results]
        regrets = np.array([result["regret"][i] for i, result in zip(indices, results)])
        error = number(float(standard_error(regrets))) if len(results) > 1 else results[0]["stderr"][indices[0]]
        rows.append(
            {
                "user": user,
                "learner": learner,
                "seeds": len(results),
                "rounds": t,
                "regret": float(regrets.mean()),
                "stderr": error,
                "rounds_per_second": float(np.mean([result["rounds_per_second"] for result in results])),
            }
        )
    best = {user: min(row["regret"] for row in rows if row["user"] == user) for user, _ in groups}
    rows = [row | {"best": row["regret"] == best[row["user"]]} for row in rows]
    return sorted(rows, key=lambda row: (row["user"], row["learner"]))


def _as_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    names = ["user", "learner", "seeds", "rounds", "regret", "stderr", "rounds_per_second", "best"]
    write_rows(text, names, ([row[name] for name in names] for row in rows))
    return text.getvalue()


def _show(rows: list[dict[str, Any]], out: Path) -> None:
    right = "rounds", "regret", "next"
    table = new_table("The best learner for each user, by average regret", ("user", "learner", *right), right)
    for best in (row for row in rows if row["best"]):
        others = sorted(row["regret"] for row in rows if row["user"] == best["user"] and row is not best)
        stderr = "" if best["stderr"] is None else f" ±{best['stderr']:.2g}"
        next_best = short(others[0]) if others else ""
        table.add_row(best["user"], best["learner"], f"{best['rounds']:,}", short(best["regret"]) + stderr, next_best)
    screen = console()
    screen.print(table)
    if any(row["stderr"] is not None for row in rows):
        screen.print(f"± is the standard error over {'seeds' if rows[0]['seeds'] > 1 else 'people'}.")
    say(f"All {len(rows)}: {out / 'summary.csv'}")
