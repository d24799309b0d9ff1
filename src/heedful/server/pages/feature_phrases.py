"""Weights of features in words: "more horsepower" for a positive weight of horsepower, with a bar for its size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from heedful.features.columns import Category, Number, Prose, Text, Vector
from heedful.features.encoding import Encoding
from heedful.loop import Loop
from heedful.loop.settings import Manifest
from heedful.studies.things import LONGEST, label, short

Words = Mapping[str, tuple[str, str]]
"""name of a column or of a feature -> (phrase for more of it, phrase for less of it)"""

STRONGEST = 8
"""The number of weights that a page lists; the others are folded away."""
NAMED = 2
"""The most features that a message on a change names."""
PLUSES = 3
"""The most plus signs after a phrase."""
STRONG = 0.5
"""The least weight that a full bar stands for: half the initial weight of the caller's own score. So bars are short
after a first piece of feedback."""
MOVED = 0.2
"""A feature's change is mentioned if it is at least this share of the greatest change."""
LEVEL = 0.8
"""Weights of at least this share of the greatest one count as equally strong."""
_TRAITS = {
    "length": ("longer", "shorter"),
    "words per sentence": ("longer sentences", "shorter sentences"),
    "code": ("more code", "less code"),
    "first person": ("more “I” and “we”", "less “I” and “we”"),
    "second person": ("more “you”", "less “you”"),
}


class Bar(NamedTuple):
    """The weight of one feature as a page shows it: a phrase, and a bar as long as the weight.

    The numbers of a vector, such as an embedding, are one bar together, as none of them has a meaning of its own."""

    feature: str
    """the name of the feature, or the part of the name that all numbers of a vector share"""
    words: str
    """the phrase: "more horsepower\""""
    weight: float
    """its weight, with its sign; of a vector the Euclidean length of its weights"""
    share: float
    """its size relative to the greatest weight, or to STRONG if that is larger: 0 to 1"""
    spread: float | None = None
    """the standard deviation of the weight; None if it is not known, or for a vector"""

    @property
    def key(self) -> str:
        """A text that identifies the bar on its page: the feature's name, or a digest of it if it is long."""
        long = len(self.feature) > LONGEST
        return sha256(self.feature.encode()).hexdigest() if long else self.feature

    @property
    def pluses(self) -> str:
        """One to PLUSES plus signs: the more, the greater the weight is relative to the others."""
        return "+" * max(1, round(PLUSES * self.share))


