"""`heedful experiment` and `heedful promote`: try another learner on some people first, then let it serve everybody."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.answers import print_answers, say_way_back
from heedful.cli.common import Json, Name, Own, check_absent, open_loop
from heedful.cli.console import BadInput, print_json, say
from heedful.cli.parts import print_parts, print_result
from heedful.core.validation import ALPHA
from heedful.core.wording import count, percent

if TYPE_CHECKING:
    from heedful.loop.interactions.telling import Part
    from heedful.results.experiment import Experiment, PlannedExperiment, Promotion


def experiment(
    name: Name,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:A=1,...]", help="Try this learner next to the loop's; `heedful learners` lists them."
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="The share of people whose lists both learners draft; with 0 the candidate is only logged.",
            show_default="0; of a plan 0.2",
        ),
    ] = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Both sides rank as they do now, and learn no more.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the experiment.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say how long an experiment would take; nothing is started.")
    ] = False,
    days: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=3650.0, help="With --plan: how many days the experiment would run.", show_default="14"
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=ALPHA[0], max=ALPHA[1], help="The probability with which the verdict may be wrong.", show_default="0.05"
        ),
    ] = None,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The other learner is the candidate. The people of the share get lists to which both learners contribute items in
    turn; the learner whose items are chosen more often wins. Everybody else gets the loop's own lists. What the
    candidate would have shown them is kept too. Without options the command prints the state of the experiment that
    runs, or else of the newest.
    `heedful promote` lets the winner serve everybody.

    Exit codes: 0 done; 1 the loop cannot be read or written; 2 bad input, such as a learner that does not fit, or no
    experiment to look at.
    """
    if sum((start is not None, stop, plan)) > 1:
        raise BadInput("--start, --stop, --plan: expected one of them at most")
    if start is None and not plan:
        check_absent({"--share": share, "--alpha": alpha}, "expected only with --start or --plan")
    if start is None:
        check_absent({"--frozen": frozen}, "expected only with --start")
    if not plan:
        check_absent({"--days": days}, "expected only with --plan")
    alpha = 0.05 if alpha is None else alpha
    with open_loop(name, own_learners, read_only=start is None and not stop) as loop:
        if start is not None:
            print_answers([loop.start_experiment(start, share=share or 0.0, frozen=frozen, alpha=alpha)], json)
            if not json:
                print_parts(_started(loop.experiment(), name))
        elif stop:
            print_answers([loop.stop_experiment()], json)
        elif plan:
            part = 0.2 if share is None else share
            planned = loop.plan_experiment(part, days=14.0 if days is None else days, alpha=alpha)
            print_result(planned, json, _plan(planned, part))
        else:
            result = loop.experiment()
            print_result(result, json, _experiment(result, name))


def promote(
    name: Name,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME[:A=1,...]",
            help="The learner to promote; by default the candidate of the experiment.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Promote it even if there are reasons against it; the log keeps them.")
    ] = False,
    by: Annotated[str, typer.Option(metavar="WHO", help="Who promotes it; kept in the log.")] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is promoted; kept in the log.")] = "",
    listed: Annotated[
        bool, typer.Option("--list", help="Say who was promoted when, and what is left of the evidence.")
    ] = False,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """The new learner has learned from the whole log, and goes on learning. `heedful rollback` to the version just
    before takes the promotion back.

    Exit codes: 0 promoted; 1 the loop cannot be read or written; 2 bad input, or there is not enough evidence.
    """
    if listed:
        others = {"--learner": learner, "--force": force, "--by": by, "--reason": reason}
        check_absent(others, "expected none with --list, which promotes nobody")
    with open_loop(name, own_learners, read_only=listed) as loop:
        if listed:
            promotions = loop.promotions()
            print_result(promotions, json, _promotions(promotions))
            return
        promotion = loop.promote(learner, force=force, by=by, reason=reason)
        if json:
            print_json(promotion._asdict() | {"answer": promotion.answer._asdict()})
            return
        serves = f"{promotion.learner} serves now in place of {promotion.before}"
        say(f"{serves}; model version {promotion.answer.version}")
        for objection in promotion.forced:
            say(f"Against it spoke: {objection}")
        say_way_back(name, promotion.answer)


def _started(experiment: Experiment, name: str) -> list[Part]:
    """Return a line on what the `experiment`, which has just begun in the loop `name`, does from here on."""
    from heedful.loop.interactions.telling import Line

    how = (
        f"lists of {percent(experiment.share)} of the people are drafted by both"
        if experiment.share
        else "it only proposes"
    )
    look = shlex.join(["heedful", "experiment", name])
    return [Line(f"Tried: {experiment.learner}, next to {experiment.against}; {how}. How it stands: {look}")]


