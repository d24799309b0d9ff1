"""Candidates that a loop does not know: a page is decided all the same.

A request may name items that are not on offer, an item twice, none at all, or be the hits of a search engine. What is
known is ranked. An unknown one keeps the place that the caller's score gives it, and the known stand around it in the
order of the model; where there is no score it comes last. The control shows the caller's own order, as it came. So what
is random is the order of the known alone, and the probability of a list is that of the known in it.

In the log a decision is one among what is known, so that its fold is what it would be had the others never been named;
`DecisionRecord.unknown` says where in the list they stood. Feedback on them is kept as it was given
(`FeedbackRecord.said`), and what it says of others teaches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from heedful.core.validation import describe
from heedful.loop import records
from heedful.loop.records import DecisionRecord, Feedback, FeedbackRecord

HIT = "_id"
"""The field that makes an object a hit."""
_HIT = {"_id", "_score", "_source", "_index", "_type", "_version", "_seq_no", "_primary_term", "_routing", "_ignored"}
_HIT |= {"_explanation", "_node", "_shard", "_nested", "fields", "highlight", "inner_hits", "matched_queries", "sort"}


class Strangers(NamedTuple):
    """The candidates of a request that are not on offer; m others are. All are numbered, the m first."""

    names: tuple[str, ...]
    learned: tuple[int, ...] = ()
    """all candidates in the order in which these have their places where the model ranks the others"""
    own: tuple[int, ...] = ()
    """... and in the caller's order, which the control shows"""

    def places(self, m: int, size: int, own: bool, left: Collection[int] | None = None) -> tuple[int, ...]:
        """Of the first `size` places, those of unknown candidates as their numbers from 0, -1 for the others; without
        the known that are not `left`."""
        base = self.own if own else self.learned
        among = [j for j in base if left is None or j >= m or j in left]
        return tuple([j - m if j >= m else -1 for j in among[:size]])

    def told(self, places: Sequence[int]) -> tuple[tuple[int, str], ...]:
        """As the log keeps them, where they stand in these places: (place, name), -1 where not shown."""
        at = {j: place for place, j in enumerate(places) if j >= 0}
        return tuple([(at.get(j, -1), name) for j, name in enumerate(self.names)])


def around(shown: Sequence[Any], record: DecisionRecord, unknown: Callable[[str], Any]) -> list[Any]:
    """What is said of the known that a decision shows, with `unknown` of each of the others' names in its place."""
    found = list(shown)
    for place, name in sorted(record.unknown):
        if place >= 0:
            found.insert(place, unknown(name))
    return found


def shown_names(record: DecisionRecord, names: Sequence[str]) -> tuple[str, ...]:
    """The names of what a decision shows, best first; `names` are those of its known candidates."""
    known = [names[j] for j in record.shown]
    return tuple(around(known, record, str) if record.unknown else known)


# ---------------------------------------------------------------------------- candidates


def sifted(
    names: Sequence[str], candidates: Sequence[Any], prior: Any, known: Callable[[str], bool]
) -> tuple[list[Any], Any, Strangers] | None:
    """(candidates that are known, the scores of these, the others) of candidates with these names, of which one that
    comes again is left out; None where all are known, each once."""
    first = {name: j for j, name in reversed(list(enumerate(names)))}
    once = [j for j, name in enumerate(names) if first[name] == j]
    kept = [j for j in once if known(names[j])]
    if len(kept) == len(names):
        return None
    scored = prior is not None
    if isinstance(prior, Mapping):
        prior = {records.check_id("prior", name): score for name, score in prior.items()}
        if strange := sorted(prior.keys() - first.keys()):
            raise ValueError(f"prior: expected scores of candidates, got one of {describe(strange[0])}")
    elif scored and (isinstance(prior, str | bytes) or not hasattr(prior, "__len__") or len(prior) != len(names)):
        raise ValueError(f"prior: expected {len(names)} scores, one for each candidate, got {describe(prior)}")
    scores = [prior.get(names[j]) if isinstance(prior, Mapping) else prior[j] for j in once] if scored else []
    number = {j: i for i, j in enumerate(kept)}
    others = [j for j in once if j not in number]
    number |= {j: len(kept) + i for i, j in enumerate(others)}
    if scored:
        heights = _heights(scores)
        learned = own = tuple([number[once[i]] for i in sorted(range(len(once)), key=lambda i: -heights[i])])
    else:
        learned, own = tuple(range(len(once))), tuple([number[j] for j in once])
    if isinstance(prior, Mapping):
        prior = {name: prior[name] for name in [names[j] for j in kept] if name in prior}
    elif scored:
        prior = [prior[j] for j in kept]
    return [candidates[j] for j in kept], prior, Strangers(tuple([names[j] for j in others]), learned, own)


