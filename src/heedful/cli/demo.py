"""`heedful demo`: people with hidden tastes look for a car, and what they correct is learned from."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedful.cli.terminal import Failure, console, new_table, print_json, wanted_extra

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.data.catalogue import Catalogue
    from heedful.experiment import Scene

PEOPLE, ROUNDS, WINDOW = 20, 100, 10
LEARNERS = ("perceptron", "pairwise-logistic")
TOLD = "pairwise-logistic"  # the one whose session with the first person is told

# Column -> (what it is called, a car with more of it, a car with less).
FEATURES = {
    "Miles_per_Gallon": ("miles per gallon", "thriftier", "thirstier"),
    "Cylinders": ("cylinders", "more cylinders", "fewer cylinders"),
    "Displacement": ("displacement", "bigger engine", "smaller engine"),
    "Horsepower": ("horsepower", "more horsepower", "less horsepower"),
    "Weight_in_lbs": ("weight", "heavier", "lighter"),
    "Acceleration": ("seconds to 60 mph", "slower to 60 mph", "quicker to 60 mph"),
    "Year": ("year", "newer", "older"),
}
NEXT = """What to try next
  heedful simulate catalogue YOUR.csv --user better --learner perceptron --people 50
      the same with your own table of items
  heedful simulate letor FILES... --user noisy:depth=10 --learner perceptron --learner second-order
      search results instead of cars: whole rankings, corrected
  heedful learners
      the learners there are, and how to name your own
  heedful check my_learner.py:Mine
      whether your own keeps the promises that all of them make"""


class Guess(NamedTuple):
    """Any car at random, nothing learned: what the others are measured against."""

    def init(self, rng: Any) -> float:
        return 0.0

    def propose(self, state: float, x: Any, rng: Any) -> Any:
        return rng.integers(0, x.shape[0], 1)

    def update(self, state: float, x: Any, y: Any, feedback: Any) -> float:
        return state


class Moment(NamedTuple):
    """One round: the car shown, the one preferred to it (itself where none left is), the stars of either."""

    round: int
    shown: str
    stars: int
    preferred: str
    preferred_stars: int
    corrected: bool


class Story(NamedTuple):
    """One person's session: every moment, hidden and learned weights (N,) of length 1, the share of pairs put right."""

    moments: list[Moment]
    hidden: list[float]
    learned: list[float]
    pairs_alike: float


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
) -> None:
    """Watch the tastes of 20 people being learned from their corrections, in seconds.

    Each has a hidden taste in cars. Shown one of 406, a person points at another that is a little better, and what
    that teaches decides which is shown next.
    """
    from heedful.experiment import Run, catalogue_setting, simulate
    from heedful.naming import make_user

    cars, names = _cars()
    setting = catalogue_setting(cars, make_user("better"), people=PEOPLE)
    learners = {name: setting.learner(name) for name in LEARNERS} | {"guessing": Guess()}
    # Interpreted: compiling would make the first run several times longer, and the second hardly shorter.
    runs = [event for event in simulate(learners, setting, ROUNDS, interpreted=True) if isinstance(event, Run)]
    spread = {scene.person: scene.world.utilities.std() for scene in setting.scenes}  # one star of that person
    short = {
        name: _by_window([run.regrets / spread[run.person] for run in runs if run.learner == name]) for name in learners
    }
    story = _story(learners[TOLD], setting.scenes[0], names)
    if as_json:
        print_json(_as_json(cars, short, story))
    else:
        _show(cars, short, story)


def _cars() -> tuple[Catalogue, list[str]]:
    """The cars with their features, and what to call each: read from the file in vega_datasets, which stays local."""
    wanted_extra("vega_datasets", "demo", "the demo")
    package = importlib.util.find_spec("vega_datasets")
    file = Path(str(package and package.origin)).parent / "_data" / "cars.json"
    if not file.is_file():
        raise Failure(f"the demo needs {file.name} of vega_datasets, which has none: pip install 'heedful[demo]'")
    from heedful.data.catalogue import catalogue_from_columns

    rows = json.loads(file.read_text(encoding="utf-8"))
    for row in rows:
        row["Year"] = int(row["Year"][:4])
    columns = {name: [row[column] for row in rows] for column, (name, *_) in FEATURES.items()}
    return catalogue_from_columns(columns), [f"{row['Name']} '{row['Year'] % 100}" for row in rows]


def _by_window(regrets: list[Any]) -> list[float]:
    """The mean of each window of rounds, over people: (people x rounds) to one number a window."""
    import numpy as np

    windows: list[float] = np.array(regrets).reshape(len(regrets), -1, WINDOW).mean(axis=(0, 2)).tolist()
    return windows


