"""How long it takes until interleaved sessions say which ranker people prefer, and how often that is wrong.

`python bench/proof.py` writes bench/results/proof.json. 1,000 runs of 3,000 sessions, 60 % of which are ties; the
others are won by B with the share that is stated; alpha = .05, looked at after each session. Four ways to decide:

* one hedged bet on all sessions, whoever has them (`confidence.Betting` against 1/2);
* the mean of such bets, one for each of a number of people that is fixed beforehand, who come in turns (looked at
  after each turn of all of them);
* `Match`, with sessions of people drawn at random;
* `Match` with people who differ: half of them have a share higher by the spread, half lower.

The last figures are how many sessions in a row one person of 1,000 must give to B to decide alone by that mean, and how
few people there must be for no verdict of `Match`. `--quick` takes a tenth of the runs and writes nothing.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.evaluation.confidence import Betting
from heedful.evaluation.interleaving import Match, plan

ALPHA, TIES, SESSIONS = 0.05, 0.6, 3_000
SHARES, PEOPLE = (0.5, 0.55, 0.6), (1, 100, 1_000)
AGAINST_HALF = Betting(ALPHA, candidates=1)


def mean_of_bets(people: int, share: float, runs: int) -> dict[str, Any]:
    """The mean over `people` of hedged bets against 1/2, one for each; `people` = 1 is one bet on all sessions."""
    rng, ended = np.random.default_rng([people, round(100 * share)]), np.full(runs, math.inf)
    state = AGAINST_HALF.init((runs, people))
    for turn in range(1, SESSIONS // people + 1):
        ties, wins = rng.random((runs, people)) < TIES, rng.random((runs, people)) < share
        state = AGAINST_HALF.update(state, np.where(ties, 0.5, wins))
        mean = np.exp(AGAINST_HALF.log_evidence(state, 0.5)).mean(axis=1)
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
    state, n = AGAINST_HALF.init(), 0
    while math.exp(AGAINST_HALF.log_evidence(state, 0.5)) + people - 1 < people / ALPHA:
        state, n = AGAINST_HALF.update(state, 1.0), n + 1
    return n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs; nothing is written")
    quick = parser.parse_args().quick
    runs = 100 if quick else 1_000
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
