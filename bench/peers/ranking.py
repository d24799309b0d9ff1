"""Rankings: a stream of queries, one simulated person who corrects each list, heedful against learners of pairs.

Every entrant meets the same queries in the same order and is answered by the same rule: the person looks at ten
documents and puts the five of highest label on top. The labels are noisy, so many corrections are wrong. What a
correction implies (`implied_pairs`) is the same for all; each learns it with the loss and the step that it has. All
models are linear in the features, without intercept.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import PreferencePerceptron, Ranking, Session, trace
from heedful.core.fold import generators
from heedful.data.letor import least_squares, load_letor
from heedful.learners.coactive.posterior import Posterior
from heedful.learners.coactive.second_order import SecondOrderPerceptron
from heedful.worlds.queries import QueryStream, query_stream, synthetic_queries
from heedful.worlds.users import Noisy

Array = Any
TITLE = "Rankings"
STREAM = "20 documents a query, 50 features, noise 1.0; the person puts the best 5 of the first 10 on top"
K, DOCUMENTS, FEATURES, NOISE, HELD = 5, 20, 50, 1.0, 500
ROUNDS, QUICK, TUNING = 4_000, 400, 0.25
QUALITY = "regret"


class Stream(NamedTuple):
    """Queries to learn from, and (documents, labels) of others, on which the last model is judged."""

    world: QueryStream
    held: list[tuple[Array, Array]]


def stream(seed: int, rounds: int, data: str = "") -> Stream:
    """`rounds` queries and HELD others of one true utility; or LETOR's S1 to S4 of a folder, with S5 held out."""
    if not data:
        world, _ = synthetic_queries(rounds + HELD, DOCUMENTS, FEATURES, noise=NOISE, user=Noisy(10), seed=seed, k=K)
        rows = rounds * DOCUMENTS
        first = world._replace(
            X=world.X[:rows], labels=world.labels[:rows], utilities=world.utilities[:rows],
            best=world.best[:rounds], offsets=world.offsets[: rounds + 1],
        )  # fmt: skip
        return Stream(first, _split(world.X[rows:], world.labels[rows:], world.offsets[rounds:] - rows))
    parts = [load_letor(*sorted(Path(data).glob(f"S{i}.txt*"))) for i in range(1, 6)]
    q = load_letor(*(path for i in range(1, 5) for path in sorted(Path(data).glob(f"S{i}.txt*"))))
    w = least_squares(q.X, q.labels)
    world = query_stream(q.X, q.labels, q.offsets, w, Noisy(10), k=K, shuffle=seed)
    return Stream(world, _split(parts[4].X, parts[4].labels, parts[4].offsets))


def _split(X: Array, labels: Array, offsets: Array) -> list[tuple[Array, Array]]:
    return [(X[lo:hi], labels[lo:hi]) for lo, hi in pairwise(offsets)]


def implied_pairs(better: Array, shown: Array, k: int = K) -> tuple[list[int], list[int]]:
    """The candidates a and b of every pair "a is better than b" that a correction of a list implies.

    Each of the first k of the corrected list beats what the person looked at and did not put there, and any other of
    these k that it overtook: what heedful's posterior takes (`preferred`).
    """
    chosen, seen = better[:k].tolist(), shown.tolist()
    place = {j: i for i, j in enumerate(seen)}
    depth = max(min(k, len(seen)), *(place[a] + 1 for a in chosen))
    passed = [b for b in seen[:depth] if b not in chosen]
    pairs = [(a, b) for a in chosen for b in passed]
    pairs += [(a, b) for i, a in enumerate(chosen) for b in chosen[i + 1 :] if place[a] > place[b]]
    return [a for a, _ in pairs], [b for _, b in pairs]


def ndcg(order: Array, labels: Array) -> float:
    """DCG@K of the labels in this order, over the greatest; 1 where no label is above 0."""
    discounts = 1.0 / np.log2(np.arange(2, K + 2))
    best = np.sort(labels)[::-1][:K] @ discounts[: labels.size]
    return float(labels[order[:K]] @ discounts[: labels.size] / best) if best > 0 else 1.0


# ---------------------------------------------------------------------------- entrants: prepare, rank, learn


class Heedful:
    """A session: its checks of input are inside the clock."""

    def __init__(self, learner: Any) -> None:
        self.session = Session(learner)

    def prepare(self, x: Array) -> Any:
        return x

    def rank(self, x: Any) -> Array:
        y = self.session.propose(x)
        return getattr(y, "shown", y)

    def learn(self, x: Any, shown: Array, better: Array) -> None:
        self.session.learn(better)


