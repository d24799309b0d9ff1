"""The machine and the commit that a figure belongs to, and how fast the machine reads memory."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy

ROOT = Path(__file__).resolve().parents[1]


def best(f: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of the fastest of some runs, after one that does not count."""
    f()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


@numba.njit(fastmath=True)
def _read(blocks: Any, order: Any) -> float:
    total = 0.0
    for q in order:
        block = blocks[q]
        for i in range(block.size):
            total += block[i]
    return total


def bandwidth() -> dict[str, float]:
    """GB/s that one thread reads: 400 MB in order, and in blocks of 22 kB (a query of 20 x 136) in random order."""
    blocks = np.ones((20_000, 20 * 136))
    orders = {"in order": np.arange(20_000), "22 kB blocks at random": np.random.default_rng(0).permutation(20_000)}
    return {name: blocks.nbytes / best(lambda o=order: _read(blocks, o)) / 1e9 for name, order in orders.items()}  # type: ignore[misc]


def description() -> dict[str, Any]:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {
        "commit": git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", "src") else ""),
        "date": time.strftime("%Y-%m-%d"),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }


def record(name: str, figures: dict[str, Any]) -> None:
    """Write figures with the machine, if they do not say one, to bench/results/NAME.json."""
    folder = ROOT / "bench" / "results"
    folder.mkdir(exist_ok=True)
    content = {"machine": description(), **figures}
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
