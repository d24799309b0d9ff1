"""The command line: `heedful COMMAND --help`. One file per group of commands; none of them computes anything itself.

`COMMANDS` holds what the list of commands says of each. To start fast, the module of a command is imported only when
that command is run.
"""

from __future__ import annotations

import gc
from functools import cache
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from heedful import __version__
from heedful.cli.coercion import PlainCommand, with_plain_coercion
from heedful.cli.console import Commands
from heedful.experiments.registry import EXPERIMENTS


class CommandEntry(NamedTuple):
    """A command in the list of commands, or a group of commands, such as `keys`, whose names begin with the group's
    name."""

    where: str
    """MODULE:FUNCTION in this package; "" for a group"""
    help: str
    """the first line of its help; the docstring of its function is the rest"""
    example: str = ""
    """a command line, or several on lines of their own, shown below its help"""


# In the order in which a new user needs them.
COMMANDS = {
    "demo": CommandEntry(
        "demo:demo", "Teach it what you like: a page with real cars, which learns from every click.", "heedful demo"
    ),
    "examples": CommandEntry(
        "examples:examples", "Write the files that the documentation uses, as a folder `examples`.", "heedful examples"
    ),
    "compare": CommandEntry(
        "compare:compare",
        "Ask people which of two is better, the most informative pair next, and show the ranking as it forms.",
        'heedful compare logos/ --ask "Which feels more trustworthy?" --share',
    ),
    "init": CommandEntry(
        "init:init",
        "Make a loop: a folder that learns what to show, from a table of items and what people answer.",
        "heedful init cars cars.csv --kind year=number",
    ),
    "decide": CommandEntry(
        "decide:decide",
        "Decide what to show, best first, and write the decision into the loop's log.",
        "heedful decide cars --person ann --show 5",
    ),
    "feedback": CommandEntry(
        "feedback:feedback",
        "Record what a person answered to a decision, and learn from it.",
        "heedful feedback cars d3 --clicks beetle --clicks mini",
    ),
    "undo": CommandEntry(
        "retract:undo",
        "Take one piece of feedback back: the model becomes the one that never saw it, bit for bit.",
        "heedful undo cars e1",
    ),
    "rollback": CommandEntry(
        "retract:rollback",
        "Go back to an earlier version of the model: it becomes the one of that version, bit for bit.",
        "heedful rollback cars 1200 --reason 'a crawler clicked since noon'",
    ),
    "forget": CommandEntry(
        "retract:forget",
        "Erase a person: every decision made for them and every answer to it. This cannot be undone.",
        "heedful forget cars ann\nheedful forget /var/lib/heedful --unseen 365",
    ),
    "why": CommandEntry(
        "why:why",
        "Say why an item had its score: what its features contribute, and which feedback moved it.",
        "heedful why cars d3 beetle",
    ),
    "standing": CommandEntry(
        "standing:standing",
        "Show the ranking by what people chose, how sure it is, and about how many questions are left.",
        "heedful standing covers --person ann",
    ),
    "report": CommandEntry(
        "report:report",
        "Say what a loop learned, how well answers were predicted, and what feedback was worth.",
        "heedful report cars --last 1000",
    ),
    "health": CommandEntry(
        "health:health",
        "Say whether feedback is sound and the model still predicts it, with alarms and what to do next.",
        "heedful health cars",
    ),
    "style": CommandEntry(
        "style:style",
        "Say what a person's edits of texts tell about their style, in words that are ready for a prompt.",
        "heedful style letters --person ann --prompt",
    ),
    "evaluate": CommandEntry(
        "evaluate:evaluate",
        "Say whether other learners would have been better, by the log, and how sure that is; nothing is changed.",
        "heedful evaluate cars --learner second-order:epsilon=0.1 --learner posterior",
    ),
    "experiment": CommandEntry(
        "experiment:experiment",
        "Try another learner on a share of the people, and say which one people prefer; look whenever you like.",
        "heedful experiment cars --start second-order --share 0.2",
    ),
    "promote": CommandEntry(
        "experiment:promote",
        "Let another learner serve everybody from here on, if it is better: by an experiment, or by what the log says.",
        "heedful promote cars --by ann --reason 'clicks of two weeks'",
    ),
    "import": CommandEntry(
        "exchange:import_",
        "Bring events into a loop: items, decisions, feedback, from JSON lines, an OpenSearch UBI log, or --as FORMAT.",
        "heedful import cars events.jsonl\n"
        "heedful import shop events.jsonl --ubi queries.jsonl\n"
        "heedful import replies pairs.jsonl --as preference-data\n"
        "heedful import replies --langfuse https://cloud.langfuse.com",
    ),
    "export": CommandEntry(
        "export:export",
        "Write every item, decision and feedback as JSON lines, people included; with --as, a format of others.",
        "heedful export cars cars.jsonl.gz\n"
        "heedful export replies pairs.jsonl --as preference-data\n"
        "heedful export shop model.sh --as opensearch --option without=title,prior",
    ),
    "validate": CommandEntry(
        "exchange:validate",
        "Check JSON lines one by one, and write nothing: would `heedful import` take them?",
        "heedful validate cars events.jsonl",
    ),
    "doctor": CommandEntry(
        "doctor:doctor",
        "Check loops: their logs, models, snapshots, what comes in, their files. Nothing is changed.",
        "heedful doctor cars\nheedful doctor /backup/heedful",
    ),
    "backup": CommandEntry(
        "backup:backup",
        "Back up all loops and keys of a folder or a database, while a server goes on.",
        "heedful backup /var/lib/heedful /backup/heedful",
    ),
    "restore": CommandEntry(
        "backup:restore",
        "Restore a back-up, all loops and keys, into an empty folder or database.",
        "heedful restore /backup/heedful /var/lib/heedful",
    ),
    "copy": CommandEntry(
        "backup:copy",
        "Copy a loop, log and model, to another folder, or into or out of a database.",
        "heedful copy cars postgresql://heedful@db.example/heedful",
    ),
    "serve": CommandEntry(
        "serve:serve",
        "Serve the loops of a folder over HTTP, until it is told to end (Ctrl-C, SIGTERM).",
        "heedful serve loops/ --port 8710",
    ),
    "mcp": CommandEntry(
        "mcp:mcp",
        "Serve a loop to an agent as MCP tools over stdin and stdout: choose, learn, undo, forget, ask.",
        "heedful mcp letters",
    ),
    "keys": CommandEntry("", "Make, list and revoke the keys of a server."),
    "keys create": CommandEntry(
        "keys:create",
        "Make a key and print it: on stdout the key alone, so that KEY=$(heedful keys create ci) has it.",
        "heedful keys create ci --scope decide --scope feedback",
    ),
    "keys list": CommandEntry(
        "keys:list_", "List every key that was ever made; none of them can be shown again.", "heedful keys list"
    ),
    "keys audit": CommandEntry(
        "keys:audit",
        "List what was done with keys and to them, the newest first: promotions, undos, exports, new keys.",
        "heedful keys audit",
    ),
    "keys revoke": CommandEntry(
        "keys:revoke",
        "End a key for good; a server that runs knows within a second.",
        "heedful keys revoke hk_ab12cd34",
    ),
    "keys scopes": CommandEntry(
        "keys:scopes",
        "Set what a key may do, replacing what it could do before.",
        "heedful keys scopes hk_ab12cd34 --scope read",
    ),
    "rank": CommandEntry(
        "rank:rank",
        "Rank things by what people chose, with how sure each place is.",
        "heedful rank choices.csv --goal ranking --plot ranking.png",
    ),
    "simulate": CommandEntry("", "Run learners against a simulated person on your data."),
    **{f"simulate {name}": CommandEntry(f"simulate:{name}", e.help, e.example) for name, e in EXPERIMENTS.items()},
    "figure": CommandEntry(
        "figure:figure",
        "Draw a figure of one of the papers from your data, and say whether the paper's claims hold there.",
        "heedful figure jair2015/fig7 --data downloads --quick",
    ),
    "check": CommandEntry(
        "check:check",
        "Test a learner of your own for the properties that every learner must have.",
        "heedful check my_learner.py:Mine:rate=0.1",
    ),
    "learners": CommandEntry(
        "learners:learners", "List the learners, or explain one.", "heedful learners second-order"
    ),
}


