"""heedful next to its peers: quality, speed and memory, in one run. Started by bench/peers/run.py.

Rankings, clicks, grades, ratings, choices, one of a few, HTTP (docs/benchmarks.md says what each is). Each entrant runs
in a process of its own, one after the other, once for every seed (A, B, C, A, B, C, ...). First each entrant with
settings tries all of them on another seed; the best is taken, for heedful's as for the peers'. Speed is of the
processor time of its calls; the simulated people are not in it. Memory is what a process takes above what it had before
the entrant was made, its packages included. Prints tables, and writes bench/results/peers.json. `--quick` takes short
streams, one seed, the middle setting of each entrant, leaves compiled rows out, and writes nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from machine import ROOT, description, record
from peers.job import Entrant, Job, versions
from peers.tables import markdown, row_of, tables
from rich.console import Console
from rich.table import Table

KINDS = {
    "ranking": ("lists", "lists"), "clicks": ("lists", "lists"), "ordinal": ("instances", "instances"),
    "grades": ("rows", "splits"), "ratings": ("ratings", "ratings"), "choices": ("fits", "studies"),
    "arms": ("visits", "visits"),
}  # fmt: skip
"""The comparisons: what their speed counts, and what a run has so many of."""
SEEDS, OTHER_SEED = 3, 1_000
MISSING = Path(__file__).parent / ".venv" / "missing.json"
out = Console(width=int(os.environ.get("COLUMNS", "180")))
Figures = dict[str, Any]


def call(module: str, *words: str) -> Any:
    """What a module prints as its last line, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", f"peers.{module}", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"peers.{module} {words} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def one(kind: str, job: Job) -> Figures:
    """One run of one entrant."""
    found: Figures = call(kind, json.dumps(job._asdict()))
    return found


def tuned(kind: str, name: str, entrant: Entrant, module: ModuleType, rounds: int, data: str) -> Figures:
    """The best setting of an entrant, on a seed that is not counted."""
    if len(entrant.settings) == 1:
        return entrant.settings[0]
    tried = max(int(rounds * module.TUNING), 1)
    return min(entrant.settings, key=lambda s: one(kind, Job(name, OTHER_SEED, tried, s, data))[module.QUALITY])  # type: ignore[no-any-return]


def compare(kind: str, quick: bool, data: str = "") -> Figures:
    """All entrants of a comparison, by turns."""
    module = importlib.import_module(f"peers.{kind}")
    rounds, seeds = (module.QUICK, 1) if quick else (module.ROUNDS, getattr(module, "SEEDS", SEEDS))
    there = versions({entrant.package for entrant in module.ENTRANTS.values()})
    why = json.loads(MISSING.read_text()) if MISSING.exists() else {}
    chosen, runs = {}, {}
    for name, entrant in module.ENTRANTS.items():
        if there[entrant.package] and not (quick and name.endswith("compiled")):
            middle = entrant.settings[len(entrant.settings) // 2]
            chosen[name] = middle if quick else tuned(kind, name, entrant, module, rounds, data)
            runs[name] = []
    for seed in range(seeds):
        for name, setting in chosen.items():
            runs[name].append(one(kind, Job(name, seed, rounds, setting, data)))
    rows = []
    for name, entrant in module.ENTRANTS.items():
        row: Figures = {"entrant": name, "used": entrant.used}
        if name in runs:
            row |= {"setting": chosen[name], **row_of(runs[name], runs[module.REFERENCE], module.COLUMNS)}
            rows.append(row | {"runs": runs[name]})
        elif not there[entrant.package]:
            rows.append(row | {"missing": why.get(entrant.package, f"{entrant.package} is not in the environment")})
    return {
        "title": module.TITLE + (", MQ2008" if data else ""),
        "stream": "LETOR 4.0 MQ2008, the person puts the best 5 of the first 10 on top" if data else module.STREAM,
        "rounds": rounds, "seeds": seeds, "unit": KINDS[kind][0], "of": KINDS[kind][1], "reference": module.REFERENCE,
        "columns": module.COLUMNS, "rows": rows,
    }  # fmt: skip


def serving(quick: bool) -> Figures | None:
    """HTTP, where there is something to load it with."""
    from peers import serving as http

    if shutil.which("wrk") is None:
        print("HTTP is left out: it needs wrk (apt-get install wrk)")
        return None
    return {
        "title": http.TITLE,
        "stream": http.STREAM,
        "turns": call("serving", *(("1", "2") if quick else ("5", "4"))),
    }


def show(figures: Figures) -> None:
    """All tables on the terminal."""
    for each in tables(figures):
        table = Table(*each.columns, title=f"{each.title}: {each.below}")
        for row in each.rows:
            table.add_row(*(cell.replace("**", "") for cell in row))
        out.print(table)


def results(*names: str) -> list[Figures]:
    """What full runs wrote, where they did."""
    paths = [ROOT / "bench" / "results" / f"{name}.json" for name in names]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short streams, one seed; nothing is written")
    parser.add_argument("--only", action="append", choices=[*KINDS, "http"], help="one comparison alone")
    parser.add_argument(
        "--data", default="", metavar="FOLDER",
        help="rankings of LETOR 4.0 MQ2008 (S1.txt.gz ... in FOLDER) alone; writes peers_mq2008.json",
    )  # fmt: skip
    parser.add_argument("--show", action="store_true", help="print the tables of the last full runs as Markdown")
    given = parser.parse_args()
    if given.show:
        found = [table for each in results("peers", "peers_mq2008") for table in tables(each)]
        print("\n\n".join(f"## {each.title}\n\n{each.below}\n\n{markdown(each)}" for each in found))
        return
    name = "peers_mq2008" if given.data else "peers"
    if given.only and not given.quick and not results(name):
        parser.error(f"--only: expected bench/results/{name}.json of a full run, in which it takes its place")
    start, compared = time.time(), {}
    for kind in ["ranking"] if given.data else given.only or [*KINDS, "http"]:
        if kind == "grades" and not versions({"skordinal"})["skordinal"]:
            print("grades are left out: they need skordinal, with which their sets come")
        elif kind != "http":
            compared[kind] = compare(kind, given.quick, given.data and str(Path(given.data).resolve()))
        elif http := serving(given.quick):
            compared[kind] = http
        print(f"{kind}: {time.time() - start:.0f} s so far", flush=True)
    packages = {e.package for kind in KINDS for e in importlib.import_module(f"peers.{kind}").ENTRANTS.values()}
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "versions": versions(packages), "seconds": round(time.time() - start),
        "processor seconds": round(spent.ru_utime + spent.ru_stime), "comparisons": compared,
    }  # fmt: skip
    show(figures)
    print(figures["versions"], f"{figures['seconds']} s, {figures['processor seconds']} s of processor time")
    if given.quick:
        return
    if given.only:  # takes the place of what was measured before, and says itself on what machine
        [before] = results(name)
        now = {kind: {"machine": description(), **each} for kind, each in compared.items()}
        both = before["comparisons"] | now
        told = {kind: both[kind] for kind in [*KINDS, "http"] if kind in both}
        record(name, before | {"versions": before["versions"] | figures["versions"], "comparisons": told})
    else:
        record(name, figures)


if __name__ == "__main__":
    main()
