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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_alpha, check_between, describe
from heedful.core.wording import count
from heedful.data.cells import Bools, refuse_cells
from heedful.data.files import cell_number, cut_list
from heedful.data.jsonl import Line
from heedful.data.repeats import ANSWER_IDS, MAYBE_IDS, TIMES, Repeats, newest_rows
from heedful.data.roles import find_roles, plain
from heedful.data.set_aside import counted_rows
from heedful.data.table import CodedColumn, Table
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
LEAST = "the least there is"
ABOUT = (
    "Reward is the mean of what was earned, each row weighted by the probability of its action in the way to choose "
    "that is looked at, over that in the log."
)
Span = tuple[float, float]
"""The (least, greatest) reward that is possible, -inf or inf if that is not known."""


class BanditLog(NamedTuple):
    """A checked table of n impressions (one item shown once, with its reward): its columns as arrays and lists of n
    entries. Of several rows of the same impression (`newest_rows`) there is one, the newest."""

    table: Table
    columns: dict[str, CodedColumn]
    """its columns by name"""
    roles: dict[str, list[str]]
    """the names of those of the action, the probability, the reward and, if there is one, the person"""
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
    repeats: Repeats
    """the rows that were left out, because their impression stands in another row"""

    def refuse(self, role: str, wrong: Bools, expected: str) -> None:
        """Raise ValueError, which says what was `expected` in the column of this role, for the first row that is
        `wrong` (n,)."""
        name = self.roles[role][0]
        refuse_cells(self.table, wrong, name, expected, self.columns[name])


def read_bandit_log(
    table: Table, targets: Sequence[str] = (), columns: Mapping[str, Sequence[str]] | None = None
) -> BanditLog:
    """Return a table of impressions, one item shown once in each row, with its columns as arrays.

    `targets` are the columns with the probability that another policy would have shown the row's item; `columns`, those
    of roles (action, probability, reward, person) whose names differ from the usual ones. Raise ValueError, naming the
    row and the column, for a missing column, a value that makes no sense, or more than `MOST_ACTIONS` different items.
    """
    table, named = counted_rows(table, columns)
    for name in targets:
        if name not in table.header:
            raise ValueError(f"{name}: expected a column of that name, got {cut_list(table.header)}")
    roles = find_roles(table.name, table.header, REQUIRED, named, optional=("person",))
    action, probability, reward = (roles[role][0] for role in REQUIRED)
    subject = {role: names for role, names in roles.items() if role in ("action", "person")}
    table, repeats = newest_rows(table, subject | {"said": [probability, reward]})
    coded = dict(zip(table.header, table.columns(table.header)))

    def texts(name: str) -> list[str]:
        values, codes = coded[name]
        read = ["" if value is None else str(value) for value in values]
        refuse_cells(table, np.array([not text for text in read])[codes], name, "a name", coded[name])
        return [read[k] for k in codes.tolist()]

    def numbers(name: str, expected: str, is_right: Callable[[Array], Bools]) -> Array:
        values, codes = coded[name]
        read = [float(value) if isinstance(value, bool) else cell_number(value) for value in values]
        column = np.array(read, np.float64)[codes]  # None becomes NaN
        refuse_cells(table, ~is_right(column), name, expected, coded[name])
        return column

    used = {*REQUIRED, "person", *targets, *(name for names in roles.values() for name in names)}
    others = {name: list(map(_cell, values)) for name, (values, _) in coded.items() if name not in used}
    for name in [*others]:  # which row it is, and when it was, is no context: it never comes again
        stamp = plain(name) in TIMES and all(isinstance(value, str) for value in others[name])
        if stamp or plain(name) in (*ANSWER_IDS, *MAYBE_IDS):
            del others[name]
    actions = texts(action)
    if len(set(actions)) > MOST_ACTIONS:
        raise ValueError(f"action: expected at most {MOST_ACTIONS} different ones, got {len(set(actions)):,}")
    return BanditLog(
        table,
        coded,
        roles,
        actions,
        numbers(probability, "a number above 0, up to 1", lambda p: (p > 0.0) & (p <= 1.0)),
        numbers(reward, "a finite number", np.isfinite),
        texts(roles["person"][0]) if "person" in roles else None,
        {name: numbers(name, "a probability", lambda p: (p >= 0.0) & (p <= 1.0)) for name in targets},
        [{name: others[name][coded[name].codes[i]] for name in others} for i in range(len(actions))],
        repeats,
    )


def evaluate_table(
    table: Table,
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
    log = read_bandit_log(table, targets, columns)
    if least_probability is not None:
        check_between("least_probability", least_probability, 1e-100, 1.0)
        log.refuse("probability", log.probability < least_probability, f"at least {least_probability:g}, {LEAST}")
    span = _span(log, least_reward, most_reward)
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


def _span(log: BanditLog, least: float | None, most: float | None) -> Span:
    """Return the known range of rewards, 0 to 1 if all are; raise ValueError if a reward is out of it."""
    for name, value in (("least_reward", least), ("most_reward", most)):
        if value is not None:
            check_between(name, value, -1e100, 1e100)
    if least is most is None and np.isin(log.reward, (0.0, 1.0)).all():
        return 0.0, 1.0
    if least is not None and most is not None and most <= least:
        raise ValueError(f"most_reward: expected more than least_reward, got {most:g} and {least:g}")
    low, high = -math.inf if least is None else float(least), math.inf if most is None else float(most)
    log.refuse("reward", log.reward < low, f"at least {low:g}, {LEAST}")
    log.refuse("reward", log.reward > high, f"at most {high:g}, the greatest there is")
    return low, high


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
    log.refuse("reward", ~np.isin(log.reward, (0.0, 1.0)), "0 or 1, from which learners learn")
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
                    raise ValueError(f"{log.table.located()[(outcome.line - 1) // 2][0]}: {outcome.reason}")
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


def _cell(value: object) -> Any:
    """Return the `value` of a cell, as a number if it is a text that is one, as in CSV."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
