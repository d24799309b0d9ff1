"""How often sound feedback raises an alarm, and how soon an alarm finds a fault.

`python bench/health.py` writes bench/results/health.json. alpha = .05; three parts:

* 1,000 sound logs of 400 decisions, simulated as `tests/feedback_streams.py` says, looked at after each 80: 25 people
  who differ, come in visits and delay, with errors that fall as a learner learns;
* 100 logs for each fault, which begins after 400 decisions, looked at after each 50 of 600 more;
* 25 loops of each kind of feedback (5 where a lesson takes long) with 120 decisions, taught by `tests/kinds.py` in an
  order drawn at random, looked at after each 40.

`--quick` takes a tenth of the runs, one loop at least, and writes nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from machine import ROOT, record
from rich.console import Console
from rich.table import Table

sys.path += [str(ROOT / "tests")]
from feedback_streams import FAULTS, alarms, simulate
from kinds import KINDS, Kind

ALPHA = 0.05
SOUND, FAULTY, LOOPS = 1_000, 100, 25


def sound(runs: int) -> dict[str, Any]:
    """The share of sound logs with an alarm, and which they were."""
    found: dict[str, int] = {}
    wrong = 0
    for run in range(runs):
        raised = alarms(simulate(np.random.default_rng(run), 400), range(80, 401, 80), ALPHA)
        wrong += bool(raised)
        for name in raised:
            found[name] = found.get(name, 0) + 1
    return {"runs": runs, "alarms": round(wrong / runs, 4), "by name": found}


def faulty(name: str, runs: int) -> dict[str, Any]:
    """The share of logs whose fault is found, after how many decisions (median), and with other alarms."""
    after, other = [], 0
    for run in range(runs):
        log = simulate(np.random.default_rng([run, 1]), 1_000, after=FAULTS[name], at=400)
        raised = alarms(log, range(450, 1_001, 50), ALPHA)
        other += bool(raised.keys() - {name})
        after += [raised[name] - 400] if name in raised else []
    median = int(np.median(after)) if len(after) > runs / 2 else None
    return {"found": round(len(after) / runs, 3), "median decisions": median, "others": round(other / runs, 3)}


def loops(kind: Kind, runs: int) -> dict[str, Any]:
    """The share of loops of a kind with an alarm, taught in an order drawn at random."""
    wrong = 0
    for run in range(runs):
        rng, folder = np.random.default_rng(run), Path(tempfile.mkdtemp())
        try:
            with kind.make(folder / "l") as loop:
                raised = False
                for i, j in enumerate(rng.integers(0, 60, 120).tolist()):
                    person = f"p{int(rng.integers(10))}"
                    shown = loop.decide(person=person, id=f"d{i}", **kind.ask(j) | kind_repeats(loop)).shown
                    if shown:
                        loop.feedback({**kind.answer(j, shown), "decision": f"d{i}", "id": f"e{i}"})
                    raised = raised or (i % 40 == 39 and bool(loop.health(ALPHA).alarms))
                wrong += raised
        finally:
            shutil.rmtree(folder)
    return {"runs": runs, "alarms": round(wrong / runs, 4)}


def kind_repeats(loop: Any) -> dict[str, Any]:
    return {"repeats": True} if loop.projection.interaction.takes_repeats else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs; nothing is written")
    quick = parser.parse_args().quick
    share = 10 if quick else 1
    results: dict[str, Any] = {"sound": sound(SOUND // share)}
    results |= {f"fault: {name}": faulty(name, FAULTY // share) for name in FAULTS}
    for kind in KINDS:
        slow = kind.name == "comparison"
        results[f"loops: {kind.name}"] = loops(kind, max(LOOPS // share // (5 if slow else 1), 1))
    table = Table("", "")
    for name, row in results.items():
        table.add_row(name, ", ".join(f"{key} {value}" for key, value in row.items()))
    Console(width=120).print(table)
    if not quick:
        record("health", {"alpha": ALPHA, **results})


if __name__ == "__main__":
    main()
