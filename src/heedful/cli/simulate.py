"""`heedful simulate`: learners against a simulated person, on ranking data, a table of items or MovieLens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedful.cli.output import check_path, plot, write_runs
from heedful.cli.terminal import (
    console,
    cores,
    new_table,
    note,
    notes,
    number,
    print_json,
    reading_input,
    short,
    wanted_extra,
    width,
)

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.experiment import Curve, Run, Setting

app = typer.Typer(help="Run learners against a simulated person on your data.")

Learners = Annotated[
    list[str],
    typer.Option("--learner", "-l", metavar="NAME[:A=1,...]", help="May be repeated; `heedful learners` lists them."),
]
Rounds = Annotated[int, typer.Option(min=1, help="How many rounds each run has.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs of each learner, on seeds one after the other.")]
FirstSeed = Annotated[int, typer.Option(min=0, help="The first of the seeds.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Runs at a time.", show_default="all cores")]
Float32 = Annotated[bool, typer.Option("--float32", help="Features in single precision.")]
Interpreted = Annotated[bool, typer.Option("--interpreted", help="Do not compile.")]
Plot = Annotated[Path | None, typer.Option(help="Draw average regret against rounds into this file.")]
Out = Annotated[Path | None, typer.Option(help="Write the regret of every round: .csv or .npz.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


@app.callback(invoke_without_command=True)
def simulate(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


class Wanted(NamedTuple):
    """What was asked for, whatever the data."""

    learners: list[str]
    user: str
    rounds: int | None
    jobs: int | None
    interpreted: bool
    plot: Path | None
    out: Path | None
    json: bool


@app.command(
    epilog="Example: heedful simulate letor S1.txt.gz S2.txt.gz --user strict:alpha=0.5 "
    "--learner perceptron --learner second-order --seeds 5"
)
def letor(
    files: Annotated[list[str], typer.Argument(help="LETOR / SVMlight files, plain or gzip.")],
    user: Annotated[str, typer.Option(help="strict:alpha=A or noisy:depth=D.")] = "strict:alpha=0.5",
    learner: Learners = ["perceptron"],  # noqa: B006
    rounds: Annotated[
        int | None,
        typer.Option(min=1, show_default="one pass over the queries", help="How many rounds each run has."),
    ] = None,
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    k: Annotated[int, typer.Option(min=2, help="Positions of a ranking that count.")] = 5,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Plot = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Rank the documents of queries for somebody whose corrections follow from the labels.

    The person's utility is the least-squares fit of the labels. Every round is a query, in random order; the person
    answers the ranking with a better one. Several passes are made where there are more rounds than queries.
    """
    wanted = Wanted(learner, user, rounds, jobs, interpreted, plot, out, json)
    with reading_input():
        _check_files(wanted)
        from heedful.data.letor import load_letor
        from heedful.experiment import letor_setting
        from heedful.naming import make_user

        person, chosen = make_user(user), range(first_seed, first_seed + seeds)
        dtype = "float32" if float32 else "float64"
        setting = letor_setting(load_letor(*files), person, k=k, seeds=chosen, dtype=dtype)
    _simulate(wanted, setting, f"{setting.rounds:,} queries")


