"""Off-policy evaluation of a table: what other policies would have earned, from a log of single items.

A row is one impression: `action`, the item that was shown; `probability`, the probability (0, 1] with which it was
shown; `reward`, what it earned. A column `person` may say to whom it was shown. A target is a column with the
probability with which another policy would have shown this row's action. All other columns are the context. Every
action of the table counts as on offer in every row.

What is possible is never taken from what a table has: not the greatest weight, which is 1 over the least probability of
any action in any row, shown or not, nor how low and how high rewards may be. Both are asked for; an interval does
without the first, and lacks the end that it cannot have without the second. Rewards of 0 and 1 alone count as clicks.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_alpha, check_between, describe
from heedful.core.wording import count
from heedful.data.files import cut_list
from heedful.data.jsonl import Line
from heedful.data.repeats import Repeats, find_newest
from heedful.data.roles import find_roles
from heedful.data.set_aside import counted_rows
from heedful.data.table import table_of
from heedful.evaluation.off_policy import RIGHT, WRONG, estimate, importance, shown_too_often
from heedful.features import infer
from heedful.io import import_lines
from heedful.loop import Loop
from heedful.loop.evaluate import evaluate, judge, needing, refused, weighted
from heedful.loop.settings import Settings
from heedful.results.evaluation import Evaluation, LearnerEvaluation, Measure, Value

Array = npt.NDArray[np.float64]

REQUIRED = ("action", "probability", "reward")
MOST_ACTIONS = 1000
MEASURE = "reward"
ABOUT = (
    "Reward is the mean of what was earned, each row weighted by the probability of its action in the way to choose "
    "that is looked at, over that in the log."
)
Span = tuple[float, float]
"""The (least, greatest) reward that is possible, -inf or inf if that is not known."""


class BanditLog(NamedTuple):
    """A checked table of n impressions (one item shown once, with its reward): its columns as arrays and lists of n
    entries.

    Several rows of the same impression (`find_newest`) are one, as the newest says."""

    actions: list[str]
    """the item that was shown in each row"""
    probability: Array
    """the probability with which each action was shown, by the policy that made the log (n,)"""
    reward: Array
    """what each row earned (n,)"""
    people: list[str] | None
    """to whom each action was shown; None if the table has no column `person`"""
    targets: dict[str, Array]
    """by column, the probability with which another policy would have shown each action (n,)"""
    context: list[dict[str, Any]]
    """the other columns of each row, by name"""
    repeats: Repeats = Repeats()
    """the rows that were left out, because their impression stands in another row"""


def read_bandit_log(
    rows: Sequence[Mapping[str, object]],
    targets: Sequence[str] = (),
    columns: Mapping[str, Sequence[str]] | None = None,
) -> BanditLog:
    """Return a table of impressions, one item shown once in each of `rows`, {column: value}, with its columns as
    arrays.

    `targets` are the columns with the probability that another policy would have shown the row's item; `columns`, those
    of roles (action, probability, reward, person) whose names differ from the usual ones. Numbers may be texts, as in
    CSV. Raise ValueError, naming the row and the column, for a missing column, a value that makes no
    sense, or more than `MOST_ACTIONS` different items.
    """
    if not rows:
        raise ValueError("table: expected rows, got none")
    table, columns = counted_rows(
        table_of([("", row if isinstance(row, dict) else dict(row)) for row in rows], "table"), columns
    )
    rows = [row for _, row in table.located()]
    header = list(map(str, rows[0]))
    for name in targets:
        if name not in header:
            raise ValueError(f"{name}: expected a column of that name, got {cut_list(header)}")
    columns_of = find_roles("table", header, REQUIRED, columns, optional=("person",))
    role_of = {names[0]: role for role, names in columns_of.items()}
    if any(name != role for name, role in role_of.items()):
        free = role_of | {name: name for name in header if name not in role_of and name not in (*REQUIRED, "person")}
        rows = [{free[name]: value for name, value in row.items() if name in free} for row in rows]
    actions = [_text(row, i, "action") for i, row in enumerate(rows)]
    if len(set(actions)) > MOST_ACTIONS:
        raise ValueError(f"action: expected at most {MOST_ACTIONS} different ones, got {len(set(actions)):,}")
    probability = _numbers(rows, "probability")
    if (bad := np.flatnonzero(~((probability > 0.0) & (probability <= 1.0)))).size:
        raise ValueError(
            f"probability, row {bad[0] + 1}: expected a number above 0, up to 1, got {probability[bad[0]]:g}"
        )
    chances = {name: _numbers(rows, name) for name in targets}
    for name, values in chances.items():
        if (bad := np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))).size:
            raise ValueError(f"{name}, row {bad[0] + 1}: expected a probability, got {values[bad[0]]:g}")
    people = [_text(row, i, "person") for i, row in enumerate(rows)] if "person" in rows[0] else None
    special = {*REQUIRED, *targets, "person"}
    context = [{name: _cell(value) for name, value in row.items() if name not in special} for row in rows]
    log = BanditLog(actions, probability, _numbers(rows, "reward"), people, chances, context)
    roles = {"action": ["action"], "said": ["probability", "reward"]} | (
        {} if people is None else {"person": ["person"]}
    )
    newest, repeats = find_newest(table_of([("", dict(row)) for row in rows]), roles)
    return log if newest is None else _take(log, newest, repeats)


def _take(log: BanditLog, newest: npt.NDArray[np.bool_], repeats: Repeats) -> BanditLog:
    places = np.flatnonzero(newest).tolist()
    return BanditLog(
        [log.actions[i] for i in places],
        log.probability[places],
        log.reward[places],
        None if log.people is None else [log.people[i] for i in places],
        {name: values[places] for name, values in log.targets.items()},
        [log.context[i] for i in places],
        repeats,
    )


def evaluate_table(
    rows: Sequence[Mapping[str, object]],
    *,
    learners: Sequence[str] = (),
    targets: Sequence[str] = (),
    always: Sequence[str] = (),
    columns: Mapping[str, Sequence[str]] | None = None,
    alpha: float = 0.05,
    least_probability: float | None = None,
    least_reward: float | None = None,
    most_reward: float | None = None,
) -> Evaluation:
    """Estimate from a logged table what other policies would have earned in its place; return their mean rewards, that
    of the log itself first.

    A row is one impression, by column: `action`, the item shown; `probability` (0, 1], with which it was shown;
    `reward`; perhaps `person`; all other columns are the context. `columns`: those that have neither these names nor
    others that are usual, such as {"probability": ["p_shown"]}. A policy is one of
    - `targets`: columns with the policy's probability of the row's action;
    - `always`: actions, each shown in every row;
    - `learners`: specs such as "perceptron"; each learns from the rows in order and shows the action that it ranks
      first.

    The result is in this order. If none of the three is given, each action of the table is tried as a constant. Values
    are means weighted by the policy's probability over the logged one; each interval misses with probability `alpha` at
    most, if what is known beforehand is right:
    - `least_probability`: the least with which any action is ever shown, in any row; it makes intervals narrower
      where rewards are rare
    - `least_reward`, `most_reward`: how low and how high a reward may ever be. An interval has a lower end if the one
      is known, and an upper end if the other is. If neither is named and all rewards are 0 or 1, rewards are that.

    The value of a policy is refused if its mean weight, or that of an action, differs from 1 by more than chance: then
    logged probabilities are wrong. Above 1 that is found out without any bound, below 1 with a least probability; else
    the interval allows for what is missing, up to a fifth, beyond which the value is refused as well.

    Raise ValueError, naming the row and the column, if the table makes no sense or does not agree with what is known
    beforehand, or if learners are named and a reward is not 0 or 1."""
    check_alpha(alpha)
    log = read_bandit_log(rows, targets, columns)
    if least_probability is not None:
        check_between("least_probability", least_probability, 1e-100, 1.0)
        _check_column("probability", log.probability, least_probability, None)
    span = _span(log.reward, least_reward, most_reward)
    counts = Counter(log.actions)
    for name in always:
        if name not in counts:
            raise ValueError(f"always: expected an action of the table, got {describe(name)}")
    if not (learners or targets or always):
        always = [name for name, _ in counts.most_common()]
    about = " ".join((ABOUT, _condition(span, least_reward is most_reward is None), _bound(least_probability)))
    measure = Measure(MEASURE, about, "there are no rows", "", *span, once=True, counts="row")
    shown = np.array(log.actions)
    weights = {name: importance(log.targets[name], log.probability) for name in targets}
    weights |= {f"always {name}": importance((shown == name).astype(np.float64), log.probability) for name in always}
    most = None if least_probability is None else 1.0 / least_probability
    [baseline] = logged = (_value(np.ones(log.reward.size), log, measure, span, 1.0, alpha),)
    evaluations = [
        LearnerEvaluation(name, 0, {}, (_value(w, log, measure, span, most, alpha),)) for name, w in weights.items()
    ]
    evaluations += _learn(log, measure, learners, alpha, span, least_probability)
    names, numbers = np.unique(shown, return_inverse=True)
    if (wrong := shown_too_often(numbers, log.probability)) is not None:
        reason = f"the mean weight of always {names[wrong[0]]} is {wrong[1]:.3g}, not 1: {WRONG}"
        evaluations = [evaluation._replace(values=(refused(measure, reason, RIGHT),)) for evaluation in evaluations]
    judged = [
        evaluation._replace(values=(needing(judge(evaluation.values[0], baseline), log.reward.size),))
        for evaluation in evaluations
    ]
    rest = "the log as it is"
    if log.repeats.rows:
        rest += f", less {count(log.repeats.rows, 'row')} that repeat an impression, by its {log.repeats.by}"
    evaluated = (LearnerEvaluation("as logged", 0, {}, logged), *judged)
    return Evaluation(evaluated, (measure,), alpha, 0, rest, decisions=log.reward.size)


def _span(rewards: Array, least: float | None, most: float | None) -> Span:
    """Return the known range of `rewards` (n,), 0 to 1 if all are; raise ValueError if a reward is out of it."""
    for name, value in (("least_reward", least), ("most_reward", most)):
        if value is not None:
            check_between(name, value, -1e100, 1e100)
    if least is most is None and np.isin(rewards, (0.0, 1.0)).all():
        return 0.0, 1.0
    if least is not None and most is not None and most <= least:
        raise ValueError(f"most_reward: expected more than least_reward, got {most:g} and {least:g}")
    _check_column("reward", rewards, least, most)
    return -math.inf if least is None else float(least), math.inf if most is None else float(most)


def _check_column(name: str, values: Array, least: float | None, most: float | None) -> None:
    """Raise ValueError, naming the column and the row, if one of `values` (n,) is below `least` or above `most`."""
    if least is not None and (bad := np.flatnonzero(values < least)).size:
        at_least = f"{name}, row {bad[0] + 1}: expected at least {least:g}, the least there is"
        raise ValueError(f"{at_least}, got {values[bad[0]]:g}")
    if most is not None and (bad := np.flatnonzero(values > most)).size:
        at_most = f"{name}, row {bad[0] + 1}: expected at most {most:g}, the greatest there is"
        raise ValueError(f"{at_most}, got {values[bad[0]]:g}")


def _condition(span: Span, clicks: bool) -> str:
    """Return a sentence on what the intervals rest on: the range of rewards, and whether nobody named it (`clicks`)."""
    least, most = span
    if math.isfinite(least) and math.isfinite(most):
        range = "is 0 or 1, as all of these are" if clicks else f"lies between {least:,g} and {most:,g}"
        return f"Intervals hold if each reward {range}."
    if math.isfinite(least):
        range = f"Intervals hold if each reward is {least:,g} or more; they have no upper end, as nobody said"
        return f"{range} how high a reward may be (--most-reward)."
    if math.isfinite(most):
        range = f"Intervals hold if each reward is {most:,g} or less; they have no lower end, as nobody said"
        return f"{range} how low a reward may be (--least-reward)."
    range = "There is no interval, as nobody said how low and how high a reward may be: a lower end takes"
    return f"{range} --least-reward, an upper end --most-reward."


def _bound(least_probability: float | None) -> str:
    """Return a sentence on the least probability of any action, None if that is not known."""
    if least_probability is None:
        sentence = (
            "They allow for actions that are hardly ever shown; where rewards are rare, a known --least-probability"
        )
        return f"{sentence} makes them narrower."
    return f"They hold if no action is ever shown with a probability below {least_probability:,g}."


def _value(weights: Array, log: BanditLog, measure: Measure, span: Span, most: float | None, alpha: float) -> Value:
    interval = estimate(
        weights[:, None], log.reward[:, None], span=span, people=log.people, most=most, alpha=alpha / 2.0
    )
    people = len(set(log.people)) if log.people is not None else len(log.actions)
    return weighted(measure, interval, len(log.actions), people)


def _learn(
    log: BanditLog,
    measure: Measure,
    learners: Sequence[str],
    alpha: float,
    span: Span,
    least_probability: float | None,
) -> Iterator[LearnerEvaluation]:
    """Yield the mean reward of what each of `learners` would have shown, learning from the rows in order."""
    if not learners:
        return
    if (bad := np.flatnonzero(~np.isin(log.reward, (0.0, 1.0)))).size:
        problem = f"reward, row {bad[0] + 1}: expected 0 or 1, from which learners learn, got {log.reward[bad[0]]:g}"
        raise ValueError(problem)
    for field, end, value in zip(("least_reward", "most_reward"), (0.0, 1.0), span):
        if math.isfinite(value) and value != end:
            raise ValueError(f"{field}: expected {end:g} with learners, which learn from 0 or 1, got {value:g}")
    names = sorted(set(log.actions))  # in order of name: the order of their first rows would reveal rows to come
    items = [{"id": f"a{j}", "action": name} for j, name in enumerate(names)]
    varied = [name for name in log.context[0] if len({row[name] for row in log.context}) > 1]
    context = infer(log.context, identifier="", keep=varied) if varied else None
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        loop = Loop.create(
            Path(folder) / "log",
            encoding=infer(items, identifier="id", kinds={"action": "category"}, max_levels=MOST_ACTIONS),
            items=items,
            learner=learners[0],
            settings=Settings(k=1, control=0.0),
            context=context,
            crosses=[(name, "action") for name in varied],
        )
        with loop:
            for outcome in import_lines(loop, _lines(log, names)):
                if outcome.status == "rejected":
                    raise ValueError(f"row {(outcome.line + 1) // 2}: {outcome.reason}")
            evaluation = evaluate(loop.projection, learners[1:], alpha, least_probability=least_probability)
    place = [measure.name for measure in evaluation.measures].index("reward")
    for learner in evaluation.learners:
        yield learner._replace(values=(learner.values[place]._replace(measure=measure.name),))


def _lines(log: BanditLog, names: Sequence[str]) -> Iterator[Line]:
    """Yield two lines a row: a decision, and clicks that give its reward."""
    ids = {name: f"a{j}" for j, name in enumerate(names)}
    for i, (action, probability, reward) in enumerate(zip(log.actions, log.probability, log.reward)):
        shown = ids[action]
        decision = {"kind": "decision", "id": f"d{i}", "candidates": list(ids.values()), "shown": [shown],
                    "probability": float(probability), "context": log.context[i]}  # fmt: skip
        if log.people is not None:
            decision["person"] = log.people[i]
        yield Line(2 * i + 1, {name: value for name, value in decision.items() if value != {}}, None)
        about = {"kind": "feedback", "decision": f"d{i}"}
        yield Line(2 * i + 2, {**about, "id": f"e{i}", "clicks": [shown] if reward else []}, None)


def _text(row: Mapping[str, object], i: int, name: str) -> str:
    value = row.get(name)
    if value is None or str(value) == "":
        raise ValueError(f"{name}, row {i + 1}: expected a name, got none")
    return str(value)


def _numbers(rows: Sequence[Mapping[str, Any]], name: str) -> Array:
    numbers = np.empty(len(rows))
    for i, row in enumerate(rows):
        try:
            numbers[i] = float(row[name])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{name}, row {i + 1}: expected a number, got {describe(row.get(name))}") from None
    if (bad := np.flatnonzero(~np.isfinite(numbers))).size:
        raise ValueError(f"{name}, row {bad[0] + 1}: expected a finite number, got {numbers[bad[0]]}")
    return numbers


def _cell(value: object) -> Any:
    """Return the `value` of a cell, as a number if it is a text that is one, as in CSV."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
