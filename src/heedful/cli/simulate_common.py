"""The common part of all `heedful simulate` commands: run learners behind a progress bar, print and write the
results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heedful.cli.console import (
    console,
    new_table,
    note,
    notes,
    number,
    print_json,
    reading_input,
    width,
)
from heedful.cli.engine import distributing
from heedful.cli.output import plot, write_runs
from heedful.core.engine import cores
from heedful.core.formatting import short

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.core.engine import Engine
    from heedful.experiments.definitions.base import PreparedExperiment
    from heedful.experiments.run import Curve, Run
    from heedful.experiments.setting import Setting


class SimulateRequest(NamedTuple):
    """The options of `heedful simulate` that are the same for every experiment."""

    learners: list[str]
    """specs of the learners, such as "second-order:gamma=0.1" """
    rounds: int | None
    """the number of rounds of each run; None for as many as the experiment has by default"""
    engine: Engine
    """where the runs are done"""
    jobs: int | None
    """how many runs at a time; None for one on each processor"""
    interpreted: bool | None
    """whether to compile nothing; False: to compile first; None: when that pays"""
    plot: Path | None
    """the file to plot averages into"""
    out: Path | None
    """the file to write every round into"""
    json: bool
    """whether to print JSON instead of a table"""


def run_and_tell(request: SimulateRequest, prepared: PreparedExperiment) -> None:
    """Run the learners of `request` in a simulated experiment, print the result, and write the files asked for.

    `prepared` is the experiment with its data. The result is a table, or JSON.
    """
    from heedful.experiments.run import curve, difference

    setting = prepared.setting
    baselines = tuple(spec for spec in prepared.rules if spec not in request.learners)
    with reading_input():
        learners = {spec: setting.learner(spec) for spec in (*request.learners, *baselines)}
    for spec in request.learners:
        if why := prepared.warn(learners[spec]):
            note(f"{spec}: {why}")
    most = prepared.most_rounds
    if request.rounds and most is not None and request.rounds > most:
        note(f"everything is consumed after {most:,} rounds, fewer than {request.rounds:,}")
        request = request._replace(rounds=most)
    runs = _watch(request, setting, learners)
    curves = {spec: curve([run for run in runs if run.learner == spec]) for spec in learners}
    for spec, one in curves.items():
        if one.mean.size < one.longest:
            note(
                f"{spec}: items leave as they are found, and nothing was left after {one.mean.size} rounds: ended there"
            )
    best = _best(prepared, curves)
    of = {spec: [run for run in runs if run.learner == spec] for spec in learners}
    against = {spec: difference(of[spec], of[best]) for spec in learners if best and spec != best}
    if request.out:
        write_runs(request.out, runs, people=any(run.person for run in runs), measure=_key(setting))
    if request.plot:
        plot(request.plot, curves, learners, setting, prepared.title)
    if request.json:
        rows = [_as_json(prepared, baselines, spec, learners[spec], one) for spec, one in curves.items()]
        print_json([row | _less(best, against.get(spec)) for spec, row in zip(curves, rows)])
    else:
        table, remarks = _table(prepared, baselines, learners, curves, (best, against))
        console().print(table, remarks, sep="\n")


def _watch(request: SimulateRequest, setting: Setting, learners: dict[str, Any]) -> list[Run]:
    """Run all `learners` in `setting` behind a progress bar; return the runs by learner, seed and person."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from heedful.experiments.run import Advance, CompilationNotice, InterpretedNotice, Run, simulate

    rounds, jobs = request.rounds or setting.rounds, request.jobs or cores()
    screen, runs, compiling = notes(), [], []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress, distributing():
        bar = progress.add_task("rounds", total=rounds * len(setting.scenes) * len(learners))
        events = simulate(
            learners,
            setting,
            rounds,
            jobs=jobs,
            interpreted=request.interpreted,
            engine=request.engine,
            tell=lambda text: screen.print(f"heedful: {text}", markup=False, soft_wrap=True),
        )
        for event in events:
            match event:
                case CompilationNotice(name):
                    compiling.append(name)
                    progress.update(bar, description=f"rounds, compiling {', '.join(compiling)} (first time only)")
                case InterpretedNotice(name, why):
                    screen.print(f"heedful: {name} runs interpreted: {why}", markup=False, soft_wrap=True)
                case Advance(more):
                    progress.update(bar, advance=more)
                case Run():
                    runs.append(event)
    order = {spec: i for i, spec in enumerate(learners)}
    return sorted(runs, key=lambda run: (order[run.learner], run.seed, run.person))


Against = tuple[str, dict[str, tuple[float, float]]]
"""(the best simple learner, by other learner (mean, standard error) of its regret minus that of the best simple)."""


def _best(prepared: PreparedExperiment, curves: dict[str, Curve]) -> str:
    """Return the simple learner of `prepared.yardsticks` whose curve ends best; "" if none was run."""
    ends = {spec: float(curves[spec].mean[-1]) for spec in prepared.yardsticks if spec in curves}
    return min(ends, key=lambda spec: ends[spec]) if ends else ""


