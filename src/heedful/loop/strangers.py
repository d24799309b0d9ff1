"""Candidates that are not on offer: how a list with such items in it is made, logged and learned from.

A request may name items that the loop does not know (unknown items), an item twice, none at all, or be the hits of a
search engine. The known candidates are ranked. An unknown one keeps the place that the caller's score gives it, or
comes last if there is no score; the known ones fill the other places in the model's order. A control list shows all in
the caller's own order. So only the order of the known ones is random, and the probability of a list is that of the
known ones in it.

In the log a decision is one among the known candidates, so that learning from it is the same as if the others had not
been named; `DecisionRecord.unknown` says where in the list they stood. Feedback on them is kept as it was given
(`FeedbackRecord.said`), and what it says of known candidates is learned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from heedful.core.validation import describe
from heedful.data.comparisons import join_names
from heedful.data.hits import HIT
from heedful.evaluation.answers import Answer, Item
from heedful.loop import records
from heedful.loop.interactions.forms import CHOICES, Form
from heedful.loop.records import DecisionRecord, Feedback, FeedbackRecord

_HIT = {"_id", "_score", "_source", "_index", "_type", "_version", "_seq_no", "_primary_term", "_routing", "_ignored"}
_HIT |= {"_explanation", "_node", "_shard", "_nested", "fields", "highlight", "inner_hits", "matched_queries", "sort"}


class NotOnOffer(LookupError):
    """A candidate is not on offer in a request that may name only what is."""


class Strangers(NamedTuple):
    """The candidates of a request that are not on offer (unknown), next to the m candidates that are (known).

    `learned` and `own` are orders of all candidates by number: the known ones are 0 to m - 1, the unknown ones m, m +
    1, ..."""

    names: tuple[str, ...]
    """the names of the unknown candidates; number m + j is names[j]"""
    learned: tuple[int, ...] = ()
    """the numbers of all candidates in an order that gives the unknown ones their places in lists that the model
    ranks"""
    own: tuple[int, ...] = ()
    """the numbers of all candidates in the caller's own order, which control lists show"""

    def places(self, m: int, size: int, own: bool, left: Collection[int] | None = None) -> tuple[int, ...]:
        """Return for each of the first `size` places of a list which unknown candidate (one not on offer) stands there:
        its index in `names`, or -1 for a candidate on offer.

        `m` is the number of candidates on offer; `own` says whether the list is in the caller's own order (a control
        list) or ranked by the model. `left` are the indices of those on offer that may be shown, None for all."""
        base = self.own if own else self.learned
        among = [j for j in base if left is None or j >= m or j in left]
        return tuple([j - m if j >= m else -1 for j in among[:size]])

    def without(self, gone: Collection[str], kept: Sequence[int], m: int) -> Strangers:
        """Return the unknown candidates without those whose names are in `gone`, next to those of the `m` candidates on
        offer that are `kept` (indices)."""
        others = [j for j, name in enumerate(self.names) if name not in gone]
        number = {j: i for i, j in enumerate(kept)} | {m + j: len(kept) + i for i, j in enumerate(others)}
        orders = [tuple([number[j] for j in order if j in number]) for order in (self.learned, self.own)]
        return Strangers(tuple([self.names[j] for j in others]), *orders)

    def to_record(self, places: Sequence[int]) -> tuple[tuple[int, str], ...]:
        """Return (place in the list, name) of each candidate that is not on offer, as the log keeps it; -1 if it is not
        shown.

        `places` is what the method `places` returned for the list."""
        at = {j: place for place, j in enumerate(places) if j >= 0}
        return tuple([(at.get(j, -1), name) for j, name in enumerate(self.names)])


def around(shown: Sequence[object], record: DecisionRecord, unknown: Callable[[str], object]) -> list[Any]:
    """Return the values of all items that a decision shows, best first: those of known items in `shown`, those of
    others inserted.

    An item is unknown if it was not on offer. `shown` has one value for each known item shown, in that order; `record`
    says where the unknown ones stood, and `unknown(name)` returns the value of one."""
    found = list(shown)
    for place, name in sorted(record.unknown):
        if place >= 0:
            found.insert(place, unknown(name))
    return found