class LinearPeer:
    """What peers share: scores by the model's weights, pairs as rows of differences."""

    def __init__(self) -> None:
        self.w: Array = None

    def prepare(self, x: Array) -> Any:
        return x

    def rank(self, x: Array) -> Array:
        return np.arange(len(x)) if self.w is None else np.argsort(-(x @ self.w), kind="stable")

    def learn(self, x: Array, shown: Array, better: Array) -> None:
        a, b = implied_pairs(better, shown)
        if a:
            self.learn_pairs(x[a] - x[b])

    def learn_pairs(self, D: Array) -> None:
        raise NotImplementedError


class VWPairs(LinearPeer):
    """Vowpal Wabbit, logistic loss: one example for each pair, whose features are the difference."""

    def __init__(self, l: float) -> None:  # noqa: E741
        super().__init__()
        from vowpalwabbit import Workspace

        self.vw = Workspace(f"--loss_function logistic --noconstant --quiet -l {l}")
        self.at: list[int] = []

    def learn_pairs(self, D: Array) -> None:
        if not self.at:
            space = self.vw.hash_space("f")
            self.at = [self.vw.hash_feature(str(i), space) for i in range(D.shape[1])]
        for d in D.tolist():
            example = self.vw.example({"f": list(zip(self.at, d))})
            example.set_label_string("1")
            self.vw.learn(example)
            self.vw.finish_example(example)
        self.w = np.array([self.vw.get_weight(i) for i in self.at])


class VWMultiline:
    """Vowpal Wabbit's weighted all pairs: one example of many lines a list. Texts are made before the clock runs."""

    def __init__(self, l: float, graded: bool) -> None:  # noqa: E741
        from vowpalwabbit import Workspace

        self.vw, self.graded = Workspace(f"--wap_ldf m --csoaa_rank --noconstant --quiet -l {l}"), graded

    def prepare(self, x: Array) -> list[str]:
        return ["|f " + " ".join([f"{i}:{v:.9g}" for i, v in enumerate(row)]) for row in x.tolist()]

    def rank(self, x: list[str]) -> Array:
        cost = self.vw.predict([f"{j} {line}" for j, line in enumerate(x)])
        return np.argsort(cost, kind="stable")

    def learn(self, x: list[str], shown: Array, better: Array) -> None:
        chosen, seen = better[:K].tolist(), shown.tolist()
        depth = max(min(K, len(seen)), *(seen.index(a) + 1 for a in chosen))
        cost = {a: (i if self.graded else 0) for i, a in enumerate(chosen)}
        self.vw.learn([f"{j}:{cost.get(b, K if self.graded else 1)} {x[b]}" for j, b in enumerate(seen[:depth])])


class River(LinearPeer):
    """River's logistic regression with AdaGrad, one pair at a time."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        from river import linear_model, optim

        self.model = linear_model.LogisticRegression(optimizer=optim.AdaGrad(rate), intercept_lr=0.0)

    def learn_pairs(self, D: Array) -> None:
        for d in D.tolist():
            self.model.learn_one(dict(enumerate(d)), True)
        w = self.model.weights
        self.w = np.array([w[i] for i in range(D.shape[1])])


class PartialFit(LinearPeer):
    """scikit-learn's SGDClassifier, the pairs of a correction as a mini-batch; a constant step has averaged weights."""

    def __init__(self, schedule: str, eta0: float) -> None:
        super().__init__()
        from sklearn.linear_model import SGDClassifier

        self.model = SGDClassifier(
            loss="log_loss", alpha=1e-6, fit_intercept=False, learning_rate=schedule, eta0=eta0, shuffle=False,
            average=schedule == "constant",
        )  # fmt: skip

    def learn_pairs(self, D: Array) -> None:
        self.model.partial_fit(D, np.ones(len(D)), classes=[-1.0, 1.0])
        self.w = self.model.coef_[0]


class RefittedSVM(LinearPeer):
    """RankSVM: scikit-learn's LinearSVC on all pairs so far, fitted again at 25, 50, 100, 200 and every 200 lists."""

    def __init__(self, C: float) -> None:
        super().__init__()
        self.C, self.pairs, self.t = C, [], 0

    def learn(self, x: Array, shown: Array, better: Array) -> None:
        super().learn(x, shown, better)
        self.t += 1
        if self.pairs and (self.t in (25, 50, 100) or self.t % 200 == 0):
            from sklearn.svm import LinearSVC

            D = np.concatenate(self.pairs)
            sign = np.where(np.arange(len(D)) % 2, -1.0, 1.0)  # it wants two classes
            self.w = LinearSVC(C=self.C, dual=False, fit_intercept=False).fit(D * sign[:, None], sign).coef_[0]

    def learn_pairs(self, D: Array) -> None:
        self.pairs.append(D)


