"""What a loop learned, in words: what a weight says of its feature, and how strong it is next to the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from heedful.features.columns import Category, Number, Prose, Text
from heedful.features.encoding import Encoding
from heedful.loop import Loop
from heedful.loop.settings import Manifest

LONGEST = 140
"""Characters of a text that is shown."""
Words = Mapping[str, tuple[str, str]]
"""Column, or feature, -> (what more of it is called, what less)."""

STRONGEST = 8
"""Weights that are told at once."""
PLUSES = 3
STRONG = 0.5
"""A weight that makes a whole bar: half of what the caller's own score counts from the start. Where none is as strong
yet, bars are drawn against this, so that a first lesson makes short ones."""
MOVED = 0.2
"""How much of the greatest change another has to be, to be told of."""
LEVEL = 0.8
"""How much of the strongest weight another has to be, not to be told from it at a glance."""
_TRAITS = {
    "length": ("longer", "shorter"),
    "words per sentence": ("longer sentences", "shorter sentences"),
    "code": ("more code", "less code"),
    "first person": ("more “I” and “we”", "less “I” and “we”"),
    "second person": ("more “you”", "less “you”"),
}


class Bar(NamedTuple):
    """One weight as it is shown."""

    feature: str
    words: str
    weight: float
    share: float
    """of the strongest, or of `STRONG` where that is more, from 0 to 1"""

    @property
    def key(self) -> str:
        """What tells it from the others on a page."""
        long = len(self.feature) > LONGEST
        return sha256(self.feature.encode()).hexdigest() if long else self.feature

    @property
    def pluses(self) -> str:
        """How strong, in a glance."""
        return "+" * max(1, round(PLUSES * self.share))


class Phrases:
    """What the features of a loop are called."""

    def __init__(self, manifest: Manifest, names: Sequence[str], words: Words, start: float = 1.0) -> None:
        """Of its encoding, where features have these names; `words` come first. `start` is what the caller's score
        counts before anything was learned."""
        self._words = words
        self._of = _phrases(manifest.candidates, words)
        self._last, self._start = names[-1] if names else "", start

    def of(self, feature: str, weight: float) -> str:
        """What a weight of that sign says of that feature."""
        return short(self._pair(feature)[0 if weight > 0.0 else 1])

    def _pair(self, feature: str) -> tuple[str, str]:
        if (own := self._words.get(feature)) is not None:
            return own
        if feature == self._last:
            return "your own score", "against your own score"
        if (known := self._of.get(feature)) is not None:
            return known
        context, _, item = feature.partition(" × ")
        more, less = self._of.get(item) or _more_less(item)
        around = label(context).replace("=", ": ")
        return f"{more} for {around}", f"{less} for {around}"

    def bars(self, weights: Mapping[str, float]) -> list[Bar]:
        """Weights other than 0, the strongest first. The caller's score is not told of until something was learned of
        it: it counts `start` from the start."""
        there = {name: w for name, w in weights.items() if w != (self._start if name == self._last else 0.0)}
        most = max([STRONG, *map(abs, there.values())])
        ordered = sorted(there.items(), key=lambda each: -abs(each[1]))
        return [Bar(name, self.of(name, w), w, abs(w) / most) for name, w in ordered]

    def describe_changes(self, before: Mapping[str, float], after: Mapping[str, float], most: int = 2) -> list[str]:
        """What changed most between two sets of weights, and how many others changed as much."""
        change = {name: after[name] - before.get(name, 0.0) for name in after}
        greatest = max(map(abs, change.values()), default=0.0)
        told = [name for name, by in change.items() if by != 0.0 and abs(by) >= MOVED * greatest]
        told.sort(key=lambda name: -abs(change[name]))
        alike = sum(abs(change[name]) >= LEVEL * greatest for name in told) - most
        more = [f"{alike} other{'' if alike == 1 else 's'} as much"] if alike > 0 else []
        return [*[self.of(name, change[name]) for name in told[:most]], *more]


def level(bars: Sequence[Bar]) -> bool:
    """Whether there are more than two bars and all are about equally long; `bars` are sorted, the longest first.

    This is so after a first lesson, when weights cannot be told apart yet. The page then lists the features without
    strengths.
    """
    return len(bars) > 2 and bars[-1].share >= LEVEL * bars[0].share


def phrases_of(loop: Loop, words: Words) -> Phrases:
    """What the features of an open loop are called."""
    interaction = loop.projection.interaction
    fresh = interaction.fresh()
    weights = fresh.effective(fresh.shared, None)
    return Phrases(loop.manifest, loop.feature_names, words, float(weights[-1]) if len(weights) else 0.0)


def short(text: str) -> str:
    """A text, or as much of it as fits on a card."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}…"


def label(name: str) -> str:
    """A column as a person reads it."""
    return " ".join(name.replace("_", " ").split()) or name


def _phrases(encoding: Encoding, words: Words) -> dict[str, tuple[str, str]]:
    return dict(zip(encoding.names, _each(encoding, words)))


def _each(encoding: Encoding, words: Words) -> Iterable[tuple[str, str]]:
    for column in encoding.columns:
        plain = _lower_first(label(column.name))
        features = column.features()
        missing = [f"unknown {plain}"] if column.missing and features else []
        for own in features[: len(features) - len(missing)]:
            if isinstance(column, Number):
                yield words.get(column.name) or _more_less(plain)
            elif isinstance(column, Category):
                level = f"{label(column.name)}: {own.removeprefix(f'{column.name}=')}"
                yield f"rather {level}", f"not {level}"
            elif isinstance(column, Text):
                word = own.removeprefix(f"{column.name}~")
                yield f"“{word}” in {plain}", f"no “{word}” in {plain}"
            elif isinstance(column, Prose):
                trait = own.removeprefix(f"{column.name}: ")
                yield _TRAITS.get(trait) or (f"more {trait}", f"fewer {trait}")
            else:
                yield _more_less(own)
        yield from ((unknown, f"known {plain}") for unknown in missing)


def _lower_first(text: str) -> str:
    """Weight in lbs -> weight in lbs; MPG stays."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _more_less(text: str) -> tuple[str, str]:
    return f"more {text}", f"less {text}"
