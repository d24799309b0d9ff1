"""How often a false statement is made about the style of a person, and after how many edits the true ones are.

`python bench/edits.py` writes bench/results/edits.json. 1,000 simulated people of each kind edit 60 drafts; what their
edits say is looked at after every edit (alpha = .05). Texts are sentences of random English words with marks, hedges,
thanks and so on at fixed rates. A statement is false if it is none of those that the kind of person stands for; the
length of sentences, which changes with what is deleted, counts for neither, but for people without a leaning.

| kind | what they make of a draft | true |
|---|---|---|
| without a leaning | another text of the same distribution, whatever the draft was | nothing |
| keep half | each sentence, greeting and sign-off with probability 1/2 | shorter |
| rewrite at half the length | another text with half as many sentences, whatever the draft was | shorter |
| four leanings | keep each with probability 0.7; no exclamation marks (0.9), no hedges (0.9), thanks (0.8) | these |

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


def draft_text(rng: Rng, size: int) -> Text:
    """Lines of a text: a greeting and a sign-off, or none, by chance, around its sentences, which may be a list."""
    mark = "- " if rng.random() < 0.15 else ""
    body = [mark + each for each in text(rng, size)]
    return [*["Hello Ann,"][: int(rng.random() < 0.5)], *body, *["Best regards"][: int(rng.random() < 0.5)]]


def none(draft: Text, rng: Rng) -> Text:
    return draft_text(rng, int(rng.integers(3, 9)))


def halve(draft: Text, rng: Rng) -> Text:
    return [each for each in draft if rng.random() < 0.5] or [draft[int(rng.integers(len(draft)))]]


def rewrite(draft: Text, rng: Rng) -> Text:
    return draft_text(rng, max(len(draft) // 2, 1))


def lean(draft: Text, rng: Rng) -> Text:
    kept = [each for each in draft if rng.random() < 0.7] or draft[1:2]
    if rng.random() < 0.9:
        kept = [each.replace("!", ".") for each in kept]
    if rng.random() < 0.9:
        kept = [" ".join(word for word in each.split(" ") if word.rstrip(".!?") not in HEDGES) for each in kept]
    if rng.random() < 0.8:
        kept.insert(1, "Thanks for that.")
    return kept


KINDS: dict[str, Callable[[Text, Rng], Text]] = {
    "without a leaning": none, "keep half": halve, "rewrite at half the length": rewrite, "four leanings": lean,
}  # fmt: skip
LEANINGS = ("-length", "-exclamation marks", "-hedging words", "+warm words")
TRUE = {
    "without a leaning": frozenset[str](),
    "keep half": frozenset(["-length", "-sentence length", "+sentence length"]),
    "rewrite at half the length": frozenset(["-length", "-sentence length", "+sentence length"]),
    "four leanings": frozenset([*LEANINGS, "-sentence length", "+sentence length"]),
}


def edits(kind: str, rng: Rng, n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(raw, adjusted) changes of n edits, (n, features) each."""
    raw, adjusted = np.zeros((n, len(NAMES))), np.zeros((n, len(NAMES)))
    for i in range(n):
        draft = draft_text(rng, int(rng.integers(3, 9)))
        before, after = measure("\n".join(draft)), measure("\n".join(KINDS[kind](draft, rng)))
        for j, change in enumerate(compare(before, after)):
            if change is not None:
                raw[i, j], adjusted[i, j] = change.raw, change.adjusted
    return raw, adjusted


def said(raw: np.ndarray[Any, Any], adjusted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which statements are made after so many edits: (2, features), more and fewer."""
    (raw_up, raw_down), (up, down) = log_evidence(raw), log_evidence(adjusted)
    logs = np.concatenate([np.minimum(raw_up, up), np.minimum(raw_down, down)])
    return sure(logs, ALPHA).reshape(2, len(NAMES))


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
        people = [first for k, i in parts if k == kind for first in kept[f"{kind} {i}"]]
        false = [[name for name in first if name not in TRUE[kind]] for first in people]
        rate = float(np.mean([bool(each) for each in false]))
        named = sorted({name for each in false for name in each})
        figures[kind] = {"false": round(rate, 4), "statements": named}
        table.add_row(kind, f"{rate:.4f}", ", ".join(named))
        if kind == "four leanings":
            for key in LEANINGS:
                shares = [float(np.mean([first.get(key, 10**9) <= n for first in people])) for n in LOOKS]
                figures[kind][key] = {str(n): round(share, 3) for n, share in zip(LOOKS, shares)}
                power.add_row(key, *(f"{share:.2f}" for share in shares))
    Console().print(table, power)
    if not args.quick:
        record("edits", figures)
        KEPT.unlink()


if __name__ == "__main__":
    main()