RATES = tuple({"rate": rate} for rate in (0.003, 0.01, 0.03, 0.1))
STEPS = tuple({"l": step} for step in (0.01, 0.03, 0.1, 0.5))


def posterior(n: int) -> Any:
    return Posterior(n, Ranking(K), swap=0.0)


ENTRANTS = {
    "heedful, posterior": Entrant("heedful", "Session, one list at a time", lambda n: Heedful(posterior(n))),
    "heedful, posterior, compiled": Entrant("heedful", "trace: the simulation included", posterior),
    "heedful, perceptron": Entrant(
        "heedful", "Session, one list at a time", lambda n: Heedful(PreferencePerceptron(n, Ranking(K)))
    ),
    "heedful, second-order": Entrant(
        "heedful", "Session, one list at a time", lambda n: Heedful(SecondOrderPerceptron(n, Ranking(K)))
    ),
    "Vowpal Wabbit, --wap_ldf m": Entrant(
        "vowpalwabbit", "--csoaa_rank; its adaptive steps; texts made before", lambda n, **s: VWMultiline(**s),
        tuple({**step, "graded": graded} for graded in (False, True) for step in STEPS),
    ),
    "Vowpal Wabbit, logistic pairs": Entrant(
        "vowpalwabbit", "--loss_function logistic; an example a pair", lambda n, **s: VWPairs(**s), STEPS
    ),
    "River, LogisticRegression": Entrant("river", "AdaGrad, learn_one a pair", lambda n, **s: River(**s), RATES),
    "scikit-learn, SGDClassifier": Entrant(
        "scikit-learn", "log loss, partial_fit a list", lambda n, **s: PartialFit(**s),
        tuple(
            {"schedule": schedule, "eta0": eta0}
            for schedule, etas in (("constant", (0.001, 0.003, 0.01)), ("invscaling", (0.01, 0.03, 0.1)))
            for eta0 in etas
        ),
    ),
    "RankSVM, LinearSVC refitted": Entrant(
        "scikit-learn", "all pairs so far, every 200 lists", lambda n, **s: RefittedSVM(**s),
        tuple({"C": C} for C in (0.001, 0.01, 0.1, 1.0)),
    ),
}  # fmt: skip
REFERENCE = "heedful, posterior"
COLUMNS = {
    "regret": "regret, all rounds", "late": "regret, last quarter", "NDCG@5": "NDCG@5 at the end, other queries"
}  # fmt: skip


def measure(job: Job) -> dict[str, float]:
    """Regret of the lists shown, NDCG@5 of the last model on other queries, seconds of ranking and learning."""
    world, held = stream(job.seed, job.rounds, job.data)
    entrant = ENTRANTS[job.entrant]
    n = world.X.shape[1]
    memory = Memory()
    if job.entrant.endswith("compiled"):
        return _compiled(entrant.make(n, **job.setting), world, job, memory)
    player, clock = entrant.make(n, **job.setting), Clock()
    asked, answered, _ = generators(job.seed)
    truth, regrets = world.init(asked), np.empty(job.rounds)
    for t in range(job.rounds):
        x = world.context(truth, t, asked)
        ready = player.prepare(x)
        with clock.on():
            shown = player.rank(ready)
        better = world.respond(truth, x, shown, answered)
        regrets[t] = world.regret(truth, x, shown)
        with clock.on():
            player.learn(ready, shown, better)
        truth = world.advance(truth, x, shown, better)
    gained = [ndcg(player.rank(player.prepare(x)), labels) for x, labels in held]
    return _figures(regrets, clock, memory) | {"NDCG@5": float(np.mean(gained))}


def _compiled(learner: Any, world: QueryStream, job: Job, memory: Memory) -> dict[str, float]:
    trace(learner, world, 10, job.seed)
    clock = Clock()
    with clock.on():
        regrets = trace(learner, world, job.rounds, job.seed)
    return _figures(regrets, clock, memory)


def _figures(regrets: Array, clock: Clock, memory: Memory) -> dict[str, float]:
    late = regrets[-(regrets.size // 4) :]
    return {
        "regret": float(regrets.mean()), "late": float(late.mean()),
        "rounds": regrets.size, "seconds": clock.seconds, "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