def _heights(scores: Sequence[Any]) -> list[float]:
    """Scores, with the average for what has none: ValueError where one is no number."""
    numbers = [None if score is None else records.check_number("prior", score) for score in scores]
    there = [each for each in numbers if each is not None]
    largest = max(map(abs, there), default=0.0) or 1.0
    mean = sum(each / largest for each in there) / max(len(there), 1)
    return [mean if each is None else each / largest for each in numbers]


def are_hits(candidates: Any) -> bool:
    """Whether these are hits of a search engine."""
    if not isinstance(candidates, Sequence) or isinstance(candidates, str) or not len(candidates):
        return False
    return isinstance(candidates[0], Mapping) and HIT in candidates[0]


def from_hits(
    candidates: Sequence[Any], prior: Any, identifier: str, on_offer: Collection[str], query: Collection[str] = ()
) -> tuple[list[Any], Any]:
    """(candidates, prior) that hits stand for: names of items and the engine's scores; objects with what is in
    `_source` where none of them is on offer and all have one. Where requests say something of each item, `query`, the
    names of that: items with what `_source` or `fields` has of it. Scores that come beside them go before. ValueError,
    by name."""
    names, scores = [], []
    for j, hit in enumerate(candidates):
        if not isinstance(hit, Mapping) or HIT not in hit:
            raise ValueError(f"candidates[{j}]: expected a hit with _id, as the others are, got {describe(hit)}")
        strange = sorted(str(name) for name in hit if name not in _HIT)
        if strange:
            told = f"expected the fields of a hit, _id, _score, _source, ..., got {describe(strange[0])}"
            raise ValueError(f"candidates[{j}]: {told}: attributes stand in _source")
        source = hit.get("_source")
        if source is not None and not isinstance(source, Mapping):
            raise ValueError(f"candidates[{j}]: _source: expected an object, got {describe(source)}")
        names.append(records.check_id(f"candidates[{j}]: _id", hit[HIT]))
        score = hit.get("_score")
        scores.append(None if score is None else records.check_number(f"candidates[{j}]: _score", score))
    if prior is None and any(score is not None for score in scores):
        prior = {name: score for name, score in zip(names[::-1], scores[::-1]) if score is not None}
    if query:
        return [{identifier: name, **_values(hit, query)} for hit, name in zip(candidates, names)], prior
    if not any(name in on_offer for name in names) and all(hit.get("_source") is not None for hit in candidates):
        return [{**hit["_source"], identifier: name} for hit, name in zip(candidates, names)], prior
    return list(names), prior


def _values(hit: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """What a hit has of these names; in `fields`, where every value is a list, the one that is in it."""
    fields = hit.get("fields")
    computed = {name: value for name, value in fields.items() if name in names} if isinstance(fields, Mapping) else {}
    single = {name: v[0] if isinstance(v, list) and len(v) == 1 else v for name, v in computed.items()}
    return {name: value for name, value in (hit.get("_source") or {}).items() if name in names} | single


# ---------------------------------------------------------------------------- feedback


def about_known(
    given: Feedback,
    form: Mapping[str, Any],
    record: DecisionRecord,
    names: Sequence[str],
    elsewhere: Iterable[str] = (),
) -> tuple[Feedback | None, dict[str, Any] | None]:
    """(what feedback says of what was known, None where that is nothing; the feedback as it was given, None where all
    of it is about what was known). `elsewhere` are unknown ones that later decisions of its chain show. LookupError
    where it names one that was not shown and has to be."""
    said = {name: value for name, value in form.items() if value is not None}
    unknown = {name: place for place, name in record.unknown}
    if given.form == "none" or (given.form == "clicks" and not given.names):
        return given, None
    told = shown_names(record, names)
    if not told:
        raise LookupError(f"{given.form}: expected a decision that showed something, got one that showed nothing")
    if given.form == "choice":
        return (None, said) if any(name in unknown for name in told[:2]) else (given, None)
    if given.form == "edit":
        return (None, said) if (given.names or told)[0] in unknown else (given, None)
    if not given.names:  # a thumb on all that was shown
        return (given, None) if record.shown else (None, said)
    there = {name for name in elsewhere if name in given.names and name not in names}
    strange = {name for name in given.names if name in unknown} | there
    if given.form not in ("better", "rating", "grade"):
        for name in given.names:
            if name in strange - there and unknown[name] < 0:
                raise LookupError(f"{given.form}: {describe(name)} was not shown")
    kept = [i for i, name in enumerate(given.names) if name not in strange]
    if not kept or not record.shown:
        return None, said
    if not strange:
        return given, None
    values = tuple([given.values[i] for i in kept]) if given.form in ("rating", "grade") else given.values
    done = tuple([given.done[i] for i in kept]) if given.done else ()
    return given._replace(names=tuple([given.names[i] for i in kept]), values=values, done=done), said


def unlearned(feedback: FeedbackRecord) -> str | None:
    """What to say of feedback on what was not known; None where all was."""
    if feedback.said is None:
        return None
    rest = "nothing is learned from it" if feedback.form == "unknown" else "of those nothing is learned"
    return f"some of it is about items that were not on offer when it was decided: {rest}"
