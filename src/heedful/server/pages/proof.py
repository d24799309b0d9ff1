"""The page that compares learners: how well they predict the answers in the log, an experiment with people, and
promotions (changes of the learner that serves).

It is rendered on the server. A script replaces the evaluation without loading the page again, as it may take long; all
works without it. Looking takes the scope `read`, and every button that changes something takes `admin`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from heedful.core.ids import new_id
from heedful.core.validation import describe
from heedful.learners.registry import find_learners
from heedful.loop import Loop
from heedful.loop.experiment import BROKEN, VERDICTS, NotReady, check_interleaves, promotions
from heedful.loop.interactions import telling
from heedful.loop.interactions.registry import interaction_of
from heedful.loop.serving import NOT_INTERLEAVED
from heedful.loop.settings import candidate_manifest
from heedful.results import experiment as results
from heedful.results.evaluation import Evaluation
from heedful.results.experiment import Experiment, PlannedExperiment, Promotion
from heedful.server.api import check_known
from heedful.server.codecs import number
from heedful.server.decisions import answer_fields, outcome
from heedful.server.keys import mask_prefix
from heedful.server.pages import evaluation_view
from heedful.server.pages.card_selection import compares_pairs
from heedful.server.pages.formatting import sentence
from heedful.server.pages.page import Page, Visit, back, render
from heedful.server.schema import MOST_LEARNERS
from heedful.studies.study import study_of

SAID = {
    "started": "The experiment runs.",
    "stopped": "The experiment is over: the loop's learner serves everybody again.",
    "promoted": "The learner serves everybody from now on.",
}
"""What the page says after a button was pressed, by the query parameter `said`."""
AT_ONCE = 10_000
"""The most events of a log in which the evidence of promotions is computed again whenever the page is shown. That reads
the whole log for each promotion; in longer logs only the query parameter `evidence` asks for it."""
FIRST = {"alpha": "0.05", "share": "20", "days": "14", "learner": "", "candidate": "", "by": "", "reason": ""}
"""What the forms hold at first, by field; `share` is in percent of the people, `days` are those of a plan."""


class Shown(NamedTuple):
    """What the page shows in answer to a visitor's query or form: an evaluation, a plan, or why it was refused."""

    evaluation: Evaluation | None = None
    """how well learners predict the answers in the log; None if it was not asked for"""
    plan: PlannedExperiment | None = None
    """the plan of an experiment; None if it was not asked for"""
    part: float = 0.0
    """the share of people who would take part in it, from 0 to 1"""
    unevaluated: str = ""
    """why the evaluation was refused, as a sentence; "" if it was not"""
    unstarted: str = ""
    """why the experiment was not started, stopped or planned"""
    unpromoted: str = ""
    """why the learner was not promoted"""
    reasons: tuple[str, ...] = ()
    """what speaks against promoting `overruled`, in words"""
    overruled: str = ""
    """the learner that is promoted if the visitor confirms that these reasons do not count; "" if none was sent"""
    message: str = ""
    """a message on the button that was pressed, from SAID; "" if none was"""


async def show(visit: Visit) -> Response:
    """Render the page, with an evaluation if the query has `learner`, and the plan of an experiment if it has `plan`.

    For a script that asks for an evaluation, only that part of the page is rendered."""
    shown = Shown(message=SAID.get(visit.query.get("said", ""), ""))
    if "learner" in visit.query:
        shown = await _with_evaluation(visit, shown)
        if visit.scripted and "hx-history-restore-request" not in visit.request.headers:
            # 200 even if it was refused: htmx shows nothing else, and the part itself says why
            return render(visit, "proof_evaluation.html", shown=shown, view=evaluation_view, telling=telling)
    if "plan" in visit.query:
        shown = await _with_plan(visit, shown)
    refused = shown.unevaluated or shown.unstarted
    return await _render(visit, shown, 422 if refused else 200)


