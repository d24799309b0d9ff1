"""The same interpreted runs here, in a pool of processes and on Ray: seconds, ratios, and what the planner expected.

    python bench/engines.py [--rounds 3000] [--seeds 8]

Each engine does the same runs of the perceptron and the second-order perceptron on simulated queries, distributed at
once, its start included. Regrets have to be equal, bit for bit.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

from machine import record

from heedful.core import engine
from heedful.core.engine import COSTS, Costs, Engine, cores, plan
from heedful.experiments.coactive import COACTIVE
from heedful.experiments.run import Run, simulate
from heedful.experiments.setting import Scene, Setting
from heedful.spaces.ranking import Ranking
from heedful.worlds.queries import feature_bounds, synthetic_queries
from heedful.worlds.users import Noisy


def runs(setting: Setting, rounds: int, name: Engine, jobs: int) -> tuple[float, dict[Any, list[float]]]:
    """Seconds of all runs with an engine, and the regrets of each."""
    learners = {spec: setting.learner(spec) for spec in ("perceptron", "second-order:gamma=0.1")}
    began = time.perf_counter()
    events = list(simulate(learners, setting, rounds, jobs=jobs, interpreted=True, engine=name))
    took = time.perf_counter() - began
    return took, {(e.learner, e.seed): e.regrets.tolist() for e in events if isinstance(e, Run)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    world, w_star = synthetic_queries(400, 20, 46, noise=1.0, user=Noisy(5))
    R, S = feature_bounds(world.X, world.offsets, Ranking(5))
    scenes = tuple(Scene(seed, 0, seed, world, w_star) for seed in range(given.seeds))
    setting = Setting(46, Ranking(5), R, S, math.nan, given.rounds, scenes, COACTIVE)
    jobs, many = cores(), 2 * given.seeds
    found: dict[str, Any] = {"jobs": jobs, "runs": many, "rounds": given.rounds}

    runs(setting, 20, "serial", 1)  # what is imported and read once
    serial, regrets = runs(setting, given.rounds, "serial", 1)
    found["serial"] = {"seconds": serial}
    print(f"serial     {serial:7.2f} s")
    engine.COSTS = Costs(0.0, 0.0, 0.0, -1.0)  # so that it distributes, whether it pays or not
    for label, name, start in (
        ("processes", "processes", COSTS.processes),
        ("ray", "ray", COSTS.ray),
        ("ray, running", "ray", COSTS.connected),
    ):
        took, same = runs(setting, given.rounds, name, jobs)  # type: ignore[arg-type]
        if same != regrets:
            raise SystemExit(f"{label}: the regrets are not those of serial")
        expected = plan(name, serial / many, many - 1, jobs, start).distributed + serial / many  # type: ignore[arg-type]
        found[label] = {"seconds": took, "times_serial": serial / took, "planned": expected}
        print(f"{label:12} {took:5.2f} s, {serial / took:.2f} times as fast, planned {expected:.2f} s")
    record("engines", found)


if __name__ == "__main__":
    main()
