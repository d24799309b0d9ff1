"""How often a false statement is made about the style of a person, and after how many edits the true ones are.

`python bench/edits.py` writes bench/results/edits.json. 1,000 simulated people of each kind edit 60 drafts; what their
edits say is looked at after every edit (alpha = .05). A statement is false if, over 4,000 further edits of that kind of
person, the number does not lean that way, or does not lean that way beyond the change of the length, by more than two
standard errors. Texts are sentences of random English words with marks, hedges, thanks and so on at fixed rates.

| kind | what they make of a draft |
|---|---|
| without a leaning | another text of the same distribution, whatever the draft was |
| keep half | each sentence with probability 1/2 |
| rewrite at half the length | another text with half as many sentences, whatever the draft was |
| four leanings | keep a sentence with probability 0.7; exclamation marks go (0.9), hedges go (0.9), thanks come (0.8) |

`--part I` simulates the I-th hundred of the people and keeps it in a file beside the result; without it all parts are
simulated that are not kept yet. `--quick` takes 20 people of each kind and writes nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import record
from rich.console import Console
from rich.table import Table

from heedful.evaluation.leaning import log_evidence, sure
from heedful.features.style import NAMES, compare, measure
from heedful.features.texts import word_set

ALPHA, PEOPLE, EDITS, PART = 0.05, 1000, 60, 100
LOOKS = (8, 10, 12, 14, 16, 20, 30, 60)
KEPT = Path(__file__).parent / "results" / "edits.parts.json"
PLAIN = sorted(
    word_set(
        "the and of to is that you with this your have not our parcel letter shop order day week box book house street "
        "time people work place group number part point hand year way thing case company system question"
    )
)
CLASSES = (
    (("perhaps", "maybe", "might", "probably"), 0.25),
    (("thanks", "please", "glad", "hope"), 0.2),
    (("furthermore", "regarding", "therefore"), 0.15),
    (("very", "really", "definitely"), 0.2),
    (("I", "we", "my"), 0.4),
    (("don't", "it's", "we'll"), 0.2),
    (("3", "17", "2,500"), 0.15),
)
HEDGES = set(CLASSES[0][0])
Text = list[str]
Rng = np.random.Generator


def sentence(rng: Rng) -> str:
    words = list(rng.choice(PLAIN, rng.integers(5, 14)))
    for known, rate in CLASSES:
        if rng.random() < rate:
            words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(known)))
    if rng.random() < 0.1:
        words.insert(len(words) // 2, "\N{EM DASH}")
    end = rng.choice([".", "!", "?"], p=[0.6, 0.25, 0.15])
    return " ".join(words) + end + (" 😀" if rng.random() < 0.1 else "")


def text(rng: Rng, size: int) -> Text:
    return [sentence(rng) for _ in range(size)]


def whole(sentences: Text, rng: Rng) -> str:
    """A text with or without a greeting, a sign-off, a list, all by chance."""
    body = ("\n- " if rng.random() < 0.15 else " ").join(sentences)
    return ("Hello Ann,\n" if rng.random() < 0.5 else "") + body + ("\nBest regards" if rng.random() < 0.5 else "")


def none(draft: Text, rng: Rng) -> Text:
    return text(rng, int(rng.integers(3, 9)))


def halve(draft: Text, rng: Rng) -> Text:
    return [each for each in draft if rng.random() < 0.5] or draft[:1]


def rewrite(draft: Text, rng: Rng) -> Text:
    return text(rng, max(len(draft) // 2, 1))


def lean(draft: Text, rng: Rng) -> Text:
    kept = [each for each in draft if rng.random() < 0.7] or draft[:1]
    if rng.random() < 0.9:
        kept = [each.replace("!", ".") for each in kept]
    if rng.random() < 0.9:
        kept = [" ".join(word for word in each.split(" ") if word.rstrip(".!?") not in HEDGES) for each in kept]
    if rng.random() < 0.8:
        kept[0] = f"Thanks, {kept[0]}"
    return kept


KINDS: dict[str, Callable[[Text, Rng], Text]] = {
    "without a leaning": none, "keep half": halve, "rewrite at half the length": rewrite, "four leanings": lean,
}  # fmt: skip
LEANINGS = (("length", -1), ("exclamation marks", -1), ("hedging words", -1), ("warm words", 1))


def edits(kind: str, rng: Rng, n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(raw, adjusted) changes of n edits, (n, features) each."""
    raw, adjusted = np.zeros((n, len(NAMES))), np.zeros((n, len(NAMES)))
    for i in range(n):
        draft = text(rng, int(rng.integers(3, 9)))
        after = KINDS[kind](draft, rng)
        seed = int(rng.integers(2**32))  # what surrounds the sentences stays, but for those who write another text
        other = int(rng.integers(2**32)) if kind in ("without a leaning", "rewrite at half the length") else seed
        before = measure(whole(draft, np.random.default_rng(seed)))
        for j, change in enumerate(compare(before, measure(whole(after, np.random.default_rng(other))))):
            if change is not None:
                raw[i, j], adjusted[i, j] = change.raw, change.adjusted
    return raw, adjusted