async def _with_evaluation(visit: Visit, shown: Shown) -> Shown:
    """Return `shown` with the evaluation of the learners in the query, or with why that was refused."""
    try:
        names = list(dict.fromkeys(visit.query["learner"].split()))
        if len(names) > MOST_LEARNERS:
            raise ValueError(f"learner: expected at most {MOST_LEARNERS} names, got {len(names)}")
        for name in names:
            check_known(visit.loop, name.partition("@")[0])
        alpha = number({**FIRST, **visit.query}, "alpha")
        evaluation = await visit.analyse(Loop.evaluate, *names, alpha=alpha)
    except ValueError as error:
        return shown._replace(unevaluated=_refusal(error))
    return shown._replace(evaluation=evaluation)


async def _with_plan(visit: Visit, shown: Shown) -> Shown:
    """Return `shown` with the plan of an experiment by the query, or with why that was refused."""
    try:
        check_interleaves(visit.loop.projection)
        part, days = _share(visit.query), number({**FIRST, **visit.query}, "days")
        alpha = number({**FIRST, **visit.query}, "alpha")
        plan = await visit.analyse(Loop.plan_experiment, part, days=days, alpha=alpha)
    except ValueError as error:
        return shown._replace(unstarted=_refusal(error))
    return shown._replace(plan=plan, part=part)


async def start(visit: Visit) -> Response:
    """Handle the form that starts an experiment with the learner in its field `candidate`; render the page again (422)
    if that is refused.

    Its other fields are `share` (percent of the people), `frozen` (neither learner learns on), `alpha` (the probability
    of a wrong verdict, at most) and `id` (of the event)."""
    try:
        learner = check_known(visit.loop, visit.form.get("candidate", "").strip())
        answer = await visit.worker.run(
            visit.loop.start_experiment,
            learner,
            share=_share(visit.form),
            frozen=bool(visit.form.get("frozen")),
            alpha=number({**FIRST, **visit.form}, "alpha"),
            id=visit.form.get("id") or None,
        )
    except ValueError as error:
        return await _render(visit, Shown(unstarted=_refusal(error)), 422)
    visit.note("experiment", outcome(answer))
    answer_fields(answer)
    return back(f"{visit.base}/proof?said=started#experiment")


async def stop(visit: Visit) -> Response:
    """Handle the button that ends the experiment; render the page again (422) if none is running."""
    try:
        answer = await visit.worker.run(visit.loop.stop_experiment, id=visit.form.get("id") or None)
    except LookupError as error:
        return await _render(visit, Shown(unstarted=_refusal(error)), 422)
    visit.note("stop", outcome(answer))
    answer_fields(answer)
    return back(f"{visit.base}/proof?said=stopped#experiment")


async def promote(visit: Visit) -> Response:
    """Handle the form that promotes a learner: that in the field `learner`, or the candidate of the experiment.

    If something speaks against it, render the page again (422) with the reasons, and with a form that promotes it
    anyway once a box is ticked."""
    learner, force = visit.form.get("learner", "").strip(), visit.form.get("force", "")
    try:
        if force not in ("", "1"):
            raise ValueError(f"force: expected 1 or nothing, got {describe(force)}")
        if learner:
            check_known(visit.loop, learner)
        made = await visit.worker.run(
            visit.loop.promote,
            learner or None,
            force=force == "1",
            by=visit.form.get("by", "").strip(),
            reason=visit.form.get("reason", "").strip(),
            id=visit.form.get("id") or None,
        )
    except NotReady as error:
        refused = f"{error.learner} was not promoted."
        shown = Shown(unpromoted=refused, reasons=tuple(error.reasons), overruled=error.learner)
        return await _render(visit, shown, 422)
    except ValueError as error:
        return await _render(visit, Shown(unpromoted=_refusal(error)), 422)
    visit.note("promote", outcome(made.answer))
    answer_fields(made.answer)
    return back(f"{visit.base}/proof?said=promoted#promote")


def _refusal(error: Exception) -> str:
    """Return why something was refused, as a sentence without anything that looks like a key."""
    return sentence(mask_prefix(str(error)))


