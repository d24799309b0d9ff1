"""The command line: `heedful COMMAND --help`. One file per group of commands; no mathematics, and quick to start."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from heedful import __version__
from heedful.cli import (
    check,
    compare,
    data,
    demo,
    doctor,
    exchange,
    exporting,
    figure,
    founding,
    hindsight,
    keys,
    learners,
    loops,
    rank,
    report,
    serve,
    simulate,
    simulate_ordinal,
    simulate_ratings,
    standing,
    sweep,
)
from heedful.cli.terminal import Commands


class Ordered(Commands):
    """Lists the commands in the order in which somebody new needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [
            "demo",
            "compare",
            "init",
            "decide",
            "feedback",
            "undo",
            "forget",
            "explain",
            "standing",
            "report",
            "replay",
        ]
        order += [
            "import",
            "export",
            "validate",
            "doctor",
            "serve",
            "keys",
            "rank",
            "simulate",
            "sweep",
            "figure",
            "check",
        ]
        order += ["learners", "data"]
        return sorted(super().list_commands(ctx), key=order.index)


app = typer.Typer(
    name="heedful",
    cls=Ordered,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: heedful demo",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"heedful {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from (anywhere on the line).")
    ] = False,
) -> None:
    """Online preference learning: show something, take the reaction, do better next time."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("demo", epilog="Example: heedful demo")(demo.demo)
app.command("compare", epilog='Example: heedful compare logos/ --ask "Which feels more trustworthy?" --share')(
    compare.compare
)
app.command("init", epilog="Example: heedful init cars cars.csv --kind year=number")(founding.init)
app.command("decide", epilog="Example: heedful decide cars --person ann --show 5")(loops.decide)
app.command("feedback", epilog="Example: heedful feedback cars d3 --clicks beetle --clicks mini")(loops.feedback)
app.command("undo", epilog="Example: heedful undo cars e1")(loops.undo)
app.command("forget", epilog="Example: heedful forget cars ann")(loops.forget)
app.command("explain", epilog="Example: heedful explain cars d3")(hindsight.explain)
app.command("standing", epilog="Example: heedful standing covers --person ann")(standing.standing)
app.command("report", epilog="Example: heedful report cars --last 1000")(report.report)
app.command("replay", epilog="Example: heedful replay cars --learner second-order:epsilon=0.1")(hindsight.replay)
app.command("import", epilog="Example: heedful import cars events.jsonl")(exchange.import_)
app.command("export", epilog="Example: heedful export cars cars.jsonl.gz")(exporting.export)
app.command("validate", epilog="Example: heedful validate cars events.jsonl")(exchange.validate)
app.command("doctor", epilog="Example: heedful doctor cars")(doctor.doctor)
app.command("serve", epilog="Example: heedful serve loops/ --port 8710")(serve.serve)
app.add_typer(keys.app, name="keys")
app.command("rank", epilog="Example: heedful rank choices.csv --goal ranking --plot ranking.png")(rank.rank)
app.add_typer(simulate.app, name="simulate")
simulate.app.command(
    "ordinal", epilog="Example: heedful simulate ordinal wine.csv --target quality --learner prank --seeds 5"
)(simulate_ordinal.ordinal)
simulate.app.command("ratings", epilog="Example: heedful simulate ratings ml-100k --learner alb --learner bmf")(
    simulate_ratings.ratings
)
app.command("sweep", epilog="Example: heedful sweep grid.toml --out runs/")(sweep.sweep)
app.command("figure", epilog="Example: heedful figure jair2015/fig7 --data downloads --quick")(figure.figure)
app.command("check", epilog="Example: heedful check my_learner.py:Mine:rate=0.1")(check.check)
app.command("learners", epilog="Example: heedful learners second-order")(learners.learners)
app.command("data", epilog="Example: heedful data downloads/letor4-mq2008")(data.data)


def main() -> None:
    """The entry point `heedful`."""
    app()
