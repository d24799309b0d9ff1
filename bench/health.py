"""How often sound feedback raises an alarm, and how soon an alarm finds a fault.

`python bench/health.py` writes bench/results/health/CELL.json while it goes and takes up where it was stopped; `--only
WORD` takes the cells with this word in their names, `--runs N` stops at N logs a cell, `--table` prints what there is,
`--quick` takes a few logs a cell and writes nothing. alpha = .05; logs are simulated as `tests/feedback_streams.py`
says: people who differ and delay, with errors that fall as a learner learns. Cells:

* sound-...: logs that people visit in different ways, each looked at ten times;
* fault-...: logs with a fault that begins after 400 decisions, looked at after each 50 of 600 more. 25 people come
  again and again; or everybody comes once, three at a time, for five decisions (once);
* loops-...: loops of each kind of feedback with 120 decisions, taught by `tests/kinds.py` in an order drawn at random,
  looked at after each 40.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import ROOT, description
from rich.console import Console
from rich.table import Table

sys.path += [str(ROOT / "tests")]
from feedback_streams import FAULTS, Visits, alarms, simulate
from kinds import KINDS, Kind

ALPHA, SEED = 0.05, 424_388_952
SOUND, FAULTY, LOOPS = 1_000, 100, 25
SAVE = 50
FOLDER = ROOT / "bench" / "results" / "health"


class Sound(NamedTuple):
    """How people come to sound logs of some decisions, and how many there are."""

    decisions: int
    people: int
    visits: Visits | None


CELLS = {
    "25-people": Sound(400, 25, None),
    "100-people-1-at-once-visits-of-1-alike-0.7": Sound(400, 100, Visits(1, 1, 0.7)),
    "100-people-1-at-once-visits-of-50-alike-0.7": Sound(1_000, 100, Visits(1, 50, 0.7)),
    "100-people-5-at-once-visits-of-20-alike-0": Sound(400, 100, Visits(5, 20)),
    "100-people-5-at-once-visits-of-20-alike-0.7": Sound(400, 100, Visits(5, 20, 0.7)),
    "100-people-5-at-once-visits-of-20-alike-1": Sound(400, 100, Visits(5, 20, 1.0)),
    "100-people-5-at-once-visits-of-20-alike-1-long": Sound(2_000, 100, Visits(5, 20, 1.0)),
    "100-people-20-at-once-visits-of-5-alike-0.7": Sound(800, 100, Visits(20, 5, 0.7)),
    "100-people-20-at-once-visits-of-50-alike-0.7": Sound(3_000, 100, Visits(20, 50, 0.7)),
    "25-people-5-at-once-visits-of-20-alike-0.7": Sound(800, 25, Visits(5, 20, 0.7)),
    "25-people-20-at-once-visits-of-20-alike-0": Sound(800, 25, Visits(20, 20)),
    "25-people-20-at-once-visits-of-20-alike-0.7": Sound(800, 25, Visits(20, 20, 0.7)),
    "6-people-in-turn-visits-of-40-alike-0": Sound(240, 6, Visits(1, 40, in_turn=True)),
    "6-people-in-turn-visits-of-40-alike-0.7-long": Sound(960, 6, Visits(1, 40, 0.7, in_turn=True)),
}


def sound(cell: Sound, run: int) -> list[str]:
    """The alarms that a sound log raises."""
    log = simulate(np.random.default_rng([SEED, run]), cell.decisions, cell.people, visits=cell.visits)
    step = cell.decisions // 10
    return list(alarms(log, range(step, cell.decisions + 1, step), ALPHA))


def faulty(name: str, once: bool, run: int) -> dict[str, int]:
    """The alarms that a log with a fault raises, each with how many decisions after the fault begins."""
    rng = np.random.default_rng([SEED, run, 1])
    visits = Visits(3, 5, in_turn=True) if once else None
    log = simulate(rng, 1_000, 2_000 if once else 25, FAULTS[name], 400, visits)
    return {raised: at - 400 for raised, at in alarms(log, range(450, 1_001, 50), ALPHA).items()}


def loop_of(kind: Kind, run: int) -> bool:
    """Whether a loop of a kind raises an alarm, taught in an order drawn at random."""
    rng, folder = np.random.default_rng([SEED, run, 2]), Path(tempfile.mkdtemp())
    try:
        with kind.make(folder / "l") as loop:
            raised = False
            for i, j in enumerate(rng.integers(0, 60, 120).tolist()):
                person = f"p{int(rng.integers(10))}"
                shown = loop.decide(person=person, id=f"d{i}", **kind.ask(j) | kind_repeats(loop)).shown
                if shown:
                    loop.feedback({**kind.answer(j, shown), "decision": f"d{i}", "id": f"e{i}"})
                raised = raised or (i % 40 == 39 and bool(loop.health(ALPHA).alarms))
            return raised
    finally:
        shutil.rmtree(folder)


def kind_repeats(loop: Any) -> dict[str, Any]:
    return {"repeats": True} if loop.projection.interaction.by_number else {}


def cells() -> dict[str, tuple[int, Any]]:
    """Name of each cell -> (how many runs it is to have, the function of the number of a run)."""
    found: dict[str, tuple[int, Any]] = {}
    for name, cell in CELLS.items():
        found[f"sound-{name}"] = SOUND, lambda run, cell=cell: sound(cell, run)
    for fault in FAULTS:
        for once in (False, True):
            name = f"fault-{fault}{'-once' if once else ''}".replace(" ", "-")
            if not once or fault not in ("contradictory", "one person"):  # who comes once contradicts nobody
                found[name] = FAULTY, lambda run, fault=fault, once=once: faulty(fault, once, run)
    for kind in KINDS:
        runs = LOOPS // 5 if kind.name == "comparison" else LOOPS
        found[f"loops-{kind.name}"] = runs, lambda run, kind=kind: loop_of(kind, run)
    return found


def summary(name: str, results: list[Any]) -> str:
    """What came of the runs of a cell, in words."""
    n = len(results)
    if not name.startswith("fault-"):
        wrong = sum(bool(each) for each in results)
        kinds = sorted({alarm for each in results if isinstance(each, list) for alarm in each})
        limit = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / n)
        return f"{wrong} of {n} ({wrong / n:.3f}; {limit:.3f} is three standard errors above alpha) {', '.join(kinds)}"
    fault = name.removeprefix("fault-").removesuffix("-once").replace("-", " ")
    after = [each[fault] for each in results if fault in each]
    others = sum(bool(each.keys() - {fault}) for each in results)
    median = f"{np.median(after + [math.inf] * (n - len(after))):.0f}"
    return f"{len(after) / n:.2f} of {n} found, after {median} decisions (median), other alarms in {others}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="five runs a cell; nothing is written")
    parser.add_argument("--only", default="", help="the cells whose names contain this")
    parser.add_argument("--runs", type=int, default=SOUND, help="the most runs a cell")
    parser.add_argument("--table", action="store_true", help="print what there is")
    args = parser.parse_args()
    table = Table("", "")
    for name, (runs, run) in cells().items():
        file = FOLDER / f"{name}.json"
        results: list[Any] = json.loads(file.read_text())["results"] if file.exists() and not args.quick else []
        most = len(results) if args.table or args.only not in name else min(runs, 5 if args.quick else args.runs)
        for i in range(len(results), most):
            results.append(run(i))
            if not args.quick and (len(results) == most or len(results) % SAVE == 0):
                FOLDER.mkdir(exist_ok=True)
                content = {"machine": description(), "alpha": ALPHA, "seed": SEED, "results": results}
                file.write_text(json.dumps(content) + "\n")
        if results:
            table.add_row(name, summary(name, results))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
