"""Clicks under position bias: the caller's order, clicks at face value, 3PR, and the posterior.

`python bench/clicks.py` writes bench/results/clicks.json. Ten thousand queries of 20 documents with 20 features and
the caller's score, which says little (correlation 0.45 with the utility); a person looks at position i with
probability (1/i)^eta, or reads from the top and stops after most clicks. Every learner starts from the caller's order
(`WithBaseScore`). The learned order is that of the last weights, unperturbed, on 500 fresh queries. All with 95 %
intervals over the seeds; the difference from the posterior without swaps is paired by seed.

`python bench/clicks.py --mostly-down letor4-mq2008` writes bench/results/mostly_down.json instead: what is learned from
answers of which most are down. Each of the 564 queries of MQ2008 with a relevant document and five or more of them
keeps its documents in an order drawn with the seed; a third of the queries is held out, the others are asked at random.
A list of ten is shown and answered

- by a thumb on the list, up with the mean of grade / 2 over the ten as its probability (some 16 % at first), or down
  with that probability;
- by a thumb on the first document alone, up with its grade / 2 as the probability, or down with that;
- by an action on one document of the ten: bought (weight 1) with grade / 2 as the probability, else hidden (-1);
- by grades of all ten, 1 to 3 (four of five are 1), in a loop of grades.

NDCG@10 of the learned order of the queries held out, after 50, 500 and 2,000 answers, over `--seeds` (from `--first`
on), with standard errors; and that of the order before any answer. With `--only FORM` one row is measured, which takes
its place in the file with its commit and seeds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from machine import ROOT, description, record
from rich.console import Console
from rich.table import Table

from heedful import Ranking
from heedful.core.fold import coerce, copy_arrays, generators
from heedful.data.letor import load_letor
from heedful.jit.cache import loop_for
from heedful.jit.kernel import DISCOUNTS
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.learners.coactive.perturbed import PerturbedPerceptron
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.ordinal.ordinal_logistic import OrdinalLogistic
from heedful.loop.interactions.coactive.model import Model
from heedful.loop.interactions.ordinal.model import GradingModel
from heedful.loop.model import Context
from heedful.loop.records import DecisionRecord, FeedbackRecord
from heedful.loop.settings import Settings
from heedful.spaces.ranking import WithBaseScore
from heedful.worlds.clicks import Cascade, PositionBiased
from heedful.worlds.queries import query_stream

SEEDS, ROUNDS, EARLY, FRESH = 10, 10_000, 1_000, 500
FEATURES, DOCUMENTS, K = 20, 20, 5
T95 = 2.262  # Student's t, nine degrees of freedom
USERS = {
    "no bias (eta 0)": PositionBiased(0.0, clicks_only=True),
    "eta 1": PositionBiased(1.0, clicks_only=True),
    "eta 2": PositionBiased(2.0, clicks_only=True),
    "eta 3": PositionBiased(3.0, clicks_only=True),
    "cascade, stop 0.9": Cascade(0.9, clicks_only=True),
}
SPACE, N = WithBaseScore(Ranking(K)), FEATURES + 1
PLAIN = "posterior, swap 0.0"
LEARNERS: dict[str, Any] = {
    "perceptron at face value": PreferencePerceptron(N, SPACE),
    **{f"3PR, swap {swap}": PerturbedPerceptron(N, SPACE, swap) for swap in (0.25, 0.5)},
    **{f"posterior, swap {swap}": Posterior(N, SPACE, swap=swap) for swap in (0.0, 0.1, 0.25, 0.5)},
}


def documents(queries: int, seed: int, part: int) -> tuple[Any, Any, Any, Any]:
    """Documents with the caller's score last (rows x 21), grades, utilities (rows,), w* (21,)."""
    w_star = np.random.default_rng([seed, 0]).standard_normal(FEATURES)
    w_star /= np.linalg.norm(w_star)
    rng = np.random.default_rng([seed, part])
    X = rng.standard_normal((queries * DOCUMENTS, FEATURES))
    u = X @ w_star
    grades = np.clip(np.round(2.0 + 1.2 * (u + 0.5 * rng.standard_normal(u.size))), 0.0, 4.0)
    caller = 0.5 * u + rng.standard_normal(u.size)
    return np.column_stack([X, caller]), grades, u, np.append(w_star, 0.0)