class Phrases:
    """For each feature of a loop, a phrase for more of it ("heavier") and one for less of it ("lighter")."""

    def __init__(self, manifest: Manifest, names: Sequence[str], words: Words, start: float = 1.0) -> None:
        """Prepare phrases for the features called `names`, the last of which is the caller's score.

        `manifest` has the columns that the features come from. `words` has phrases, by column or feature, that take
        precedence; `start` is the weight of the caller's score before anything was learned."""
        self._words = words
        self._of = dict(zip(manifest.candidates.names, _phrases(manifest.candidates, words)))
        self._last, self._start = names[-1] if names else "", start
        encodings = [encoding for encoding in (manifest.candidates, manifest.context) if encoding is not None]
        vectors = [column for encoding in encodings for column in encoding.columns if isinstance(column, Vector)]
        self._vectors = {number: column.name for column in vectors for number in column.feature_names()}
        self._of |= {column.name: (f"alike in {label(column.name)}",) * 2 for column in vectors}

    def of(self, feature: str, weight: float) -> str:
        """Return the phrase for `feature`: for more of it if `weight` is positive, otherwise for less of it."""
        return short(self._pair(self._part(feature))[0 if weight > 0.0 else 1])

    def _part(self, feature: str) -> str:
        """Return the name of the bar that `feature` counts in: its own, or that of all numbers of its vector."""
        if feature in self._words or not self._vectors:
            return feature
        return " × ".join([self._vectors.get(side, side) for side in feature.split(" × ", 1)])

    def _parts(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return numbers by bar, made from `weights` by feature: those of a vector are one, their Euclidean length."""
        parts: dict[str, float] = {}
        for name, weight in weights.items():
            part = self._part(name)
            parts[part] = weight if part == name else math.hypot(parts.get(part, 0.0), weight)
        return parts

    def _pair(self, feature: str) -> tuple[str, str]:
        """Return the phrases for more and for less of a feature."""
        if (phrases := self._words.get(feature)) is not None:
            return phrases
        if feature == self._last:
            return "your own score", "against your own score"
        if (phrases := self._of.get(feature)) is not None:
            return phrases
        context, _, item = feature.partition(" × ")
        if context in self._vectors.values():
            return (f"{label(item).replace('=', ': ')}, depending on {label(context)}",) * 2
        if (with_much := self._of.get(context)) is not None:  # a product of two features of an item
            if context == item:
                return f"{label(item)} far from average", f"{label(item)} near average"
            with_it = with_much[0].removeprefix("rather ")
            more, less = self._of[item]
            return f"{more} with {with_it}", f"{less} with {with_it}"
        more, less = self._of.get(item) or _more_less(item)
        around = label(context).replace("=", ": ")
        return f"{more} for {around}", f"{less} for {around}"

    def bars(self, weights: Mapping[str, float], spreads: Mapping[str, float] | None = None) -> list[Bar]:
        """Return the bars of all weights (by feature) that feedback has changed, the greatest size first, with their
        standard deviations `spreads` (by feature).

        Before feedback weights are 0, and that of the caller's score is `start`."""
        there = {name: w for name, w in weights.items() if w != (self._start if name == self._last else 0.0)}
        there = self._parts(there)
        most = max([STRONG, *map(abs, there.values())])
        ordered = sorted(there.items(), key=lambda part: -abs(part[1]))
        known = spreads or {}
        return [Bar(name, self.of(name, w), w, abs(w) / most, known.get(name)) for name, w in ordered]

    def describe_changes(self, before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
        """Return phrases for the `NAMED` features whose weights, by feature, changed most from `before` to `after`.

        If other features changed about as much, a last phrase says how many."""
        change = self._parts({name: after[name] - before.get(name, 0.0) for name in after})
        greatest = max(map(abs, change.values()), default=0.0)
        features = [name for name, by in change.items() if by != 0.0 and abs(by) >= MOVED * greatest]
        features.sort(key=lambda name: -abs(change[name]))
        alike = sum(abs(change[name]) >= LEVEL * greatest for name in features) - NAMED
        more = [f"{alike} other{'' if alike == 1 else 's'} as much"] if alike > 0 else []
        return [*[self.of(name, change[name]) for name in features[:NAMED]], *more]


def level(bars: Sequence[Bar]) -> bool:
    """Return whether there are more than two `bars` (weights of features, longest first) and all are about equally
    long.

    This is so after a first piece of feedback, when weights cannot be told apart yet. The page then lists the features
    without their strengths."""
    return len(bars) > 2 and bars[-1].share >= LEVEL * bars[0].share


def phrases_of(loop: Loop, words: Words) -> Phrases:
    """Return the phrases for the features of a loop. `words` maps columns or features to (phrase for more, phrase for
    less) and takes precedence over the phrases made from their names."""
    interaction = loop.projection.interaction
    fresh = interaction.fresh()
    weights = fresh.effective(fresh.view())
    return Phrases(loop.manifest, loop.feature_names, words, float(weights[-1]) if len(weights) else 0.0)


def _phrases(encoding: Encoding, words: Words) -> Iterator[tuple[str, str]]:
    """Yield (phrase for more of it, phrase for less of it) for each feature of `encoding`, in the order of features."""
    for column in encoding.columns:
        plain = _lower_first(label(column.name))
        features = column.features()
        missing = [f"unknown {plain}"] if column.missing and features else []
        for feature in features[: len(features) - len(missing)]:
            if isinstance(column, Number):
                more, less = words.get(column.name) or _more_less(plain)
                yield (more, less) if feature == column.name else (f"{more} (logarithm)", f"{less} (logarithm)")
            elif isinstance(column, Category):
                level = f"{label(column.name)}: {feature.removeprefix(f'{column.name}=')}"
                yield f"rather {level}", f"not {level}"
            elif isinstance(column, Text):
                word = feature.removeprefix(f"{column.name}~")
                yield f"“{word}” in {plain}", f"no “{word}” in {plain}"
            elif isinstance(column, Prose):
                trait = feature.removeprefix(f"{column.name}: ")
                yield _TRAITS.get(trait) or (f"more {trait}", f"fewer {trait}")
            else:
                yield _more_less(feature)
        yield from ((unknown, f"known {plain}") for unknown in missing)


def _lower_first(text: str) -> str:
    """Return a text with a lower-case first letter, unless it begins with an abbreviation such as MPG."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _more_less(text: str) -> tuple[str, str]:
    return f"more {text}", f"less {text}"