def _less(best: str, against: tuple[float, float] | None) -> dict[str, object]:
    """Return the part of --json that compares a learner with the simple learner `best`; {} if there is none."""
    if not best:
        return {}
    mean, error = (None, None) if against is None else (number(against[0]), number(against[1]))
    return {"less": {"learner": best, "difference": mean, "stderr": error}}


def _key(setting: Setting) -> str:
    """Return the name of what the setting measures as a JSON key: regret, rank_loss."""
    return setting.measure.replace(" ", "_")


def _as_json(
    prepared: PreparedExperiment, baselines: tuple[str, ...], spec: str, learner: Any, curve: Curve
) -> dict[str, object]:
    from heedful.experiments.run import bound, checkpoints

    setting = prepared.setting
    marks = checkpoints(curve.mean.size)
    bounds = [number(value) for value in bound(learner, setting, marks)]
    alone = curve.over == "nothing"
    asked_for = {"asked_for": spec not in baselines} if baselines else {}
    return {
        "learner": spec,
        **prepared.conditions,
        "rounds": curve.mean.size,
        "seeds": len({scene.seed for scene in setting.scenes}),
        "checkpoints": marks.tolist(),
        _key(setting): curve.mean[marks - 1].tolist(),
        "stderr": [None if alone else float(value) for value in curve.stderr[marks - 1]],
        "bound": None if None in bounds else bounds,
        "rounds_per_second": curve.rounds_per_second,
        **asked_for,
    }


def _table(
    prepared: PreparedExperiment,
    baselines: tuple[str, ...],
    learners: dict[str, Any],
    curves: dict[str, Curve],
    against: Against,
) -> tuple[Table, str]:
    """Return (a table of average regrets at as many checkpoints as the terminal has room for, remarks below it)."""
    from heedful.experiments.run import bound, checkpoints

    setting = prepared.setting
    limits = {spec: number(float(bound(learners[spec], setting, one.mean.size))) for spec, one in curves.items()}
    ends = {one.mean.size for one in curves.values()}
    marks = set(checkpoints(max(ends)).tolist()) | ends
    seeds = len({scene.seed for scene in setting.scenes})
    title = f"Average {setting.measure} of rounds 1 to t: {prepared.title}, {seeds} seed{'s' * (seeds > 1)}"
    for rounds in (marks, {t for t in marks if str(t)[0] == "1"} | ends, {1} | ends):
        table = _grid(title, curves, sorted(rounds), limits, baselines, against)
        if width(table) <= console().width:
            break
    with_bound = any(limit is not None for limit in limits.values())
    remarks = _remarks(setting, curves, with_bound)
    if against[1]:
        remarks += f" less {against[0]}: the difference to the best simple rule at the end, seed by seed."
    return table, "\n".join(filter(None, (remarks.strip(), prepared.remark)))


def _grid(
    title: str,
    curves: dict[str, Curve],
    marks: list[int],
    limits: dict[str, float | None],
    baselines: tuple[str, ...],
    against: Against,
) -> Table:
    table = new_table(title)
    table.add_column("learner", overflow="fold")
    for t in marks:
        table.add_column(f"t = {t:,}" if t == marks[0] else f"{t:,}", justify="right", no_wrap=True)
    with_bound = any(limit is not None for limit in limits.values())
    best, less = against
    for name in ["bound"] * with_bound + [f"less\n{best}"] * bool(less) + ["rounds/s"]:
        table.add_column(name, justify="right", no_wrap=True)
    for spec, one in curves.items():
        limit = limits[spec]
        cells = [_cell(one, t) for t in marks] + ["none" if limit is None else short(limit)] * with_bound
        if less:
            cells.append(_mean_with_error(*less[spec]) if spec in less else "")
        name = f"{spec}\n[dim]for comparison[/dim]" if spec in baselines else spec
        table.add_row(name, *cells, f"{one.rounds_per_second:,.0f}")
    return table


def _mean_with_error(mean: float, error: float) -> str:
    return f"{'+' if mean > 0 else ''}{short(mean)}" + ("" if error != error else f"\n[dim]±{error:.2g}[/dim]")


def _cell(curve: Curve, t: int) -> str:
    if t > curve.mean.size:
        return ""
    stderr = "" if curve.over == "nothing" else f"\n[dim]±{curve.stderr[t - 1]:.2g}[/dim]"
    return f"{short(curve.mean[t - 1])}{stderr}"


def _remarks(setting: Setting, curves: dict[str, Curve], with_bound: bool) -> str:
    one = next(iter(curves.values()))
    people = len(setting.scenes) // len({scene.seed for scene in setting.scenes})
    lines = [f"± is the standard error over {one.over}."] if one.over != "nothing" else []
    if people > 1:
        lines.append(f"Averaged over {people:,} people first." if one.over == "seeds" else f"{people:,} people.")
    cut = [f"{spec} after {c.mean.size}" for spec, c in curves.items() if c.mean.size < c.longest]
    if cut:
        lines.append(f"Ended where the first person had nothing left: {', '.join(cut)} rounds.")
    if with_bound:
        lines.append("bound: what theory promises after the last round.")
    return " ".join(lines)