def quality(w: Any, fresh: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    """(NDCG@5 by grade, regret in utility) of the order that w makes of fresh queries, the caller's score primed."""
    X, grades, u, _ = fresh
    scores = (X @ w + X[:, -1]).reshape(-1, DOCUMENTS)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :K]

    def of(values: Any) -> tuple[Any, Any]:
        rows = values.reshape(-1, DOCUMENTS)
        discounts = DISCOUNTS[:K]
        return np.take_along_axis(rows, order, 1) @ discounts, -np.sort(-rows, axis=1)[:, :K] @ discounts

    gained, best = of(2.0**grades - 1.0)
    utility, most = of(u)
    return float(np.mean(gained / best)), float(np.mean(most - utility))


def played(learner: Any, world: Any, seed: int, rounds: int) -> tuple[float, Any]:
    """(mean regret of what was shown in the last quarter, the last weights)."""
    learner, world = coerce(learner), coerce(world)
    asked, answered, drawn = generators(seed)
    state, truth, regrets = learner.init(drawn), world.init(asked), np.empty(rounds)
    arguments = (learner, world, state, truth, regrets, 0, asked, answered, drawn)
    last = copy_arrays(loop_for(*arguments)(*arguments)[0])
    return float(regrets[-(rounds // 4) :].mean()), learner.weights(last)


def interval(values: Any) -> list[float]:
    """Mean, and half of the 95 % interval."""
    return [round(float(np.mean(values)), 4), round(T95 * float(np.std(values, ddof=1)) / np.sqrt(len(values)), 4)]


# ---------------------------------------------------------------------------- mostly down

SHOWN, LOOKS = 10, (50, 500, 2000)
Answer = tuple[list[int], list[float]]


def list_thumb(grades: Any, shown: Any, rng: np.random.Generator) -> Answer:
    return [], [1.0 if rng.random() < grades[shown].mean() / 2.0 else -1.0]


def other_list_thumb(grades: Any, shown: Any, rng: np.random.Generator) -> Answer:
    return [], [1.0 if rng.random() < 0.68 + grades[shown].mean() / 2.0 else -1.0]


def item_thumb(grades: Any, shown: Any, rng: np.random.Generator) -> Answer:
    return [int(shown[0])], [1.0 if rng.random() < grades[shown[0]] / 2.0 else -1.0]


def action(grades: Any, shown: Any, rng: np.random.Generator) -> Answer:
    j = int(rng.choice(shown))
    return [j], [1.0 if rng.random() < grades[j] / 2.0 else -1.0]


def graded(grades: Any, shown: Any, rng: np.random.Generator) -> Answer:
    return shown.tolist(), (1.0 + grades[shown]).tolist()


FORMS = {
    "thumbs on the list": ("thumb", list_thumb),
    "thumbs on the list, 84 % up": ("thumb", other_list_thumb),
    "thumbs on the first": ("thumb", item_thumb),
    "actions, most against": ("action", action),
    "grades, most the lowest": ("grade", graded),
}


def model_of(form: str, n: int) -> Any:
    """The model of a loop with the default settings that takes answers of this form, for n features."""
    manifest: Any = SimpleNamespace(settings=Settings(k=SHOWN))
    if form == "grade":
        return GradingModel(OrdinalLogistic(n, 3), manifest)
    return Model(Posterior(n, WithBaseScore(Ranking(SHOWN)), swap=0.1), manifest)


def ndcg(grades: Any, order: Any) -> float:
    gains = 2.0**grades - 1.0
    return float(gains[order[:SHOWN]] @ DISCOUNTS[: order[:SHOWN].size]) / float(
        np.sort(gains)[::-1][:SHOWN] @ DISCOUNTS[: min(SHOWN, gains.size)]
    )


def learned(queries: list[tuple[Any, Any]], form: str, answer: Any, seed: int) -> list[float]:
    """NDCG@10 of the queries held out before any answer and after each look; then the share of answers above 0 among
    the first 50 and among all."""
    rng = np.random.default_rng([seed, 35])
    queries = [(x[order], grades[order]) for x, grades in queries for order in [rng.permutation(grades.size)]]
    at = rng.permutation(len(queries))
    fresh, asked = at[: at.size // 3], at[at.size // 3 :]
    m = model_of(form, queries[0][0].shape[1])
    nothing, found, ups = np.zeros((0, queries[0][0].shape[1])), [], []

    def quality() -> float:
        return float(np.mean([ndcg(queries[i][1], m.order(m.view(), queries[i][0])) for i in fresh]))

    found.append(quality())
    for t in range(1, LOOKS[-1] + 1):
        x, grades = queries[rng.choice(asked)]
        y = m.propose(m.view(), x, rng)
        shown = (y.shown if isinstance(y, tuple) else y)[:SHOWN]
        record_ = DecisionRecord(shown=tuple(shown.tolist()), proposal=m.proposal_fields(y))
        chosen, values = answer(grades, shown, rng)
        ups.append(np.mean(np.array(values) > (1.0 if form == "grade" else 0.0)))
        m.teach(Context(record_, x, None), FeedbackRecord(form, chosen, values), nothing, t)
        if t in LOOKS:
            found.append(quality())
    return [*found, float(np.mean(ups[:50])), float(np.mean(ups))]


def mostly_down(folder: Path, first: int, seeds: int, only: str | None) -> None:
    """Print and write what is learned on the files of MQ2008 in the `folder`, of one form of answers if `only` says."""
    data = load_letor(*sorted(folder.glob("S*.txt*")))
    spans = zip(data.offsets[:-1], data.offsets[1:])
    X = np.column_stack([data.X, np.zeros(len(data.X))])  # the caller gives no score
    queries = [(X[a:b], data.labels[a:b]) for a, b in spans if b - a >= 5 and data.labels[a:b].any()]
    columns = ("before", *(f"after {look:,}" for look in LOOKS), "up, first 50", "up, all")
    table, results = Table(f"NDCG@10, {len(queries)} queries, {seeds} seeds", "answers", *columns), {}
    for name, (form, answer) in FORMS.items():
        if only not in (None, name):
            continue
        got = np.array([learned(queries, form, answer, seed) for seed in range(first, first + seeds)])
        mean, error = got.mean(axis=0), got.std(axis=0, ddof=1) / np.sqrt(seeds)
        results[name] = {column: [round(a, 4), round(b, 4)] for column, a, b in zip(columns, mean, error)}
        table.add_row(name, *(f"{a:.3f} ± {b:.3f}" for a, b in zip(mean, error)))
    Console(width=150).print(table)
    told: dict[str, Any] = {"seeds": seeds, "first": first, "mean, standard error": results}
    if only:
        own = {"commit": description()["commit"], "seeds": seeds, "first": first}
        told = json.loads((ROOT / "bench" / "results" / "mostly_down.json").read_text())
        told["mean, standard error"][only] = own | results[only]
    record("mostly_down", told)


# ---------------------------------------------------------------------------- clicks


def main() -> None:
    seen: dict[str, dict[str, list[tuple[float, ...]]]] = {name: {} for name in USERS}
    for seed in range(SEEDS):
        X, grades, _, w_star = documents(ROUNDS, seed, 1)
        fresh = documents(FRESH, seed, 2)
        offsets = np.arange(0, len(X) + 1, DOCUMENTS)
        stream = query_stream(X, grades, offsets, w_star, next(iter(USERS.values())), k=K, shuffle=seed)
        ndcg, regret = quality(np.zeros(N), fresh)
        for user_name, user in USERS.items():
            rows = seen[user_name]
            rows.setdefault("the caller's order", []).append((ndcg, regret, regret, regret))
            for name, learner in LEARNERS.items():
                # a perceptron needs the whole order that the clicks make; the others take the clicks alone
                whole = user._replace(clicks_only=not isinstance(learner, PreferencePerceptron))
                world = stream._replace(user=whole)
                late, w = played(learner, world, seed, ROUNDS)
                _, early = quality(played(learner, world, seed, EARLY)[1], fresh)
                rows.setdefault(name, []).append((*quality(w, fresh), late, early))
    results = {}
    for user_name, rows in seen.items():
        plain = np.array(rows[PLAIN])
        columns = ("NDCG@5 learned", "regret learned", "less no swaps", "shown, last quarter", "learned in 1000")
        table = Table(user_name, *columns)
        results[user_name] = {}
        for name, values in rows.items():
            got = np.array(values)
            figures = {
                "NDCG@5 of the learned order": interval(got[:, 0]),
                "regret of the learned order": interval(got[:, 1]),
                "regret of the learned order less that without swaps": interval(got[:, 1] - plain[:, 1]),
                "regret of what was shown, last quarter": interval(got[:, 2]),
                "regret of the order learned in 1000 rounds": interval(got[:, 3]),
            }
            results[user_name][name] = figures
            table.add_row(name, *(f"{mean:.4f} ± {half:.4f}" for mean, half in figures.values()))
        Console(width=150).print(table)
    record("clicks", {"seeds": SEEDS, "rounds": ROUNDS, "mean, half of the 95 % interval": results})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mostly-down", type=Path, metavar="DIR", help="the folder with the files S1 to S5 of MQ2008")
    parser.add_argument("--only", choices=FORMS, metavar="FORM", help="of --mostly-down, answers of one form alone")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    if chosen.mostly_down is None:
        main()
    else:
        mostly_down(chosen.mostly_down, chosen.first, chosen.seeds, chosen.only)
