"""How long it takes until interleaved sessions say which ranker people prefer, and how often that is wrong.

`python bench/proof.py` writes bench/results/proof.json. 1,000 runs of 3,000 sessions, 60 % of which are ties; the
others are won by B with the share that is stated; alpha = .05, looked at after each session. Four ways to decide:

* one hedged bet on all sessions, whoever has them (as in `heedful.evaluation.ratio`, against 1/2);
* the mean of such bets, one for each of a number of people that is fixed beforehand, who come in turns (looked at
  after each turn of all of them);
* `Match`, with sessions of people drawn at random;
* `Match` with people who differ: half of them have a share higher by the spread, half lower.

The last figures are how many sessions in a row one person of 1,000 must give to B to decide alone by that mean, and how
few people there must be for no verdict of `Match`. `--quick` takes a tenth of the runs and writes nothing.

`python bench/proof.py --arms` compares learned lists with a control instead (`heedful.loop.arms`), 1,000 logs a cell:
2,000 lists of 500 people, who differ in how often they come and click; a click is at one of five places by chance, in
either arm alike; lists get an answer, with a click or none, with the share that is stated; and one arm loses half of
its nones, clicks or answers, or all of its nones. Told is how often there is a verdict on the learned order, whose
truth is that there is no difference: by the answers alone, by the interval of a report, and by the report with its test
of the sample ratio; and how often that test, looked at ten times, ever says that the arms are not answered alike. In
the last cells clicks come twice as often in learned lists, and nothing is lost: how often the report says so, and how
often the interval of the click-through, or of the scores, misses the truth. It writes bench/results/arms/CELL.json and
skips cells that are there; `--logs N` takes N logs a cell, `--table` prints what there is.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import description, record
from rich.console import Console
from rich.progress import track
from rich.table import Table

from heedful.evaluation.interleaving import Match, plan
from heedful.evaluation.sample_ratio import log_evidence, steps
from heedful.loop.arms import arm_difference
from heedful.loop.cluster_robust import difference

ALPHA, TIES, SESSIONS = 0.05, 0.6, 3_000
SHARES, PEOPLE = (0.5, 0.55, 0.6), (1, 100, 1_000)


class Bets:
    """The log of the hedged capital of bets against a mean of 1/2, one each of an array of sequences; every bet is the
    gap of the mean so far over variance and squared gap, and at most all of half the capital.
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.n, self.mean, self.squares = 1, np.full(shape, 0.5), np.full(shape, 0.25)
        self.higher, self.lower = np.zeros(shape), np.zeros(shape)

    def add(self, x: Any) -> Any:
        gap = self.mean - 0.5
        bet = np.clip(gap / (self.squares / self.n + gap * gap), -1.0, 1.0)
        self.higher += np.log1p(np.maximum(bet, 0.0) * (x - 0.5))
        self.lower += np.log1p(-np.maximum(-bet, 0.0) * (x - 0.5))
        self.n, before = self.n + 1, self.mean
        self.mean = before + (x - before) / self.n
        self.squares += (x - before) * (x - self.mean)
        return np.logaddexp(self.higher, self.lower) - math.log(2.0)