class Group(Commands):
    """A group of commands, or the whole command line, that imports a command's module only when the command is run."""

    def __init__(self, **extra: Any) -> None:
        super().__init__(**extra)
        self.path = "" if self.name == "heedful" else f"{self.name} "
        for path, entry in COMMANDS.items():
            name = path.removeprefix(self.path)
            if path.startswith(self.path) and " " not in name:
                self.add_command(TyperCommand(name, help=entry.help))

    def get_params(self, ctx: Any) -> list[Any]:
        return with_plain_coercion(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return (name, command, remaining arguments) for `args`, with the real command in place of its entry in the
        list.

        `ctx` is click's context of the command line.
        """
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and command(f"{self.path}{name}"), rest


STYLE: Any = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "markdown",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

app = typer.Typer(name="heedful", cls=Group, epilog="Begin with: heedful demo", **STYLE)


@cache
def command(path: str) -> Any:
    """Return the command at `path`, such as "decide" or "keys create", with its options. Raise KeyError if there is
    none."""
    listed, name = COMMANDS[path], path.rpartition(" ")[2]
    if listed.where:
        module, _, function = listed.where.partition(":")
        app = typer.Typer(**STYLE)
        examples = "\n\n".join(f"Example: {line}" for line in listed.example.splitlines())
        run = getattr(import_module(f"{__name__}.{module}"), function)
        help = f"{listed.help}\n\n{getdoc(run)}"
        # Not HEEDFUL_PORT: Kubernetes sets that in pods next to a service "heedful", to tcp://10.0.0.1:8710.
        settings = {**STYLE["context_settings"], "auto_envvar_prefix": "HEEDFUL_SERVE" if name == "serve" else None}
        app.command(name, cls=PlainCommand, help=help, epilog=examples, context_settings=settings)(run)
    else:
        app = typer.Typer(name=name, cls=Group, help=listed.help, **STYLE)
        app.callback(invoke_without_command=True)(_help)
    return typer.main.get_command(app)


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _version(expected: bool) -> None:
    if expected:
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
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="HEEDFUL_DATABASE",
            help="A PostgreSQL database, postgresql://..., that loops are in instead of folders.",
        ),
    ] = None,
) -> None:
    """Online preference learning: show something, take the reaction, do better next time."""
    if database:
        from heedful.cli.common import use_database

        source = context.get_parameter_source("database")
        use_database(database, typed=source is not None and source.name == "COMMANDLINE")
    _help(context)


def main() -> None:
    """Run the command line and exit: the entry point `heedful`.

    Most of what a command imports is needed until the process ends. So cyclic garbage is collected rarely, and not at
    all when the process exits, which saves a fifth of the time of a short command.
    """
    gc.set_threshold(10_000)
    try:
        app()
    finally:
        gc.freeze()