def _story(learner: Any, scene: Scene, names: list[str]) -> Story:
    import numpy as np

    from heedful.experiment import pairs_alike
    from heedful.fold import play

    left, moments, ratings = list(range(len(names))), [], scene.world.ratings
    rounds = list(play(learner, scene.world, ROUNDS, scene.draw))
    for t, (played, _) in enumerate(rounds, 1):
        shown, preferred = left[played.y[0]], left[played.feedback[0]]
        moments.append(
            Moment(t, names[shown], int(ratings[shown]), names[preferred], int(ratings[preferred]), shown != preferred)
        )
        left = [car for car in left if car not in (shown, preferred)]
    w = learner.weights(rounds[-1][1])
    alike = pairs_alike(scene.world.X @ scene.w_star, scene.world.X @ w)
    return Story(moments, scene.w_star.tolist(), (w / np.linalg.norm(w)).tolist(), alike)


def _as_json(cars: Catalogue, short: dict[str, list[float]], story: Story) -> dict[str, Any]:
    taste = zip(cars.features.tolist(), story.hidden, story.learned)
    return {
        "cars": len(cars.X),
        "people": PEOPLE,
        "rounds": ROUNDS,
        "window": WINDOW,
        "learners": [{"learner": name, "stars_short": windows} for name, windows in short.items()],
        "person": {
            "learner": TOLD,
            "moments": [moment._asdict() for moment in story.moments],
            "weights": [{"feature": name, "hidden": hidden, "learned": learned} for name, hidden, learned in taste],
            "pairs_alike": story.pairs_alike,
        },
    }


# ---------------------------------------------------------------------------- in words


def _show(cars: Catalogue, short: dict[str, list[float]], story: Story) -> None:
    screen = console()
    screen.print(
        f"{PEOPLE} people look for a car among {len(cars.X)}. None could say exactly what they want, but when shown a "
        "car, each can point at one that is a little better. Every such correction is a lesson, and all lessons so "
        f"far decide which car comes next. What was seen does not come back. {ROUNDS} rounds each.\n"
    )
    screen.print(_falling(short))
    screen.print("The best cars leave as they are found, so guessing seems to improve too.\n")
    screen.print(_session(story))
    corrected = sum(moment.corrected for moment in story.moments)
    screen.print(
        f"In {ROUNDS} rounds this person preferred another car {corrected} times; "
        f"{ROUNDS - corrected} times nothing that was left had more stars.\n"
    )
    screen.print(_taste(cars, story))
    screen.print(
        "Engine, cylinders, weight and horsepower go together in cars, so one can stand in for another. Still, "
        f"{story.pairs_alike:.0%} of all pairs of cars are in the order this person would put them; guessing gets "
        "50%.\n"
    )
    screen.print(NEXT, markup=False, soft_wrap=True)


def _falling(short: dict[str, list[float]]) -> Table:
    table = new_table("How far the shown car falls short of the best one left, in stars")
    table.add_column("learner", no_wrap=True)
    picks = range(0, ROUNDS // WINDOW, 3)
    for i in picks:
        table.add_column(
            f"rounds {WINDOW * i + 1}-{WINDOW * (i + 1)}" if i == 0 else f"{WINDOW * i + 1}-{WINDOW * (i + 1)}",
            justify="right",
        )
    table.add_column("over time", no_wrap=True)
    most = max(max(windows) for windows in short.values())
    for name, windows in short.items():
        line = "".join("▁▂▃▄▅▆▇█"[min(int(8 * value / most), 7)] for value in windows)
        table.add_row(name, *[f"{windows[i]:.2f}" for i in picks], f"[cyan]{line}[/]")
    return table


def _session(story: Story) -> Table:
    """The first four rounds, and the next correction from round 10, 25, 50 and 95 on."""
    table = new_table(f"Moments of one person's session with {TOLD}")
    table.add_column("round", justify="right")
    for name in ("was shown", "would rather have"):
        table.add_column(name)
    corrections = [moment for moment in story.moments if moment.corrected]
    later = [next((moment for moment in corrections if moment.round >= t), story.moments[-1]) for t in (10, 25, 50, 95)]
    for moment in story.moments[:4] + later:
        wish = f"{_stars(moment.preferred_stars)} {moment.preferred}" if moment.corrected else "[dim]no other[/]"
        table.add_row(str(moment.round), f"{_stars(moment.stars)} {moment.shown}", wish)
    return table


def _stars(count: int) -> str:
    return f"[yellow]{count}★[/]"


def _taste(cars: Catalogue, story: Story) -> Table:
    words = {name: (more, less) for name, more, less in FEATURES.values()}
    table = new_table("What this person secretly likes, and what was learned")
    for name in ("hidden taste", "learned"):
        table.add_column(name, no_wrap=True)
    features = zip(cars.features.tolist(), story.hidden, story.learned)
    for name, hidden, learned in sorted(features, key=lambda feature: -abs(feature[1])):
        color = "green" if hidden * learned > 0 else "red"
        table.add_row(_weight(words[name], hidden), f"[{color}]{_weight(words[name], learned)}[/]")
    return table


def _weight(words: tuple[str, str], weight: float) -> str:
    return f"{words[0] if weight > 0 else words[1]:<19}{'+' * max(1, round(10 * abs(weight))):<10}"
