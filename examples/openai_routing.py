"""A model for each prompt: a loop chooses among endpoints that speak OpenAI's API, and learns from thumbs and edits.

    python examples/openai_routing.py examples/endpoints.csv --cost-weight 0.02

reads prompts from the terminal, a line each, sends each to one of the models in the table, prints the answer, and asks
whether it was good: + or -, or the text as it should have been, or nothing. What it learns stays in `route.heedful`,
which the commands read, too: `heedful report route`, `heedful evaluate route`.

The table has a row for each model: its name (`id`), its `cost` in a unit of your choice, the `url` of its endpoint
(what comes before /chat/completions), the `model` as the endpoint calls it, and, where the endpoint wants a key, the
environment variable that holds it (`key`). An endpoint that fails is left out, and another one answers.

Only heedful and the standard library are needed. In a program of your own take `Router`; the loop may be one of
`heedful.client`, too.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful import Loop, Settings


class Answer(NamedTuple):
    """What a model answered to a prompt."""

    text: str
    model: str
    """the name of the model, as in the table"""
    decision: Any
    """the loop's decision, to which feedback belongs"""


class Router:
    """Sends each prompt to the model that `loop` chooses among `models`, rows with `id`, `url`, `model` and `key`."""

    def __init__(self, loop: Any, models: Sequence[Mapping[str, Any]], timeout: float = 60.0) -> None:
        self.loop, self.timeout = loop, timeout
        self.models = {str(row["id"]): row for row in models}

    def complete(self, prompt: str, person: str | None = None) -> Answer:
        """Return the answer of the model that the loop chooses for `prompt`, for `person`.

        A model whose endpoint fails is left out and the loop chooses again. Raise OSError if none answers."""
        left, failed = list(self.models), list[str]()
        while left:
            decision = self.loop.decide(left, context={"prompt": prompt}, person=person, deferred=True)
            name = decision.shown[0]
            try:
                text = self._ask(self.models[name], prompt)
            except (OSError, ValueError, LookupError) as error:  # no connection, no JSON, no answer in it
                failed.append(f"{name}: {error}")
                left.remove(name)
                continue
            self.loop.activate(decision.id)  # only what somebody saw counts as shown
            return Answer(text, name, decision)
        raise OSError("no model answered: " + "; ".join(failed))

    def thumb(self, answer: Answer, up: bool) -> None:
        """Tell the loop whether an answer was good."""
        self.loop.feedback(answer.decision.id, thumb="up" if up else "down")

    def edit(self, answer: Answer, text: str) -> None:
        """Tell the loop the text that an answer should have been: the more was changed, the worse it was."""
        self.loop.feedback(answer.decision.id, edit={"from": answer.text, "to": text})

    def _ask(self, model: Mapping[str, Any], prompt: str) -> str:
        body = {"model": model["model"], "messages": [{"role": "user", "content": prompt}]}
        headers = {"Content-Type": "application/json"}
        if model.get("key"):
            key = os.environ.get(model["key"])
            if not key:
                raise ValueError(f"key: expected the environment variable {model['key']}, got none")
            headers["Authorization"] = f"Bearer {key}"
        url = f"{str(model['url']).rstrip('/')}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])


def read_models(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the table at `path`. Raise OSError if it cannot be read, and ValueError if a row is no model
    with an endpoint."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        models: list[dict[str, Any]] = list(csv.DictReader(file))
    for number, row in enumerate(models, 1):
        for column in ("id", "cost", "url", "model"):
            if not row.get(column):
                raise ValueError(f"{path}: row {number}: {column}: expected a value, got none")
        try:
            row["cost"] = float(row["cost"])
        except ValueError:
            raise ValueError(f"{path}: row {number}: cost: expected a number, got {row['cost']!r}") from None
    return models


def open_loop(path: Path, models: Sequence[Mapping[str, Any]], cost_weight: float | None) -> Loop:
    """Return the loop in the folder `path`, a new one of `models` if there is none.

    Raise ValueError if one that is there has other models, or another cost weight than `cost_weight`; None is any."""
    rows = [{"id": row["id"], "cost": row["cost"]} for row in models]
    if not path.exists():
        return Loop.create(path, items=rows, settings=Settings(cost_weight=cost_weight or 0.0))
    loop = Loop.open(path)
    names, there = sorted(str(row["id"]) for row in models), sorted(loop.items)
    if names != there or cost_weight not in (None, loop.settings.cost_weight):
        loop.close()
        got = f"models {names}, cost weight {cost_weight}"
        expected = f"models {there}, cost weight {loop.settings.cost_weight}"
        raise ValueError(f"{path}: expected {expected}, as the loop was made with, got {got}; --loop makes another one")
    loop.put_items(rows)  # costs may have changed
    return loop


def main() -> int:
    """Answer prompts from the terminal."""
    parser = argparse.ArgumentParser(description="A model for each prompt, learned from thumbs and edits.")
    parser.add_argument("models", type=Path, help="CSV with the columns id, cost, url, model and, if need be, key")
    parser.add_argument("--loop", type=Path, default=Path("route.heedful"), help="the folder of the loop")
    parser.add_argument("--cost-weight", type=float, help="how much of a thumb one unit of cost is worth; default 0")
    chosen = parser.parse_args()
    try:
        models = read_models(chosen.models)
        loop = open_loop(chosen.loop, models, chosen.cost_weight)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        parser.error(str(error))
    with loop:
        router = Router(loop, models)
        for line in iter(lambda: _read("prompt: "), ""):
            try:
                answer = router.complete(line)
            except OSError as error:
                print(error, file=sys.stderr)
                continue
            print(f"[{answer.model}] {answer.text}")
            said = _read("good? + - or the text as it should be: ")
            if said in ("+", "-"):
                router.thumb(answer, said == "+")
            elif said:
                router.edit(answer, said)
    return 0


def _read(words: str) -> str:
    print(words, end="", flush=True)
    return sys.stdin.readline().strip()


if __name__ == "__main__":
    raise SystemExit(main())
