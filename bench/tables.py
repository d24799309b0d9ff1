"""Reading tables of a million rows: CPU seconds and memory of each door, in a process of its own.

    python bench/tables.py [--rows 1000000] [--times 3] [--out FILE]

With PYTHONPATH on another version's `src`, that one is measured.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

DOORS = ("votes", "ratings", "items", "impressions", "grades")


def make(folder: Path, rows: int) -> None:
    """Write a table for each of DOORS."""
    draw = random.Random(0)
    lines = {
        "votes": ("model_a,model_b,winner,judge,language,turn", _vote),
        "ratings": (
            "userId,movieId,rating,timestamp",
            lambda i: f"{i // 100},{i * 37 % 5003},{draw.randint(1, 5)},{i}",
        ),
        "items": ("id,a,b,c,d", lambda i: f"i{i},{draw.random():.4f},{i % 100},{('red', 'blue')[i % 2]},{i % 9}"),
        "impressions": ("action,probability,reward,hour", lambda i: f"a{i % 9},0.25,{i % 2},{i % 24}"),
        "grades": ("a,b,c,grade", lambda i: f"{draw.random():.3f},{draw.random():.3f},{i % 7},{i % 5}"),
    }
    for door, (header, line) in lines.items():
        with (folder / f"{door}.csv").open("w") as file:
            file.write(header + "\n")
            file.writelines(f"{line(i)}\n" for i in range(rows))


def _vote(i: int) -> str:
    first, second = i * 7919 % 100, (i * 7919 + 1 + i % 99) % 100
    return f"m{first},m{second},{('model_a', 'model_b', 'tie')[i * 31 % 3]},p{i * 13 % 50_000},English,1"


def read(door: str, path: Path) -> None:
    """Read the table of a door once, and print its CPU seconds and the greatest memory in MB as JSON."""
    warnings.simplefilter("ignore")
    from heedful.data.choices import open_pairs
    from heedful.data.ordinal import load_ordinal
    from heedful.data.rating_files import open_ratings
    from heedful.data.table import open_table, read_table
    from heedful.io.bandit_log import read_bandit_log

    doors = {
        "votes": lambda: open_pairs(path),
        "ratings": lambda: open_ratings(path),
        "items": lambda: read_table(path),
        "impressions": lambda: read_bandit_log(open_table(path)),
        "grades": lambda: load_ordinal(path, "grade"),
    }
    begun = time.process_time()
    doors[door]()
    spent = time.process_time() - begun
    print(json.dumps([spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", nargs=2, metavar=("DOOR", "FILE"))
    given = parser.parse_args()
    if given.read:
        read(given.read[0], Path(given.read[1]))
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), given.rows)
        for door in DOORS:
            line = [sys.executable, __file__, "--read", door, f"{folder}/{door}.csv"]
            runs = [
                json.loads(subprocess.run(line, check=True, capture_output=True).stdout) for _ in range(given.times)
            ]
            seconds = [spent for spent, _ in runs]
            spread = statistics.stdev(seconds) / len(seconds) ** 0.5 if len(seconds) > 1 else None
            found[door] = {"seconds": statistics.mean(seconds), "stderr": spread, "mb": max(mb for _, mb in runs)}
            print(door, found[door], flush=True)
    if given.out:
        given.out.write_text(json.dumps({"rows": given.rows, "times": given.times, "doors": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
