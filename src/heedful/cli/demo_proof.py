"""`heedful demo --proof`: three candidate learners are tried in a made shop; what came out is printed next to the
truth."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from heedful.cli.console import console, notes, print_json
from heedful.cli.parts import print_parts
from heedful.cli.proof_steps import CANDIDATES, SAMPLED, SERVED, SHARE, Proof, Rollback, Sizes, Trial, prove
from heedful.core.wording import percent
from heedful.loop.interactions.telling import Line, Part
from heedful.results.evaluation import Evaluation
from heedful.results.table import Table


def run(as_json: bool) -> None:
    """Run `heedful demo --proof` in a temporary folder and print the result, as JSON with `as_json`."""
    sizes, screen = Sizes(), notes()
    columns = BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("", total=sizes.lists)
        proof = prove(sizes, 0, lambda step, lists: progress.update(bar, description=step, advance=lists))
    if as_json:
        print_json(proof)
    else:
        for title, parts in _run_steps(proof):
            console().print(f"[bold]{title}[/]\n")
            print_parts(parts, apart=True)


def _run_steps(proof: Proof) -> Iterator[tuple[str, list[Part]]]:
    """Yield the title of each step and what came out, as lines and tables."""
    sizes = proof.sizes
    about = f"A made shop, seed {proof.seed}: {sizes.people} simulated people with known tastes, who look at lower "
    about += "positions less often. The truth is the expected number of clicks a list: the shop's own order gets "
    about += f"{proof.caller:.3f}, the order by the mean taste {proof.best:.3f}. {SERVED} serves. The loop sees lists "
    about += "and clicks alone; the columns called true are for you."
    rows = tuple((learner, what) for learner, what in CANDIDATES.items())
    yield "The shop", [Line(about), Table("Candidates", ("learner", "what it is"), rows, (0, 1))]
    yield f"1. What a log of {sizes.blind:,} lists says without exploration", _log(proof.blind, proof.blind_true)
    line = Line(f"{percent(SAMPLED)} of lists are drawn at random, with a known probability: Settings(sampled=...).")
    yield f"2. What a log of {sizes.log:,} lists says with exploration", [line, *_log(proof.log, proof.log_true)]
    yield f"3. Shadow: what {sizes.shadow} lists would have been", _shadow(proof)
    yield f"4. Plan: what {sizes.limit:,} lists would find", _plan_parts(proof)
    yield "5. Interleaving: whose items are clicked", _experiment_parts(proof)
    yield "6. The gate", [Line(_gate(trial)) for trial in proof.trials]
    yield "7. Rollback", [Line(_back(proof.rollback))]


def _log(evaluation: Evaluation, true: dict[str, float]) -> list[Part]:
    """Return what an evaluation says, next to the learners' `true` values, and why some values cannot be told."""
    parts: list[Part] = []
    for j, measure in enumerate(evaluation.measures):
        rows, reasons = [], dict[str, list[str]]()
        for learner in evaluation.learners:
            value, truth = learner.values[j], f"{true[learner.learner]:.3f}"
            if value.value is None:
                rows.append((learner.learner, "unknown", "", "", truth))
                reasons.setdefault(f"{value.refused}. {value.remedy}".strip(), []).append(learner.learner)
            else:
                limits = f"{value.low:.3f} to {value.high:.3f}"
                rows.append((learner.learner, f"{value.value:.3f}", limits, value.verdict, truth))
        columns = ("learner", "value", f"{percent(1.0 - evaluation.alpha, 6)} interval", "verdict", "true clicks")
        parts += [Table(measure.name.capitalize(), columns, tuple(rows), (0, 2, 3)), Line(measure.about)]
        for reason, names in reasons.items():
            of = "All" if len(names) == len(evaluation.learners) else ", ".join(names)
            parts.append(Line(f"{of}: the log cannot tell, because {reason}"))
    return parts