def shown_names(record: DecisionRecord, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the items that the decision `record` shows, best first, including those that were not on
    offer.

    `names` are those of its candidates that were on offer, to which the indices in `record` refer."""
    known = [names[j] for j in record.shown]
    return tuple(around(known, record, str) if record.unknown else known)


def not_shown(form: str, name: str, shown: Sequence[str]) -> LookupError:
    """Return the error for feedback of the form `form` about the item `name`, which is not among the names `shown`."""
    expected = f"expected items that were shown ({join_names(shown) or 'none'})"
    return LookupError(f"{_field(form)}: {expected}, got {describe(name)}; answer the decision that showed it")


def not_asked_about(form: str, name: str, candidates: Sequence[str]) -> LookupError:
    """Return the error for feedback of the form `form` about the item `name`, which is not among the names
    `candidates` of the decision."""
    expected = f"expected candidates of the decision ({join_names(candidates) or 'none'})"
    return LookupError(f"{_field(form)}: {expected}, got {describe(name)}")


def _field(form: str) -> str:
    """Return the JSON field in which feedback of the form `form` names items."""
    return "item" if form in ("thumb", "reward", "action", "edit") else form


# ---------------------------------------------------------------------------- candidates


def split_unknown(
    names: Sequence[str], candidates: Sequence[Any], prior: Any, known: Callable[[str], bool]
) -> tuple[list[Any], Any, Strangers] | None:
    """Split the candidates of a request into (those on offer, their scores, the others); a name that comes twice counts
    once.

    `names` are those of `candidates`, `prior` the caller's scores by name or in their order, `known(name)` says whether
    an item is on offer. Return None if all are and each comes once. Raise ValueError if `prior` does not fit the
    candidates."""
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


def _heights(scores: Sequence[object]) -> list[float]:
    """Return the caller's scores of all candidates, divided by the largest in size; None is replaced by their mean."""
    numbers = [None if score is None else records.check_number("prior", score) for score in scores]
    there = [each for each in numbers if each is not None]
    largest = max(map(abs, there), default=0.0) or 1.0
    mean = sum(each / largest for each in there) / max(len(there), 1)
    return [mean if each is None else each / largest for each in numbers]


def from_hits(
    candidates: Sequence[Any], prior: Any, identifier: str, on_offer: Collection[str], query: Collection[str] = ()
) -> tuple[list[Any], Any]:
    """Return (candidates, prior) in place of hits of a search engine, {"_id": ..., "_score": ..., "_source": {...}}
    each.

    The candidates are the ids, as names of items, if any of them is in `on_offer` or a hit has no `_source`; otherwise
    the attributes in `_source`, with the id under `identifier`. If the loop has query features, `query` are their
    names, and the candidates are mappings of the id and these features, out of `_source` and `fields`. The prior is the
    one given or, if that is None, the scores by id. Raise ValueError, naming the field, for a malformed hit."""
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
    """Return the values that a hit has for `names` in `_source` or `fields`; a list of one value in `fields` stands for
    the value."""
    fields = hit.get("fields")
    computed = {name: value for name, value in fields.items() if name in names} if isinstance(fields, Mapping) else {}
    single = {name: v[0] if isinstance(v, list) and len(v) == 1 else v for name, v in computed.items()}
    return {name: value for name, value in (hit.get("_source") or {}).items() if name in names} | single


# ---------------------------------------------------------------------------- feedback


def about_known(
    given: Feedback,
    form: Form,
    fields: Mapping[str, object],
    record: DecisionRecord,
    names: Sequence[str],
    elsewhere: Iterable[str] = (),
) -> tuple[Feedback | None, dict[str, Any] | None]:
    """Split feedback that names items not on offer (unknown) into the part that is learned and the part that is only
    kept.

    Return (the part of `given` about items on offer, None if there is none; `fields`, None if all of it is about items
    on offer). `given` is the checked feedback of the form `form`, `fields` its JSON fields as they came, `record` the
    decision that it answers, `names` those of its candidates on offer; `elsewhere` are unknown items that later
    decisions showed. Raise LookupError if it names an item that was not shown and its form does not allow that.
    """
    unknown = {name: place for place, name in record.unknown}
    there = {name for name in elsewhere if name not in names}
    told = shown_names(record, names)
    if form.needs_items(given) and not told:
        raise LookupError(f"{given.form}: expected a decision that showed something, got one that showed nothing")
    if not form.names_unshown:
        for name in given.names:
            if unknown.get(name, 0) < 0 and name not in there:
                raise not_shown(given.form, name, told)
    part = form.known_part(given, told, lambda name: name not in unknown and name not in there)
    return part, None if part is given else {name: value for name, value in fields.items() if value is not None}


def why_nothing_learned(feedback: FeedbackRecord) -> str | None:
    """Return a remark that `feedback` names items that were not on offer, so that nothing was learned about them; else
    None."""
    if feedback.said is None:
        return None
    rest = "nothing is learned from it" if feedback.form == "unknown" else "of those nothing is learned"
    return f"some of it is about items that were not on offer when it was decided: {rest}"


def answer_by_name(said: Mapping[str, Any], shown: Sequence[Item], names: Sequence[str]) -> Answer:
    """Return which items feedback preferred of a list in which some were not on offer.

    `said` is the feedback as it was given. Items on offer are indices into `names`, others are names, as in `shown`."""
    number, values = {name: j for j, name in enumerate(names)}, said.get("rating") or said.get("grade")
    best: Any = said.get("clicks") or said.get("better")
    if values:
        return Answer({number.get(name, name): value for name, value in values.items()})
    if said.get("choice") in ("first", "second"):
        return Answer(best=(shown[CHOICES[said["choice"]]],))
    if not best:
        return Answer()
    return Answer(best=tuple([number.get(name, name) for name in ([best] if isinstance(best, str) else best)]))
