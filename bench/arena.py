"""Do the intervals of an arena's leaderboard hold, is its order right, and what does it cost? `python bench/arena.py`.

Studies: 100 models with scores N(0, .7) in logits vote against each other in pairs that are uniform, or skewed (a
model's share falls as one over its rank). Votes are Bradley-Terry's; answers closer than .4 tie (Rao and Kupper), or
ties come about by Davidson's odds. People who differ have scores of their own, N(0, .5) around those of all; then the
truth is what Bradley-Terry fits to the votes of infinitely many such people. Of each study: the share of 90 % intervals
of scores that hold the truth, and of 90 % intervals of places that hold the true place; and how many of all pairs stand
in the right order (Kendall's tau), next to that of scikit-learn's logistic regression, each tie being half a win for
both. Costs: processes of `heedful rank` on CSV files, their time and greatest memory.

Writes bench/results/arena.json while it goes and takes up where it was stopped; `--only CELL`, `--table`, and
`--quick`, which takes two studies a cell, no costs, and writes nothing.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # before numpy starts its threads
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import json
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import description
from rich.console import Console
from rich.table import Table
from scipy.special import expit
from scipy.stats import kendalltau

from heedful.data.votes import Votes
from heedful.boards.bradley_terry import Cells, fit
from heedful.boards.leaderboard import MIDDLE, POINTS, leaderboard

FILE = Path(__file__).parent / "results" / "arena.json"
MODELS, SPREAD, WIDTH, ODDS, OWN = 100, 0.7, 0.4, -0.2, 0.5
STUDIES = 40
TIES = ("none", "threshold", "odds")
SEED = 20261126
out = Console(width=140)


class Cell(NamedTuple):
    votes: int
    ties: str = "none"
    """how ties come about, one of TIES"""
    skewed: bool = False
    people: int = 0
    """people who differ, each with as many votes; 0: each vote is of nobody in particular"""

    @property
    def name(self) -> str:
        pairs = "skewed" if self.skewed else "uniform"
        told = f"{self.people} people who differ" if self.people else pairs
        return f"{self.votes} votes, {told}, ties: {self.ties}"


CELLS = [
    *[Cell(votes, ties, skewed) for votes in (30_000, 300_000, 1_000_000) for ties in TIES for skewed in (False, True)],
    *[Cell(100_000, ties, people=20_000) for ties in TIES],
]


# ---------------------------------------------------------------------------- studies


def chances(ties: str, eta: Any) -> tuple[Any, Any]:
    """P(the first wins), P(tie), by the difference in logits."""
    if ties == "threshold":
        win, loss = expit(eta - WIDTH), expit(-eta - WIDTH)
        return win, 1.0 - win - loss
    if ties == "odds":
        up, down, tie = np.exp(0.5 * eta), np.exp(-0.5 * eta), np.exp(ODDS)
        return up / (up + down + tie), tie / (up + down + tie)
    return expit(eta), np.zeros_like(eta)


def marginal_truth(truth: Any, ties: str) -> Any:
    """What Bradley-Terry fits to the votes of infinitely many people whose scores are N(0, OWN^2) around `truth`."""
    x, w = np.polynomial.hermite_e.hermegauss(40)
    a, b = np.triu_indices(truth.size, 1)
    gaps = (truth[a] - truth[b])[:, None] + np.sqrt(2.0) * OWN * x
    win, tie = (each @ w / w.sum() for each in chances(ties, gaps))
    outcome = np.repeat([2, 1, 0], a.size)
    weight = 1e6 * np.concatenate([win, tie, np.maximum(1.0 - win - tie, 0.0)])
    cells = Cells(np.tile(a, 3), np.tile(b, 3), outcome, weight, np.empty((weight.size, 0)))
    models = ("half",) if ties == "none" else ("threshold", "odds", "constant")
    return max((fit(truth.size, cells, each, sd=20.0) for each in models), key=lambda each: each.log).scores  # type: ignore[arg-type]


def draw(cell: Cell, number: int) -> tuple[Votes, Any]:
    rng = np.random.default_rng([SEED, cell.votes, cell.people, cell.skewed, TIES.index(cell.ties), number])
    n = MODELS
    truth = SPREAD * rng.standard_normal(n)
    share = rng.permutation(1.0 / np.arange(1, n + 1)) if cell.skewed else np.ones(n)
    share /= share.sum()
    a, b = rng.choice(n, (2, cell.votes), p=share)
    while (same := a == b).any():
        b[same] = rng.choice(n, int(same.sum()), p=share)
    eta = truth[a] - truth[b]
    person = np.zeros(cell.votes, np.int64)
    if cell.people:
        person = np.repeat(np.arange(cell.people), cell.votes // cell.people)
        own = OWN * rng.standard_normal((cell.people, n))
        eta = eta + own[person, a] - own[person, b]
        truth = marginal_truth(truth, cell.ties)
    win, tie = chances(cell.ties, eta)
    u = rng.random(cell.votes)
    outcome = np.where(u < win, 2, np.where(u < win + tie, 1, 0))
    people = tuple(map(str, range(cell.people))) if cell.people else ("",)
    ones, no = np.ones(cell.votes, np.int64), np.zeros(cell.votes, bool)
    names = tuple(f"m{i}" for i in range(n))
    empty = np.empty((cell.votes, 0))
    votes = Votes(names, people, a, b, outcome, person, ones, True, no, (), empty, (), np.zeros_like(ones), {}, "drawn")
    return votes, truth - truth.mean()


def study(cell: Cell, number: int) -> dict[str, float]:
    votes, truth = draw(cell, number)
    start = time.process_time()
    board = leaderboard(votes, influence=False)
    seconds = time.process_time() - start
    place = np.empty(MODELS, np.int64)
    place[(-truth).argsort()] = np.arange(1, MODELS + 1)
    want = POINTS * truth + MIDDLE
    inside = (board.by_number("score_low") <= want) & (want <= board.by_number("score_high"))
    pairs = np.triu_indices(MODELS, 1)
    sd = np.sqrt(board.posterior.whole().gap(*pairs)[1])  # type: ignore[union-attr]
    gap = (board.score - want)[pairs[0]] - (board.score - want)[pairs[1]]
    return {
        "intervals": float(inside.mean()),
        "differences": float((np.abs(gap) <= 1.6449 * sd).mean()),
        "places": float(((board.by_number("place_low") <= place) & (place <= board.by_number("place_high"))).mean()),
        "width": float((board.by_number("score_high") - board.by_number("score_low")).mean()),
        "tau": float(kendalltau(board.score, truth).statistic),
        "logistic": float(kendalltau(logistic(votes), truth).statistic),
        "seconds": seconds,
    }


def logistic(votes: Votes) -> Any:
    """Scores by scikit-learn's logistic regression as it is, without an intercept, a tie as half a win for both."""
    from scipy.sparse import coo_matrix, vstack
    from sklearn.linear_model import LogisticRegression

    n = MODELS
    y = votes.outcome / 2.0
    key = votes.first * n + votes.second
    won, lost = np.bincount(key, y, n * n), np.bincount(key, 1.0 - y, n * n)
    at = np.flatnonzero(won + lost)
    rows = np.arange(at.size)
    one = np.ones(at.size)
    X = coo_matrix((np.concatenate([one, -one]), (np.concatenate([rows, rows]), np.concatenate([at // n, at % n]))))
    X = X.tocsr()
    target = np.repeat([1, 0], at.size)
    model = LogisticRegression(fit_intercept=False, max_iter=1_000)
    weight = np.concatenate([won[at], lost[at]])
    return model.fit(vstack([X, X]), target, sample_weight=weight).coef_[0]


# ---------------------------------------------------------------------------- costs


class File(NamedTuple):
    models: int
    votes: int
    people: int
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        told = f"{self.votes:,} votes, {self.models:,} models"
        told += f", {self.people:,} people" if self.people else ""
        return " ".join([told, *self.options])


FILES = [
    File(100, 1_000_000, 0),
    File(100, 1_000_000, 50_000),
    File(100, 1_000_000, 50_000, ("--side", "--adjust", "length")),
    File(100, 1_000_000, 50_000, ("--by", "category")),
    File(10_000, 100_000, 0),
    File(10_000, 100_000, 10_000),
]


def write(path: Path, file: File) -> None:
    rng = np.random.default_rng(SEED)
    truth = SPREAD * rng.standard_normal(file.models)
    a = rng.integers(file.models, size=file.votes)
    b = (a + rng.integers(1, file.models, size=file.votes)) % file.models
    win, tie = chances("threshold", truth[a] - truth[b])
    u = rng.random(file.votes)
    said = np.where(u < win, "model_a", np.where(u < win + tie, "tie", "model_b"))
    columns = [[f"model-{i}" for i in a.tolist()], [f"model-{i}" for i in b.tolist()], said.tolist()]
    header = ["model_a", "model_b", "winner"]
    if file.people:
        header.append("judge")
        columns.append([f"person-{i}" for i in rng.integers(file.people, size=file.votes).tolist()])
    if "--adjust" in file.options:
        header += ["length_a", "length_b"]
        columns += [map(str, rng.integers(20, 2_000, size=file.votes).tolist()) for _ in range(2)]
    if "--by" in file.options:
        header.append("category")
        columns.append([("code", "maths", "writing", "other")[i] for i in rng.integers(4, size=file.votes).tolist()])
    with path.open("w") as to:
        to.write(",".join(header) + "\n")
        to.writelines(",".join(row) + "\n" for row in zip(*columns))


def cost(file: File) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        path = Path(folder) / "votes.csv"
        _apart(write, path, file)
        return _apart(measure, path, file)


def _apart(work: Any, *given: Any) -> Any:
    """Do it in a new process: the peak memory of a process begins with that of the one which starts it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def measure(path: Path, file: File) -> dict[str, float]:
    start = time.perf_counter()
    command = [str(Path(sys.executable).with_name("heedful")), "rank", str(path), *file.options]
    process = subprocess.Popen([*command, "--csv", str(path.with_name("board.csv"))], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: ended with {process.returncode}")
    return {
        "wall s": round(time.perf_counter() - start, 2),
        "CPU s": round(used.ru_utime + used.ru_stime, 2),
        "peak MB": round(used.ru_maxrss / (1024.0 if sys.platform != "darwin" else 1024.0**2), 0),
        "file MB": round(path.stat().st_size / 1e6, 1),
    }


# ---------------------------------------------------------------------------- the program


def keep(told: dict[str, Any]) -> None:
    part = FILE.with_suffix(".part")
    part.write_text(json.dumps({**told, "machine": description()}, indent=1) + "\n")
    part.replace(FILE)


def row(cell: Cell, studies: list[dict[str, float]]) -> list[str]:
    got = {name: np.array([each[name] for each in studies]) for name in studies[0]}

    def share(name: str) -> str:
        values = got[name]
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return f"{values.mean():.3f} ± {error:.3f}"

    gain = got["tau"] - got["logistic"]
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
    told = [cell.name, str(len(studies)), *[share(name) for name in ("intervals", "differences", "places")]]
    told += [f"{got['width'].mean() / 2:.1f}", f"{got['tau'].mean():.4f}", f"{gain.mean():+.5f} ± {error:.5f}"]
    return [*told, f"{got['seconds'].mean():.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two studies a cell; write nothing")
    parser.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--only", metavar="CELL", action="append", help="cells whose name has this in it")
    given = parser.parse_args()
    told: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"studies": {}, "costs": {}}
    cells = [cell for cell in CELLS if not given.only or any(part in cell.name for part in given.only)]
    drawn = Table(title="Arena: 90 % intervals that hold (of scores, of differences, of places), order, and cost")
    for name in (
        "cell",
        "studies",
        "scores",
        "differences",
        "places",
        "± points",
        "tau",
        "tau beyond logistic",
        "CPU s",
    ):
        drawn.add_column(name, justify="left" if name == "cell" else "right")
    for cell in cells:
        had = [] if given.quick else told["studies"].get(cell.name, [])
        while not given.table and len(had) < (2 if given.quick else STUDIES):
            had.append({name: round(value, 5) for name, value in study(cell, len(had)).items()})
            if not given.quick and (len(had) % 10 == 0 or len(had) == STUDIES):
                told["studies"][cell.name] = had
                keep(told)
        if had:
            drawn.add_row(*row(cell, had))
    out.print(drawn)
    if given.quick:
        return
    for file in FILES:
        if not given.table and not given.only and file.name not in told["costs"]:
            told["costs"][file.name] = cost(file)
            keep(told)
        if file.name in told["costs"]:
            out.print(file.name, told["costs"][file.name])


if __name__ == "__main__":
    main()
