"""The form of a line of JSON that is an event: every check that needs no loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.core.times import micros_of, parse_time
from heedful.core.validation import check_alpha, check_between, check_count, describe, is_number
from heedful.loop import records
from heedful.loop.interactions.forms import FORMS, Form, parse_feedback
from heedful.loop.log import now
from heedful.loop.style import rule_event

ARMS = ("learned", "control", "sampled", "interleaved", "imported")
_FIELDS = {
    "withdraw": ("id",),
    "decision": (
        *("id", "person", "time", "candidates", "shown", "context", "prior", "standardised", "probability"),
        *("arm", "learner", "seed", "proposal", "deferred", "predicted", "unknown", "rival", "after"),
    ),
    "activate": ("decision", "time"),
    "undo": ("id", "event", "time"),
    "rollback": ("id", "to", "reason", "time"),
    "experiment": ("id", "learner", "learner_version", "against", "share", "frozen", "alpha", "time"),
    "stop": ("id", "experiment", "time"),
    "promote": (
        *("id", "learner", "learner_version", "before", "evidence", "forced", "by", "reason", "experiment", "time"),
    ),
    "style": ("id", "person", "deny", "always", "time"),
}
ROLLBACK_TO = ("feedback", "undo", "rollback", "experiment", "stop", "promote", "style")
"""The kinds of events that a rollback may name as the last one that counts."""
KINDS = (
    *("item", "withdraw", "decision", "activate", "feedback", "undo", "rollback", "experiment", "stop", "promote"),
    "style",
)


def check_line(record: Mapping[str, object], forms: Mapping[str, Form] = FORMS) -> tuple[str, str]:
    """Return (kind, id) of the event in the line `record`. Raise ValueError, naming the field, if no loop could take
    it.

    `forms` are the forms of feedback (clicks, grade, ...) that are allowed, by name. The id of an activation is that of
    its decision; an undo without an id gets one that is made from the id of the feedback (`undo_id`)."""
    kind = record.get("kind")
    if kind not in KINDS:
        raise ValueError(f"kind: expected {', '.join(KINDS)}, got {describe(kind) if 'kind' in record else 'none'}")
    expected = _FIELDS.get(str(kind))
    if expected and (extra := record.keys() - {"kind", *expected}):
        raise ValueError(f"{kind}: expected {', '.join(expected)}, got another field: {describe(min(extra))}")
    if kind != "item" and record.get("time") is not None:
        check_time("time", record["time"])
    if kind == "activate":
        return kind, records.check_id("decision", record.get("decision"))
    if kind == "undo":
        return kind, undo_id(record)
    id = records.check_id("id", record.get("id"))
    if kind in _CHECKS:
        _CHECKS[kind](record)
    elif kind == "feedback":
        records.check_id("decision", record.get("decision"))
        parse_feedback(_form(record), forms)
    return str(kind), id


def undo_id(record: Mapping[str, object]) -> str:
    """Return the id of the undo in the line `record`: its own, otherwise "undo-" and the id of the feedback.

    The latter is cut to the longest id that is allowed.
    """
    event = records.check_id("event", record.get("event"))
    return f"undo-{event}"[: records.LONGEST_ID] if record.get("id") is None else records.check_id("id", record["id"])


def _check_rollback(record: Mapping[str, object]) -> None:
    to = record.get("to")
    if to is not None:
        if not isinstance(to, Mapping) or to.keys() != {"kind", "id"} or to["kind"] not in ROLLBACK_TO:
            expected = f"the kind ({', '.join(ROLLBACK_TO)}) and id of the last event that counts, or null"
            raise ValueError(f"to: expected {expected}, got {describe(to)}")
        records.check_id("to.id", to["id"])
    if record.get("reason") is not None:
        records.check_text("reason", record["reason"], 1000)


def _check_experiment(record: Mapping[str, object]) -> None:
    _check_texts(record, {"learner": 1000, "against": 1000}, {"learner_version": 1000})
    check_between("share", record.get("share", 0.0), 0.0, 1.0)
    check_alpha(record.get("alpha", 0.05))
    if not isinstance(record.get("frozen", False), bool):
        raise ValueError(f"frozen: expected true or false, got {describe(record['frozen'])}")


def _check_stop(record: Mapping[str, object]) -> None:
    records.check_id("experiment", record.get("experiment"))


def _check_promotion(record: Mapping[str, object]) -> None:
    _check_texts(record, {"learner": 1000, "before": 1000}, {"learner_version": 1000, "by": 1000, "reason": 1000})
    evidence, forced = record.get("evidence"), record.get("forced", [])
    if not isinstance(evidence, Mapping) or evidence.get("method") not in ("interleaving", "log"):
        expected = 'an object whose method is "interleaving" or "log"'
        raise ValueError(f"evidence: expected {expected}, got {describe(evidence)}")
    check_alpha(evidence.get("alpha"), "evidence.alpha")
    if not isinstance(forced, list):
        raise ValueError(f"forced: expected a list of sentences, got {describe(forced)}")
    for i, reason in enumerate(forced):
        records.check_text(f"forced[{i}]", reason, 10_000)
    if evidence["method"] == "interleaving" or record.get("experiment") is not None:
        records.check_id("experiment", record.get("experiment"))


def _check_style(record: Mapping[str, object]) -> None:
    rule_event("", record.get("person"), record.get("deny"), record.get("always"), 0, 0)


def _check_texts(record: Mapping[str, object], needed: Mapping[str, int], others: Mapping[str, int]) -> None:
    """Check the texts in `record`, `needed` ones and `others` if they are there, by their greatest lengths."""
    for name, most in {**needed, **others}.items():
        if name in needed or record.get(name) is not None:
            records.check_text(name, record.get(name), most)


def _form(record: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("kind", "id", "decision", "time")}


def _check_decision(record: Mapping[str, object]) -> None:
    if record.get("person") is not None:
        records.check_id("person", record["person"])
    candidates, strange = record.get("candidates"), unknown(record.get("unknown"))
    nothing = candidates == [] and (bool(strange) or record.get("shown") == [])
    shown = records.distinct("shown", record.get("shown"), least=0 if strange or nothing else 1)
    if not isinstance(candidates, list) or not (candidates or nothing):
        raise ValueError(f"candidates: expected a list of names or of objects, got {describe(candidates)}")
    if candidates and not isinstance(candidates[0], Mapping):
        within(shown, records.distinct("candidates", candidates))
    probability = record.get("probability")
    if probability is not None and not 0.0 < records.check_number("probability", probability) <= 1.0:
        raise ValueError(f"probability: expected a number above 0, up to 1, or null, got {describe(probability)}")
    if record.get("arm") not in (None, *ARMS):
        raise ValueError(f"arm: expected {', '.join(ARMS)}, got {describe(record['arm'])}")
    if record.get("learner") is not None:
        records.check_text("learner", record["learner"], 1000)
    if record.get("seed") is not None:
        check_count("seed", record["seed"], least=0, most=2**63 - 1)
    for name in ("context", "proposal"):
        if record.get(name) is not None and not isinstance(record[name], Mapping):
            raise ValueError(f"{name}: expected an object, got {describe(record[name])}")
    for name in ("standardised", "deferred"):
        if not isinstance(record.get(name) or False, bool):
            raise ValueError(f"{name}: expected true or false, got {describe(record[name])}")
    if record.get("standardised"):
        standardised_scores(record, len(candidates))
    predictions_of(record, len(shown))
    if record.get("after") is not None:
        records.check_id("after", record["after"])
    if record.get("rival") is not None:
        records.distinct("rival", record["rival"], least=0)
    proposal: Any = record.get("proposal") or {}
    swap = proposal.get("swap")
    if swap is not None and records.check_number("proposal.swap", swap) != 0.0 and not 0.001 <= swap <= 0.5:
        raise ValueError(f"proposal.swap: expected 0, or a number from 0.001 to 0.5, got {describe(swap)}")
    if record.get("arm") == "interleaved" and shown:
        _check_draft(record.get("proposal"), len(shown))


_CHECKS = {
    "rollback": _check_rollback,
    "decision": _check_decision,
    "experiment": _check_experiment,
    "stop": _check_stop,
    "promote": _check_promotion,
    "style": _check_style,
}


def _check_draft(proposal: object, n: int) -> None:
    """Raise ValueError unless `proposal` is what a loop keeps of a list of `n` items that two learners drafted."""
    expected = f"what is kept of a draft of {n}: experiment, teams, coins, ranks and places"
    if not isinstance(proposal, Mapping):
        raise ValueError(f"proposal: expected {expected}, got {describe(proposal)}")
    records.check_id("proposal.experiment", proposal.get("experiment"))
    sides = proposal.get("ranks")
    teams, coins, places = (proposal.get(name) for name in ("teams", "coins", "places"))
    ranks = sides if isinstance(sides, list) and len(sides) == 2 else [None, None]
    for name, values, count, least, most in (
        ("teams", teams, n, 0, 1),
        ("coins", coins, None, 0, 1),
        ("ranks[0]", ranks[0], n, 1, records.MOST_CANDIDATES),
        ("ranks[1]", ranks[1], n, 1, records.MOST_CANDIDATES),
    ):
        if not isinstance(values, list) or len(values) != (len(values) if count is None else count):
            raise ValueError(f"proposal.{name}: expected {expected}, got {describe(values)}")
        for value in values:
            check_count(f"proposal.{name}", value, least=least, most=most)
    if proposal.get("opening") is not None:
        check_count("proposal.opening", proposal["opening"], least=0, most=1)
    if not isinstance(places, list) or len(places) != n:
        raise ValueError(f"proposal.places: expected {expected}, got {describe(places)}")
    for place in places:
        if not 0.0 < records.check_number("proposal.places", place) <= 1.0:
            raise ValueError(f"proposal.places: expected numbers above 0, up to 1, got {describe(place)}")


def unknown(positions: object) -> tuple[tuple[int, str], ...]:
    """Return the candidates of a decision that were not on offer, as (position, name) pairs, the form in which a log
    keeps them.

    `positions` are the line's {name: position in the list shown, from 0, or null}, or None; null becomes -1, not shown.
    Raise ValueError if it is something else, or if two names have one position.
    """
    if positions is not None and not isinstance(positions, Mapping):
        raise ValueError(f"unknown: expected the place of each by name, or null, got {describe(positions)}")
    named = []
    for name, place in (positions or {}).items():
        if place is not None and (not is_number(place, int) or not 0 <= place < records.MOST_CANDIDATES):
            raise ValueError(
                f"unknown[{describe(name)}]: expected its place, a whole number from 0, got {describe(place)}"
            )
        named.append((-1 if place is None else int(place), records.check_id("unknown", name)))
    places = [place for place, _ in named if place >= 0]
    if len(set(places)) < len(places):
        raise ValueError("unknown: expected each in a place of its own, got two in one")
    return tuple(named)


def within(shown: Sequence[str], names: Sequence[str]) -> None:
    """Raise ValueError if one of the items `shown` is not among the candidates' `names`."""
    if strange := set(shown) - set(names):
        raise ValueError(f"shown: expected candidates, got {describe(min(strange))}")