def _shadow(proof: Proof) -> list[Part]:
    rows = []
    for trial in proof.trials:
        split = trial.shadow
        moves = ", ".join(f"{move.item} {move.proposed - move.shown:+d}" for move in split.moves[:3])
        rows.append((trial.learner, percent(split.same_first or 0.0, 2), percent(split.overlap or 0.0, 2), moves))
    columns = ("candidate", "same first item", "items in common", "items that enter (+) or leave (-) most lists")
    why = "Nobody sees a candidate's lists. This tells how much would change, not whether that is better."
    return [Table("Lists shown, and the candidate's", columns, tuple(rows), (0, 3)), Line(why)]


def _plan_parts(proof: Proof) -> list[Part]:
    plan = proof.plan
    rows = [
        (percent(win.share), f"{win.found:.2f}", "" if win.sessions is None else f"{win.sessions:,}")
        for win in plan.wins
    ]
    text = f"{percent(SHARE)} of the people take part: about {plan.people:,} people and {plan.sessions:,} sessions, of "
    text += f"which {percent(plan.ties, 2)} are ties. By simulation, from how the log was used."
    columns = ("sessions won", "found to be better", "median sessions")
    return [Table("If a candidate won so many of the others", columns, tuple(rows)), Line(text)]


def _experiment_parts(proof: Proof) -> list[Part]:
    """Return how the experiments ended, and the evidence at each look as a small chart."""
    rows, charts, trends = [], [], []
    limit = 1.0 / proof.trials[0].found.alpha
    longest = max(len(trial.looks) for trial in proof.trials)
    for trial in proof.trials:
        verdict = trial.found.verdict
        gain = f"{trial.value - trial.served:+.3f}"
        won = f"{verdict.share:.2f} ({verdict.low:.2f} to {verdict.high:.2f})"
        rows.append((trial.learner, VERDICTS[verdict.verdict], won, f"{verdict.sessions:,}", f"{verdict.people}", gain))
        heights = [_height(look.e_value, limit) for look in trial.looks]
        charts.append((trial.learner, f"{verdict.e_value:.3g}"))
        trends.append((*heights, *[None] * (longest - len(heights))))
    columns = ("candidate", "preferred", "won", "sessions", "people", "true gain")
    against = Table("Candidate against the learner that serves, both frozen", columns, tuple(rows), (0, 1))
    evidence = Table("Evidence at each look", ("candidate", "last e-value"), tuple(charts), (0,), tuple(trends))
    text = (
        f"The chart has a log scale, from 1 at its foot to {limit:g} at its top, where it is decided. One may look as "
    )
    text += f"often as one likes: equal rankers are ever decided with probability {1.0 / limit:.3g} at most."
    return [against, evidence, Line(text)]


VERDICTS = {"a": "serving", "b": "candidate", "undecided": "undecided"}


def _height(e_value: float, limit: float) -> float:
    """Return log `e_value` / log `limit`, at least 0 and at most 1."""
    return min(max(math.log(e_value) / math.log(limit), 0.0), 1.0) if e_value > 0.0 else 0.0


def _gate(trial: Trial) -> str:
    outcome = "promoted" if trial.promoted else f"refused, because {'; '.join(trial.reasons)}"
    return f"{trial.learner}: {outcome}. True clicks a list: {trial.value:.3f} against {trial.served:.3f}."


def _back(back: Rollback | None) -> str:
    if back is None:
        return "Nobody was promoted, so there is nothing to roll back."
    checks = {
        "the promoted model had another state": back.other_bits,
        "the state of the model is the one before the promotion, bit for bit": back.same_bits,
        "so are the rankings of 20 requests": back.same_lists,
        "the model made from the whole log again is the same": not back.problems,
    }
    text = "; ".join(f"{name}: {'yes' if right else 'NO'}" for name, right in checks.items())
    where = f"{back.learner} had served; a rollback to version {back.to:,} left out {back.left_out:,} answers, and "
    return f"{where}{back.again} serves again. Checked: {text}."
