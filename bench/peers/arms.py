"""One of a few: which banner is shown to each visitor, and is it clicked?

Two streams. *Devices*: three banners for three devices; of each device 0.6 click the one that it likes, 0.2 and 0.1 the
others. *Visits*: the stream of Vowpal Wabbit's tutorial of contextual bandits: two people come in the morning or in the
afternoon, and each likes another of seven articles at either time of day; that one is clicked always, the others never.
What is measured is the mean probability of a click of what was shown, in fifths. The log of heedful's loop, which keeps
every decision and answer, is in memory.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from peers.job import Clock, Entrant, Job, Memory, answer

from heedful import Loop, Settings, declare, infer

Array = Any
TITLE = "One of a few"
STREAM = "three banners for three devices (.6, .2, .1 are clicked), and Vowpal Wabbit's seven articles"
SEEDS, ROUNDS, QUICK, TUNING = 12, 1500, 300, 1.0
"""Runs, as some learners stay with a wrong article in some of them, and visitors of each stream."""
QUALITY = "missed"
FIFTHS = (1, 2, 3, 5)


class World(NamedTuple):
    """What visitors have, with its values; what can be shown; the probability of a click by the values."""

    about: dict[str, tuple[str, ...]]
    shown: tuple[str, ...]
    clicked: Callable[[dict[str, str]], Array]

    def visitor(self, rng: np.random.Generator) -> tuple[dict[str, str], Array]:
        who = {name: values[rng.integers(len(values))] for name, values in self.about.items()}
        return who, self.clicked(who)


def _devices(who: dict[str, str]) -> Array:
    return np.roll([0.6, 0.2, 0.1], ("phone", "desk", "tablet").index(who["device"]))


def _visits(who: dict[str, str]) -> Array:
    liked = {("Tom", "morning"): 0, ("Tom", "afternoon"): 2, ("Anna", "morning"): 1, ("Anna", "afternoon"): 0}
    return np.eye(7)[liked[who["user"], who["time"]]]


ARTICLES = "politics", "sports", "music", "food", "finance", "health", "camping"
WORLDS = {
    "devices": World({"device": ("phone", "desk", "tablet")}, ("news", "sport", "food"), _devices),
    "visits": World({"user": ("Tom", "Anna"), "time": ("morning", "afternoon")}, ARTICLES, _visits),
}
Play = tuple[Callable[[dict[str, str]], tuple[int, Any]], Callable[[Any, bool], None]]
"""(what is shown to a visitor, with what the answer needs; learn whether it was clicked)"""


def heedful_loop() -> Callable[[World, int], Play]:
    def start(world: World, seed: int) -> Play:
        memory = Path("/dev/shm")
        folder = tempfile.mkdtemp(dir=memory if memory.is_dir() else None)
        items = [{"id": name, "label": name} for name in world.shown]
        loop = Loop.create(
            Path(folder) / "l",
            encoding=infer(items, identifier="id", kinds={"label": "category"}),
            items=items,
            context=declare({name: list(values) for name, values in world.about.items()}),
            crosses=[(name, "label") for name in world.about],
            settings=Settings(k=1, control=0.0, seed=seed),
        )

        def decide(who: dict[str, str]) -> tuple[int, Any]:
            made = loop.decide(context=who)
            return world.shown.index(made.shown[0]), made

        def learn(made: Any, clicked: bool) -> None:
            loop.feedback(made.id, **({"clicks": list(made.shown)} if clicked else {"none": True}))

        return decide, learn

    return start


def vowpal(rate: float, explore: str) -> Callable[[World, int], Play]:
    from vowpalwabbit import Workspace

    def start(world: World, seed: int) -> Play:
        options = f"--cb_explore_adf {explore} -q UA --quiet -l {rate} --random_seed {seed + 1}"
        model, rng = Workspace(options), np.random.default_rng([seed, 7])

        def lines(who: dict[str, str], cost: Sequence[Any] = ()) -> list[str]:
            shared = "shared |U " + " ".join(f"{name}={value}" for name, value in who.items())
            told = {cost[0]: f"0:{cost[1]}:{cost[2]} "} if cost else {}
            return [shared, *(f"{told.get(j, '')}|A label={name} " for j, name in enumerate(world.shown))]

        def decide(who: dict[str, str]) -> tuple[int, Any]:
            chances = np.array(model.predict("\n".join(lines(who))))
            j = int(rng.choice(chances.size, p=chances / chances.sum()))
            return j, (who, j, chances[j])

        def learn(made: Any, clicked: bool) -> None:
            who, j, chance = made
            model.learn("\n".join(lines(who, (j, -float(clicked), chance))))

        return decide, learn

    return start


def any_of() -> Callable[[World, int], Play]:
    def start(world: World, seed: int) -> Play:
        rng = np.random.default_rng([seed, 7])
        return lambda who: (int(rng.integers(len(world.shown))), None), lambda made, clicked: None

    return start


def rates(explore: str) -> tuple[dict[str, Any], ...]:
    return tuple({"rate": rate, "explore": explore} for rate in (0.1, 0.5, 2.0))


ENTRANTS = {
    "heedful": Entrant("heedful", "Loop, k=1, all defaults but no control", heedful_loop),
    "Vowpal Wabbit, bag": Entrant("vowpalwabbit", "cb_explore_adf, bag of 5", vowpal, rates("--bag 5")),
    "Vowpal Wabbit, SquareCB": Entrant("vowpalwabbit", "cb_explore_adf, squarecb", vowpal, rates("--squarecb")),
    "Vowpal Wabbit, epsilon": Entrant("vowpalwabbit", "cb_explore_adf, epsilon 0.1", vowpal, rates("--epsilon 0.1")),
    "one at random": Entrant("heedful", "", any_of),
}
REFERENCE = "heedful"
COLUMNS = {f"reward {name} {fifth}": f"{name}, fifth {fifth}" for name in WORLDS for fifth in FIFTHS}


def measure(job: Job) -> dict[str, float]:
    """The mean probability of a click in fifths of each stream."""
    memory, start = Memory(), ENTRANTS[job.entrant].make(**job.setting)
    found: dict[str, float] = {}
    clock, missed = Clock(), 0.0
    for number, (name, world) in enumerate(WORLDS.items()):
        rng, earned = np.random.default_rng([job.seed, number]), []
        decide, learn = start(world, job.seed)
        for _ in range(job.rounds):
            who, chances = world.visitor(rng)
            with clock.on():
                j, made = decide(who)
            clicked = bool(rng.random() < chances[j])
            with clock.on():
                learn(made, clicked)
            earned.append(chances[j])
            missed += chances.max() - chances[j]
        fifths = np.array(earned).reshape(5, -1).mean(axis=1)
        found |= {f"reward {name} {fifth}": float(fifths[fifth - 1]) for fifth in FIFTHS}
    visits = len(WORLDS) * job.rounds
    return found | {
        "missed": missed / visits, "rounds": visits, "seconds": clock.seconds, "MB": memory.grown(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(measure))