def _share(fields: Mapping[str, str]) -> float:
    """Return the field `share` of `fields`, in percent of the people, as a number from 0 to 1."""
    percent = number({**FIRST, **fields}, "share")
    if not (math.isfinite(percent) and 0.0 <= percent <= 100.0):
        raise ValueError(f"share: expected 0 to 100 percent, got {describe(fields.get('share'))}")
    return percent / 100.0


# ---------------------------------------------------------------------------- the page


async def _render(visit: Visit, shown: Shown, status: int = 200) -> Response:
    """Render the page with `shown`, what answers the visitor's request, and the loop's experiment and promotions."""
    try:
        experiment = await visit.analyse(Loop.experiment)
    except LookupError:
        experiment = None
    again = bool(visit.query.get("evidence")) or visit.loop.version <= AT_ONCE
    promoted = await visit.analyse(Loop.promotions) if again else None
    context = await visit.analyse(_context, experiment, promoted)
    fields = visit.form if visit.request.method == "POST" else visit.query
    return render(
        visit,
        "proof.html",
        status,
        tab="proof",
        shown=shown,
        view=evaluation_view,
        telling=telling,
        results=results,
        verdicts=VERDICTS,
        broken=BROKEN,
        base=visit.base,
        path=f"{visit.base}/proof",
        pairs=compares_pairs(visit.loop),
        fields=FIRST | {name: mask_prefix(value) for name, value in fields.items()},
        frozen=bool(fields.get("frozen")),
        new_id=new_id,
        **context,
    )


def _context(loop: Loop, experiment: Experiment | None, checked: Sequence[Promotion] | None) -> dict[str, Any]:
    """Return the values that the template needs of the loop, by name: with its newest `experiment`, and with its
    promotions, `checked` if their evidence was computed again."""
    loop.projection.look()  # another process may have written to it
    interaction = loop.projection.interaction
    promoted = promotions(loop.projection, False) if checked is None else checked
    refusal = NOT_INTERLEAVED.format(loop=interaction.words.loop)
    return {
        "arena": compares_pairs(loop) and study_of(loop.path).kind == "answers",
        "learners": fitting(loop),
        "serving": loop.manifest.learner,
        "not_interleaved": "" if interaction.ranks else sentence(refusal),
        "experiment": experiment,
        "evidence": 0.0 if experiment is None else evidence(experiment),
        "promotions": promoted,
        "checked": checked is not None,
        "rollback": next((promotion.seq - 1 for promotion in promoted if promotion.in_effect), None),
        "former": next((promotion.before for promotion in promoted if promotion.in_effect), ""),
    }


def evidence(experiment: Experiment) -> float:
    """Return the length of the bar of an experiment's evidence, log(e-value) / log(1 / alpha), in percent."""
    needed = math.log(1.0 / experiment.alpha)
    return round(100.0 * min(max(math.log(max(experiment.verdict.e_value, 1.0)) / needed, 0.0), 1.0), 1)


def fitting(loop: Loop) -> list[str]:
    """Return the learners that can be tried in this loop, except for the one that serves.

    They are those of the package, each by name with the parameters that the loop prescribes."""
    interaction, specs = loop.projection.interaction, list[str]()
    for name in find_learners():
        spec = interaction.full_spec(name)
        try:
            serving = interaction_of(*candidate_manifest(loop.manifest, spec))
            serving.candidate(spec)
        except (ValueError, LookupError):
            continue
        if serving.name == interaction.name:
            specs.append(spec)
    return [spec for spec in specs if spec != loop.manifest.learner]


PAGES = (
    Page("GET", "/loops/{loop}/proof", ("read",), show),
    Page("POST", "/loops/{loop}/proof/start", ("admin", "read"), start, "start experiment"),
    Page("POST", "/loops/{loop}/proof/stop", ("admin", "read"), stop, "stop experiment"),
    Page("POST", "/loops/{loop}/proof/promote", ("admin", "read"), promote, "promote"),
)