def standardised_scores(record: Mapping[str, object], m: int) -> list[float]:
    """Return the scores `prior` in `record`, the line of a decision, which were standardised when it was exported.

    There is one for each of its `m` candidates. They are taken as they are, since to standardise them again would
    change their last bits. Raise ValueError unless `prior` is a list of m numbers.
    """
    prior = record.get("prior")
    if not isinstance(prior, list) or len(prior) != m:
        raise ValueError(f"prior: expected {m} scores, one for each candidate, got {describe(prior)}")
    return [records.check_number(f"prior[{j}]", score) for j, score in enumerate(prior)]


def predictions_of(record: Mapping[str, object], n: int) -> tuple[float, ...] | None:
    """Return what the line `record` says was predicted of each of the n items shown (grade, rating, ...); None if
    nothing.

    Raise ValueError unless it is a list of n numbers.
    """
    predictions = record.get("predicted")
    if predictions is None:
        return None
    if not isinstance(predictions, list) or len(predictions) != n:
        raise ValueError(f"predicted: expected {n} of them, one for each that was shown, got {describe(predictions)}")
    numbers = [records.check_number(f"predicted[{j}]", number) for j, number in enumerate(predictions)]
    return tuple(
        [prediction if is_number(prediction, int) else number for prediction, number in zip(predictions, numbers)]
    )


def check_time(name: str, value: object) -> int:
    """Return `value`, an ISO 8601 text (UTC if it has no offset), as microseconds since 1970 UTC.

    Raise ValueError, beginning with the field's `name`, if it is no such text.
    """
    try:
        return micros_of(parse_time(value))
    except ValueError:
        raise ValueError(f"{name}: expected a time such as 2026-01-31T12:00:00Z, got {describe(value)}") from None


def time_of(record: Mapping[str, object]) -> int:
    """Return the time of the line `record` in microseconds since 1970 UTC; the current time if it has none.

    Raise ValueError if it is no time.
    """
    return now() if record.get("time") is None else check_time("time", record["time"])
