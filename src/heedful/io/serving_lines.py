"""The lines of experiments and promotions: events that say which learner serves a loop, and which is tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.loop import records
from heedful.loop.experiment import check_can_start
from heedful.loop.history import History
from heedful.loop.interactions.registry import learner_version
from heedful.loop.log import Event, Log
from heedful.loop.serving import ExperimentRecord, PromotionRecord, read_experiment, read_promotion
from heedful.loop.trials import payload_if_repeated


def write(event: Event, log: Log) -> dict[str, Any]:
    """Return the line of an experiment, its end or a promotion, which `event` in `log` is, without the time.

    It names the experiment that it is about by its id. Whether the sides are frozen is said without a version, as they
    always are at that of the experiment's start."""
    line: dict[str, Any] = {"kind": event.kind, "id": event.id}
    if event.kind == "experiment":
        experiment = read_experiment(event.payload)
        line |= {name: getattr(experiment, name) for name in ("learner", "learner_version", "against", "share")}
        return line | {"frozen": experiment.frozen > 0, "alpha": experiment.alpha}
    if event.kind == "promote":
        promotion = read_promotion(event.payload)
        line |= {name: getattr(promotion, name) for name in ("learner", "learner_version", "before", "evidence")}
        others = {"forced": list(promotion.forced), "by": promotion.by, "reason": promotion.reason}
        line |= {name: value for name, value in others.items() if value}
    about = None if event.target is None else log.at(event.target)
    return line | ({} if about is None else {"experiment": about.id})


def read(history: History, kind: str, id: str, record: Mapping[str, object]) -> Event:
    """Return the event of the line `record`, whose form was checked, of this `kind` and `id`, without time and version.

    `history` is the log of the loop with its model. Raise ValueError or LookupError if the loop cannot take it: a
    learner does not fit or is one of the user's own that was not named when the loop was opened, or the experiment that
    it is about is not there."""
    if kind == "experiment":
        return _experiment(history, id, record)
    target = None
    if record.get("experiment") is not None:
        named = records.check_id("experiment", record["experiment"])
        about = history.log.find("experiment", named)
        if about is None:
            raise ValueError(f"experiment {named} is not in the log")
        target = about.seq
    if kind == "promote":
        return Event(0, kind, id, 0, None, target, 0, records.encode(_promotion(history, record)))
    running = history.experiment
    if history.log.find(kind, id) is None and (running is None or running[0].seq != target):
        raise ValueError(f"experiment {record['experiment']} is not running")
    return Event(0, kind, id, 0, None, target, 0, "{}")


def _experiment(history: History, id: str, record: Mapping[str, Any]) -> Event:
    logged = history.log.find("experiment", id)
    if logged is None:
        check_can_start(history)
    learner, version = _learner(history, record)
    frozen = max(history.published.version, 1) if record.get("frozen") else 0
    share, alpha = float(record.get("share", 0.0)), float(record.get("alpha", 0.05))
    about = ExperimentRecord(learner, version, record["against"], share, frozen, alpha)
    payload = records.encode(about) if logged is None else payload_if_repeated(logged, about)
    return Event(0, "experiment", id, 0, None, None, 0, payload)


def _promotion(history: History, record: Mapping[str, Any]) -> PromotionRecord:
    learner, version = _learner(history, record)
    history.candidate(record["before"])  # it may be asked again how good it was
    forced, by, reason = tuple(record.get("forced") or ()), record.get("by") or "", record.get("reason") or ""
    return PromotionRecord(learner, version, record["before"], dict(record["evidence"]), forced, by, reason)


def _learner(history: History, record: Mapping[str, Any]) -> tuple[str, str]:
    """Return (the learner in the line `record` with its parameters, the version of its code)."""
    history.check_named(record["learner"])
    learner = history.interaction.full_spec(record["learner"])
    model = history.candidate(learner).learner
    return learner, record.get("learner_version") or learner_version(model, history.settings)
