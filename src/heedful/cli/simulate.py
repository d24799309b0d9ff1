"""`heedful simulate NAME`: a command for each experiment, with the options that the experiment declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import typer

from heedful.cli.common import Json, check_learners
from heedful.cli.console import BadInput, check_extra, note, reading_input
from heedful.cli.engine import EngineOption, Interpreted, Jobs, check_option
from heedful.cli.output import check_path
from heedful.cli.signature import add_parameters, option
from heedful.cli.simulate_common import SimulateRequest, run_and_tell
from heedful.experiments.definitions.base import BadOption, Experiment, Option
from heedful.experiments.registry import EXPERIMENTS, make_experiment


def __getattr__(name: str) -> Callable[..., None]:
    """Return the command of the experiment `name`. Raise AttributeError if there is no such experiment."""
    if name not in EXPERIMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return simulate_command(make_experiment(name))


def simulate_command(experiment: Experiment) -> Callable[..., None]:
    """Return the command of an experiment: a function whose parameters are its own options, then those all commands
    share."""
    fixed = experiment.rounds if isinstance(experiment.rounds, int) else None

    def run(
        *,
        learner: Annotated[
            list[str],
            typer.Option(
                "--learner", "-l", metavar="NAME[:A=1,...]", help="May be repeated; `heedful learners` lists them."
            ),
        ] = list(experiment.learners),  # noqa: B006
        rounds: Annotated[
            int | None,
            typer.Option(
                min=1, show_default=fixed is not None or str(experiment.rounds), help="How many rounds each run has."
            ),
        ] = fixed,
        seeds: Annotated[
            int, typer.Option(min=1, help="How many runs each learner has, with consecutive seeds.")
        ] = experiment.seeds,
        first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
        engine: EngineOption = "auto",
        jobs: Jobs = None,
        interpreted: Interpreted = None,
        plot: Annotated[Path | None, typer.Option(help="Draw the average against rounds into this file.")] = None,
        out: Annotated[Path | None, typer.Option(help="Write the measure of every round: .csv.")] = None,
        json: Json = False,
        **options: object,
    ) -> None:
        request = SimulateRequest(learner, rounds, engine, jobs, interpreted, plot, out, json)
        check_option(engine)
        with reading_input():
            check_path("--out", out, (".csv",))
            check_path("--plot", plot, (".png", ".pdf", ".svg"))
            if plot is not None:
                check_extra("matplotlib", "plot", "--plot")
            check_learners(learner)
            try:
                prepared = experiment.prepare(**options, seeds=range(first_seed, first_seed + seeds))
            except BadOption as error:
                name, _, problem = str(error).partition(":")
                raise BadInput(f"--{name.replace('_', '-')}:{problem}") from error
        for text in prepared.notes:
            note(text)
        run_and_tell(request, prepared)

    add_parameters(run, _own_options(experiment), before="learner", names={"experiment": experiment, "fixed": fixed})
    run.__doc__ = experiment.prepare.__doc__
    return run


def _own_options(experiment: Experiment) -> list[inspect.Parameter]:
    """Return the parameters of the experiment's `prepare` as typer's arguments and options."""
    hints = get_type_hints(experiment.prepare, include_extras=True)
    parameters = []
    for parameter in inspect.signature(experiment.prepare).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            continue
        of, declared = get_args(hints[parameter.name])
        parameters.append(_parameter(parameter, of, declared))
    return parameters


def _parameter(parameter: inspect.Parameter, of: object, declared: Option) -> inspect.Parameter:
    if parameter.default is parameter.empty:
        argument = typer.Argument(help=declared.help, metavar=declared.metavar)
        return parameter.replace(annotation=Annotated[of, argument])
    return option(
        parameter.name,
        of,
        parameter.default,
        declared.help,
        metavar=declared.metavar,
        least=declared.least,
        most=declared.most,
        show_default=declared.default,
    )