def _experiment(experiment: Experiment, name: str) -> list[Part]:
    """Return lines and tables on the state of the `experiment` in the loop `name`."""
    from heedful.loop.experiment import VERDICTS
    from heedful.loop.interactions.telling import Line
    from heedful.results.experiment import MOVE_COLUMNS, PERSON_COLUMNS
    from heedful.results.table import Table

    verdict, split = experiment.verdict, experiment.agreement
    how = (
        f"lists of {percent(experiment.share)} of the people are drafted together"
        if experiment.share
        else "it only proposes"
    )
    over = "" if experiment.running else "; it is over"
    parts: list[Part] = [Line(f"{experiment.learner} against {experiment.against}: {how}{over}")]
    if experiment.share:
        credit = "" if experiment.credit is None else f"{experiment.credit:+.4f}"
        credit += "" if experiment.credit_error is None else f" +- {experiment.credit_error:.4f}"
        rows = [
            ("sessions", f"{verdict.sessions:,}"),
            ("people", f"{verdict.people:,}"),
            (
                "share of decided ones that the candidate won",
                f"{verdict.share:.3f} [{verdict.low:.3f}, {verdict.high:.3f}]",
            ),
            ("e-value", f"{verdict.e_value:.4g} (decided from {1.0 / experiment.alpha:.4g} on)"),
            ("largest share of one person", f"{verdict.largest:.3f}"),
            ("credit by positions (+: for the candidate)", credit),
            ("first picks of the loop, of the candidate", f"{experiment.coins.own:,}, {experiment.coins.candidate:,}"),
        ]
        parts.append(Table("Which one people prefer", ("drafted lists that were answered", "so far"), tuple(rows)))
        parts.append(Line(VERDICTS[verdict.verdict].format(learner=experiment.learner, against=experiment.against)))
    if split.decisions and split.overlap is not None and split.same_first is not None:
        parts += [
            Table.of("Items that would move", MOVE_COLUMNS, split.moves[:10]),
            Line(
                "Shown and proposed are the numbers of the loop's own lists, and of the candidate's for the same "
                "requests, that have the item; places up is how many places higher the candidate has it, on average."
            ),
            Table.of("People whose lists would change most", PERSON_COLUMNS, split.people[:5]),
            Line(
                f"Of {split.decisions:,} of the loop's own lists {percent(split.same_first, 2)} would have the same "
                f"first item, and {percent(split.overlap, 2)} of the items shown would be in them."
            ),
        ]
    if not experiment.running:
        return parts  # what is over cannot be promoted by what it found
    parts += [Line(f"Not to be promoted: {objection}.") for objection in experiment.against_promotion]
    if experiment.ready:
        parts.append(Line(f"It may be promoted: {shlex.join(['heedful', 'promote', name])}"))
    return parts


def _plan(plan: PlannedExperiment, share: float) -> list[Part]:
    from heedful.loop.interactions.telling import Line
    from heedful.results.experiment import WIN_COLUMNS
    from heedful.results.table import Table

    text = f"With {percent(share)} of the people: about {count(plan.people, 'person', 'people')} and "
    text += f"{count(plan.sessions, 'session')} in "
    text += f"{plan.days:g} days, of which {percent(plan.ties, 2)} are ties."
    table = Table.of("If the candidate won so many", WIN_COLUMNS, plan.wins)
    return [table, Line(text), *([Line(f"Take it with care: {plan.caveat}.")] if plan.caveat else [])]


def _promotions(promotions: tuple[Promotion, ...]) -> list[Part]:
    from heedful.loop.interactions.telling import Line
    from heedful.results.table import Table

    if not promotions:
        return [Line("nobody was promoted: the loop has the learner that it was made with")]
    rows = [
        (
            f"{promotion.seq:,}",
            promotion.learner,
            promotion.before,
            promotion.by,
            "forced" if promotion.forced else promotion.evidence.get("method", ""),
            "" if promotion.in_effect else "rolled back",
        )
        for promotion in promotions
    ]
    columns = ("version", "learner", "in place of", "by", "evidence", "")
    changed = [Line(f"{promotion.learner}: {promotion.changed}.") for promotion in promotions if promotion.changed]
    return [Table("Promotions", columns, tuple(rows), texts=(1, 2, 3, 4, 5)), *changed]