def mean_of_bets(people: int, share: float, runs: int) -> dict[str, Any]:
    """The mean over `people` of hedged bets against 1/2, one for each; `people` = 1 is one bet on all sessions."""
    rng, ended = np.random.default_rng([people, round(100 * share)]), np.full(runs, math.inf)
    bets = Bets((runs, people))
    for turn in range(1, SESSIONS // people + 1):
        ties, wins = rng.random((runs, people)) < TIES, rng.random((runs, people)) < share
        mean = np.exp(bets.add(np.where(ties, 0.5, wins))).mean(axis=1)
        ended = np.minimum(ended, np.where(mean >= 1.0 / ALPHA, turn * people, math.inf))
    return figures(float((ended < math.inf).mean()), float(np.median(ended)))


def match(people: int, share: float, runs: int, spread: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng([people, round(100 * share), round(100 * spread)])
    found = plan(Match(ALPHA), rng, people=people, sessions=SESSIONS, share=share, ties=TIES, spread=spread, runs=runs)
    return figures(found.a + found.b, found.sessions or math.inf)


def figures(decided: float, median: float) -> dict[str, Any]:
    return {"decided": round(decided, 4), "median sessions": int(median) if median < math.inf else None}


def alone(people: int) -> int:
    """How many sessions in a row that B wins decide, all by one person, in a mean over `people`."""
    bets, n, capital = Bets(), 0, 1.0
    while capital + people - 1 < people / ALPHA:
        capital, n = math.exp(bets.add(1.0)), n + 1
    return n


# ---------------------------------------------------------------------------- learned lists and a control

FOLDER = Path(__file__).parent / "results" / "arms"
LISTS, VISITORS, SEED = 2_000, 500, 2137079661
HOUR, LOOKS = 3_600.0, 10
CLICK_SCORE = float(np.mean(1.0 / np.arange(1, 6)))


class Cell(NamedTuple):
    control: float
    answered: float
    """the share of lists that get an answer"""
    clicks: float
    """the share of lists in the control that get a click"""
    lost: str = ""
    """what an arm loses: "nones", "clicks" or "answers\""""
    arm: str = ""
    part: float = 0.0
    """which part of these it loses"""
    better: float = 1.0
    """how many times more often a learned list gets a click"""

    @property
    def file(self) -> Path:
        lost = f"-{self.arm}-loses-{self.part:g}-of-{self.lost}" if self.lost else ""
        return (
            FOLDER
            / f"control-{self.control:g}-answered-{self.answered:g}-clicks-{self.clicks:g}-x{self.better:g}{lost}.json"
        )

    @property
    def seed(self) -> list[int]:
        return [SEED, *self.file.name.encode()]


LOSSES = [("", "", 0.0)] + [
    (lost, arm, part)
    for lost, part in (("nones", 0.5), ("nones", 1.0), ("clicks", 0.5), ("answers", 0.5))
    for arm in ("learned", "control")
]
CELLS = [
    Cell(control, answered, clicks, *loss)
    for control in (0.05, 0.3)
    for answered in (1.0, 0.3)
    for clicks in (0.4, 0.1)
    for loss in LOSSES
] + [Cell(control, answered, 0.2, better=2.0) for control in (0.05, 0.3) for answered in (1.0, 0.3)]


def arms(cell: Cell, rng: np.random.Generator) -> dict[str, float]:
    """What one log says."""
    busy = rng.pareto(1.5, VISITORS) + 0.2
    person = rng.choice(VISITORS, LISTS, p=busy / busy.sum())
    keen = rng.beta(4.0, 4.0, VISITORS) * 2.0  # mean 1
    control = rng.random(LISTS) < cell.control
    chance = cell.clicks * np.where(control, 1.0, cell.better) * keen[person]
    click, places = rng.random(LISTS) < chance, rng.integers(1, 6, LISTS)
    scores, arm = click / places, control if cell.arm == "control" else ~control
    lost = arm & (rng.random(LISTS) < cell.part)
    lost &= click if cell.lost == "clicks" else ~click if cell.lost == "nones" else np.ones(LISTS, bool)
    answered = (rng.random(LISTS) < cell.answered) & ~lost
    shown = 300.0 * np.arange(LISTS)
    when = np.where(answered, shown + rng.exponential(0.3 * HOUR, LISTS), np.nan)
    answered &= when <= shown[-1]
    evidence = []
    for until in np.linspace(0.0, shown[-1], LOOKS + 1)[1:]:
        there = shown <= until
        known = np.where(when <= until, when, np.nan)[there]
        x, order = steps(shown[there], known, control[there], cell.control, 2.0 * HOUR, float(until))
        evidence.append(log_evidence(x, person[there][order]))
    alone = difference(scores[answered], ~control[answered], person[answered])
    report = arm_difference(scores, answered, ~control, person)
    through = arm_difference(click.astype(float), np.ones(LISTS, bool), ~control, person)
    truth = cell.clicks * (cell.better - 1.0)
    unequal = evidence[-1] >= -math.log(ALPHA)
    return {
        "verdict of the answers": float(_decided(alone)),
        "verdict of the interval": float(_decided(report)),
        "verdict of the report": float(_decided(report) and not unequal),
        "not alike": float(max(evidence) >= -math.log(ALPHA)),
        "yes": float(report is not None and report.low > 0.0 and not unequal),
        "yes of the answers": float(alone is not None and alone.low > 0.0),
        "click-through misses": float(through is None or not through.low <= truth <= through.high),
        "scores miss": float(report is not None and not report.low <= truth * CLICK_SCORE <= report.high),
        "answers miss": float(alone is not None and not alone.low <= truth * CLICK_SCORE <= alone.high),
    }


def _decided(found: Any) -> bool:
    return found is not None and (found.low > 0.0 or found.high < 0.0)


def compare_arms(runs: int, write: bool) -> None:
    for cell in track(CELLS, "Arms"):
        if write and cell.file.exists():
            continue
        rng = np.random.default_rng(cell.seed)
        found = [arms(cell, rng) for _ in range(runs)]
        if write:
            FOLDER.mkdir(parents=True, exist_ok=True)
            means = {name: round(float(np.mean([each[name] for each in found])), 4) for name in found[0]}
            told = {"cell": cell._asdict(), "logs": runs, "seed": SEED, "machine": description(), **means}
            part = cell.file.with_suffix(".part")
            part.write_text(json.dumps(told, indent=1) + "\n")
            part.replace(cell.file)


def arms_table() -> Table:
    names = ("verdict of the answers", "verdict of the interval", "verdict of the report", "not alike", "yes")
    names += ("click-through misses", "scores miss")
    table = Table("control", "answered", "clicks", "lost", "logs", *names)
    for cell in CELLS:
        if cell.file.exists():
            had = json.loads(cell.file.read_text())
            clicks = f"{cell.clicks:g}" + (f" (learned {cell.clicks * cell.better:g})" if cell.better > 1.0 else "")
            lost = f"{cell.part:g} of {cell.lost}, {cell.arm}" if cell.lost else "nothing"
            figures = [f"{had[name]:.3f}" for name in names]
            table.add_row(f"{cell.control:g}", f"{cell.answered:g}", clicks, lost, str(had["logs"]), *figures)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs; nothing is written")
    parser.add_argument("--arms", action="store_true", help="compare learned lists with a control instead")
    parser.add_argument("--logs", type=int, metavar="N", default=1_000, help="with --arms: so many logs a cell")
    parser.add_argument("--table", action="store_true", help="print what there is of that")
    given = parser.parse_args()
    quick = given.quick
    runs = 100 if quick else 1_000
    if given.arms or given.table:
        if not given.table:
            compare_arms(given.logs // 10 if quick else given.logs, write=not quick)
        Console(width=180).print(arms_table())
        return
    results: dict[str, dict[str, Any]] = {}
    for share in SHARES:
        row = results[f"share {share}"] = {"one bet": mean_of_bets(1, share, runs)}
        row |= {f"mean over {people} people": mean_of_bets(people, share, runs) for people in PEOPLE[1:]}
        row |= {f"match, {people} people": match(people, share, runs) for people in (*PEOPLE, 10, 30, SESSIONS)}
    for spread in (0.1, 0.3, 0.5):
        results[f"share 0.5, spread {spread}"] = {
            f"match, {people} people": match(people, 0.5, runs, spread) for people in (30, *PEOPLE[1:])
        }
    table = Table("", "", "decided", "median sessions")
    for name, rows in results.items():
        for way, row in rows.items():
            table.add_row(name, way, f"{row['decided']:.3f}", str(row["median sessions"]))
    decides_alone = {"sessions of one person of 1000 that decide a mean": alone(1_000)}
    least = {"people that a match takes": Match(ALPHA).least_people}
    Console(width=120).print(table, decides_alone, least)
    if not quick:
        record("proof", {"runs": runs, "sessions": SESSIONS, "ties": TIES, **results, **decides_alone, **least})


if __name__ == "__main__":
    main()