@app.command(
    epilog="Example: heedful simulate catalogue items.csv --user better --learner perceptron --rounds 300 --people 100"
)
def catalogue(
    items: Annotated[str, typer.Argument(metavar="ITEMS.csv", help="A table of items with numeric columns.")],
    user: Annotated[str, typer.Option(help="strict:alpha=A, better, better:exact=true or best.")] = "better",
    learner: Learners = ["perceptron"],  # noqa: B006
    rounds: Rounds = 100,
    people: Annotated[int, typer.Option(min=1, help="People with a hidden taste each.")] = 20,
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Plot = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Propose items to people with hidden tastes, who answer each with one they like better.

    What was shown and what came back leave the pool. Every person has a learner of their own.
    """
    wanted = Wanted(learner, user, rounds, jobs, interpreted, plot, out, json)
    with reading_input():
        _check_files(wanted)
        from heedful.data.catalogue import load_catalogue
        from heedful.experiment import catalogue_setting
        from heedful.naming import make_user

        person, chosen = make_user(user), range(first_seed, first_seed + seeds)
        table, dtype = load_catalogue(items), "float32" if float32 else "float64"
        note(f"{items}: features are {', '.join(table.features)}; columns that are not numbers are left out")
        setting = catalogue_setting(table, person, people=people, seeds=chosen, dtype=dtype)
    _simulate(wanted, setting, f"{len(table.names):,} items, {people:,} people")


@app.command(
    epilog="Example: heedful simulate movielens ml-1m --user better --learner perceptron --rounds 1500 --people 100"
)
def movielens(
    folder: Annotated[Path, typer.Argument(help="MovieLens 1M or 100K, as GroupLens packs it; plain or gzip.")],
    user: Annotated[str, typer.Option(help="strict:alpha=A, expected, better, better:exact=true or best.")] = "better",
    learner: Learners = ["perceptron"],  # noqa: B006
    rounds: Rounds = 1500,
    people: Annotated[int, typer.Option(min=0, help="So many of the other half of the users; 0 is all of it.")] = 100,
    split: Annotated[int, typer.Option(min=0, help="The seed that halves the users.")] = 0,
    dimension: Annotated[
        int, typer.Option(min=0, show_default="by cross-validation", help="How many features a movie has.")
    ] = 0,
    regularisation: Annotated[
        float, typer.Option(min=0.0, show_default="by cross-validation", help="What holds the features small.")
    ] = 0.0,
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Plot = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Recommend movies to people who rated some of them, one movie after the other.

    The ratings of one half of the users give every movie its features. The utility of a person of the other half is
    the least-squares fit of her ratings. What was shown and what came back leave the pool. Every person has a learner
    of their own.
    """
    wanted = Wanted(learner, user, rounds, jobs, interpreted, plot, out, json)
    with reading_input():
        _check_files(wanted)
        from heedful.data.movielens import load_movielens
        from heedful.movies import cinema, movie_setting
        from heedful.naming import make_user

        person, chosen = make_user(user), range(first_seed, first_seed + seeds)
        house = cinema(load_movielens(folder), split=split, dimension=dimension, regularisation=regularisation)
        m, N = house.X.shape
        note(f"{folder}: {m:,} movies with {N} features (regularisation {house.regularisation:g}), from half the users")
        dtype = "float32" if float32 else "float64"
        setting = movie_setting(house, person, people=people, seeds=chosen, dtype=dtype)
    _simulate(wanted, setting, f"{m:,} movies, {people or house.people.size:,} people")


def _check_files(wanted: Wanted) -> None:
    """Refuse what could not be written before anything is run."""
    check_path("--out", wanted.out, (".csv", ".npz"))
    check_path("--plot", wanted.plot, (".png", ".pdf", ".svg"))
    if wanted.plot:
        wanted_extra("matplotlib", "plot", "--plot")
    for spec in wanted.learners:
        if wanted.learners.count(spec) > 1:
            raise ValueError(f"--learner: wanted each once, got {spec} {wanted.learners.count(spec)} times")


def _simulate(wanted: Wanted, setting: Setting, data: str) -> None:
    from heedful.experiment import curve

    with reading_input():
        learners = {spec: setting.learner(spec) for spec in wanted.learners}
    runs = _watch(wanted, setting, learners)
    curves = {spec: curve([run for run in runs if run.learner == spec]) for spec in learners}
    for spec, one in curves.items():
        if one.mean.size < one.longest:
            note(
                f"{spec}: items leave as they are found, and nothing was left after {one.mean.size} rounds: ended there"
            )
    if wanted.out:
        write_runs(wanted.out, runs, people=any(run.person for run in runs))
    if wanted.plot:
        plot(wanted.plot, curves, learners, setting, f"{wanted.user}, {data}")
    if wanted.json:
        print_json([_as_json(wanted, setting, spec, learners[spec], one) for spec, one in curves.items()])
    else:
        table, remarks = _table(wanted, setting, learners, curves, data)
        console().print(table, remarks, sep="\n")


def _watch(wanted: Wanted, setting: Setting, learners: dict[str, Any]) -> list[Run]:
    """Run everything behind a progress bar; the runs by learner, seed and person."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from heedful.experiment import Advance, Compiling, Interpreting, Run, simulate

    rounds, jobs = wanted.rounds or setting.rounds, wanted.jobs or cores()
    screen, runs = notes(), []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("rounds", total=rounds * len(setting.scenes) * len(learners))
        for event in simulate(learners, setting, rounds, jobs=jobs, interpreted=wanted.interpreted):
            match event:
                case Compiling(name):
                    progress.update(bar, description=f"compiling {name} (first time only)")
                case Interpreting(name, why):
                    screen.print(f"heedful: {name} runs interpreted: {why}", markup=False, soft_wrap=True)
                case Advance(more):
                    progress.update(bar, advance=more, description="rounds")
                case Run():
                    runs.append(event)
    order = {spec: i for i, spec in enumerate(learners)}
    return sorted(runs, key=lambda run: (order[run.learner], run.seed, run.person))


def _as_json(wanted: Wanted, setting: Setting, spec: str, learner: Any, curve: Curve) -> dict[str, Any]:
    from heedful.experiment import bound, checkpoints

    marks = checkpoints(curve.mean.size)
    bounds = [number(value) for value in bound(learner, setting, marks)]
    alone = curve.over == "nothing"
    return {
        "learner": spec,
        "user": wanted.user,
        "rounds": curve.mean.size,
        "seeds": len({scene.seed for scene in setting.scenes}),
        "checkpoints": marks.tolist(),
        "regret": curve.mean[marks - 1].tolist(),
        "stderr": [None if alone else float(value) for value in curve.stderr[marks - 1]],
        "bound": None if None in bounds else bounds,
        "rounds_per_second": curve.rounds_per_second,
    }


def _table(
    wanted: Wanted, setting: Setting, learners: dict[str, Any], curves: dict[str, Curve], data: str
) -> tuple[Table, str]:
    """The table, with as many checkpoints as the terminal has room for, and what is to be said about it."""
    from heedful.experiment import bound, checkpoints

    limits = {spec: number(float(bound(learners[spec], setting, one.mean.size))) for spec, one in curves.items()}
    ends = {one.mean.size for one in curves.values()}
    marks = set(checkpoints(max(ends)).tolist()) | ends
    seeds = len({scene.seed for scene in setting.scenes})
    title = f"Average regret of rounds 1 to t: {wanted.user}, {data}, {seeds} seed{'s' * (seeds > 1)}"
    for some in (marks, {t for t in marks if str(t)[0] == "1"} | ends, {1} | ends):
        table = _grid(title, curves, sorted(some), limits)
        if width(table) <= console().width:
            break
    with_bound = any(limit is not None for limit in limits.values())
    return table, _remarks(setting, curves, with_bound)


def _grid(title: str, curves: dict[str, Curve], marks: list[int], limits: dict[str, float | None]) -> Table:
    table = new_table(title)
    table.add_column("learner", overflow="fold")
    for t in marks:
        table.add_column(f"t = {t:,}" if t == marks[0] else f"{t:,}", justify="right", no_wrap=True)
    with_bound = any(limit is not None for limit in limits.values())
    for name in ["bound"] * with_bound + ["rounds/s"]:
        table.add_column(name, justify="right", no_wrap=True)
    for spec, one in curves.items():
        limit = limits[spec]
        cells = [_cell(one, t) for t in marks] + ["none" if limit is None else short(limit)] * with_bound
        table.add_row(spec, *cells, f"{one.rounds_per_second:,.0f}")
    return table


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