def said(raw: np.ndarray[Any, Any], adjusted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which statements are made after so many edits: (2, features), more and fewer."""
    (raw_up, raw_down), (up, down) = log_evidence(raw), log_evidence(adjusted)
    logs = np.concatenate([np.minimum(raw_up, up), np.minimum(raw_down, down)])
    return sure(logs, ALPHA).reshape(2, len(NAMES))


def true_statements(kind: str) -> np.ndarray[Any, Any]:
    """Which statements hold of a kind of people, (2, features): by far more edits than anybody makes."""
    values = edits(kind, np.random.default_rng(1), 4000)
    limits = [2.0 * each.std(axis=0) / len(each) ** 0.5 for each in values]
    (raw, adjusted), (a, b) = (each.mean(axis=0) for each in values), limits
    return np.array([(raw > a) & (adjusted > b), (raw < -a) & (adjusted < -b)])


def part(kind: str, people: range) -> list[dict[str, int]]:
    """For each of the people, after how many edits each statement was made first: {"+feature": number}."""
    found = []
    for person in people:
        raw, adjusted = edits(kind, np.random.default_rng([7, list(KINDS).index(kind), person]), EDITS)
        first: dict[str, int] = {}
        for n in range(4, EDITS + 1):
            for side, j in np.argwhere(said(raw[:n], adjusted[:n])).tolist():
                first.setdefault(f"{'-' if side else '+'}{NAMES[j]}", n)
        found.append(first)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, help="simulate the I-th hundred of the people of one kind, and keep it")
    parser.add_argument("--quick", action="store_true", help="20 people of each kind, and nothing is written")
    args = parser.parse_args()
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() and not args.quick else {}
    size = 20 if args.quick else PART
    parts = [(kind, i) for kind in KINDS for i in range(1 if args.quick else PEOPLE // PART)]
    for number, (kind, i) in enumerate(parts):
        if f"{kind} {i}" not in kept and args.part in (None, number):
            kept[f"{kind} {i}"] = part(kind, range(i * size, (i + 1) * size))
            if not args.quick:
                KEPT.write_text(json.dumps(kept))
    if args.part is not None:
        return
    figures: dict[str, Any] = {"alpha": ALPHA, "people": size * len(parts) // len(KINDS), "edits": EDITS}
    table = Table("kind", "people with a false statement", "false statements")
    power = Table("leaning", *(f"{n} edits" for n in LOOKS), title="share of people of whom it is said")
    for kind in KINDS:
        truth = true_statements(kind)
        true = {f"{'-' if side else '+'}{NAMES[j]}" for side, j in np.argwhere(truth).tolist()}
        people = [first for k, i in parts if k == kind for first in kept[f"{kind} {i}"]]
        false = [[name for name in first if name not in true] for first in people]
        rate = float(np.mean([bool(each) for each in false]))
        named = sorted({name for each in false for name in each})
        figures[kind] = {"true": sorted(true), "false": round(rate, 4), "statements": named}
        table.add_row(kind, f"{rate:.4f}", ", ".join(named))
        if kind == "four leanings":
            for name, side in LEANINGS:
                key = f"{'-' if side < 0 else '+'}{name}"
                shares = [float(np.mean([first.get(key, 10**9) <= n for first in people])) for n in LOOKS]
                figures[kind][key] = {str(n): round(share, 3) for n, share in zip(LOOKS, shares)}
                power.add_row(key, *(f"{share:.2f}" for share in shares))
    Console().print(table, power)
    if not args.quick:
        record("edits", figures)
        KEPT.unlink()


if __name__ == "__main__":
    main()
