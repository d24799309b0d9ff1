"""Trying another learner next to the one that serves, and letting it serve: the events of that, and their conditions.

What an experiment says so far is computed by `heedful.loop.experiment`."""

from __future__ import annotations

from typing import Any

from heedful.core.validation import check_alpha, check_between, describe
from heedful.loop import records
from heedful.loop.experiment import NotReady, check_can_start, evidence_of, evidence_of_log, look
from heedful.loop.history import History
from heedful.loop.interactions.registry import learner_version
from heedful.loop.log import Event, now
from heedful.loop.pending import PendingEvent
from heedful.loop.projection import Projection
from heedful.loop.serving import ExperimentRecord, PromotionRecord, read_experiment, read_promotion
from heedful.results.answers import Answer
from heedful.results.experiment import Experiment, Promoted


def _learner(history: History, learner: object) -> str:
    return history.interaction.full_spec(records.check_text("learner", learner, 1000).strip())


def start_experiment(
    projection: Projection,
    learner: str,
    share: float = 0.0,
    frozen: bool = False,
    alpha: float = 0.05,
    id: str | None = None,
) -> Answer:
    """Begin an experiment, as `Loop.start_experiment` says."""
    check_between("share", share, 0.0, 1.0)
    check_alpha(alpha)
    if not isinstance(frozen, bool):
        raise ValueError(f"frozen: expected true or false, got {describe(frozen)}")
    event_id = records.new_id() if id is None else records.check_id("id", id)
    with projection.turn:
        projection.catch_up()
        known = projection.log.find("experiment", event_id)
        if known is None:
            check_can_start(projection)
        learner, version = _learner(projection, learner), projection.published.version
        about = ExperimentRecord(
            learner,
            learner_version(projection.candidate(learner).learner, projection.settings),
            projection.manifest.learner,
            float(share),
            max(version, 1) if frozen else 0,  # event 1 is the loop's own
            float(alpha),
        )
        payload = records.encode(about) if known is None else payload_if_repeated(known, about)
        event = Event(0, "experiment", event_id, now(), None, None, version, payload)
        [answer] = projection.submit_in_turn([PendingEvent(event)])
        return answer


def payload_if_repeated(known: Event, about: ExperimentRecord) -> str:
    """Return the payload to submit for an experiment whose id is in the log already, as the event `known`.

    It is the earlier payload if the caller asks for the same experiment, so that the event counts as a duplicate;
    otherwise that of `about`, which is refused."""
    earlier = read_experiment(known.payload)
    same = (earlier.learner, earlier.share, bool(earlier.frozen), earlier.alpha)
    requested = (about.learner, about.share, bool(about.frozen), about.alpha)
    return known.payload if same == requested else records.encode(about)


def stop_experiment(projection: Projection, id: str | None = None) -> Answer:
    """End the experiment that runs, as `Loop.stop_experiment` says."""
    event_id = records.new_id() if id is None else records.check_id("id", id)
    with projection.turn:
        projection.catch_up()
        known, running = projection.log.find("stop", event_id), projection.experiment
        if known is None and running is None:
            raise LookupError("experiment: none is running")
        target = known.target if known is not None else running[0].seq if running is not None else None
        event = Event(0, "stop", event_id, now(), None, target, projection.published.version, "{}")
        [answer] = projection.submit_in_turn([PendingEvent(event)])
        return answer


def find_experiment(history: History, id: str | None = None) -> Experiment:
    """Return what the experiment `id` says so far; if that is None, the one that runs, or else the newest.

    Raise LookupError if there is no such experiment."""
    log = history.log
    if id is None:
        places, running = log.places("experiment"), history.experiment
        event = running[0] if running is not None else log.at(places[-1]) if places else None
    else:
        event = log.find("experiment", records.check_id("experiment", id))
    if event is None:
        reason = "there was none" if id is None else f"{id} is not in the log"
        raise LookupError(f"experiment: {reason}")
    return look(history, event)


def promote(
    projection: Projection,
    learner: str | None,
    force: bool = False,
    by: str = "",
    reason: str = "",
    id: str | None = None,
) -> Promoted:
    """Let another learner serve from here on, as `Loop.promote` says."""
    event_id = records.new_id() if id is None else records.check_id("id", id)
    if not isinstance(force, bool):
        raise ValueError(f"force: expected true or false, got {describe(force)}")
    for name, text in (("by", by), ("reason", reason)):
        records.check_text(name, text, 1000)
    with projection.turn:
        projection.catch_up()
        known = projection.log.find("promote", event_id)
        if learner is not None:
            learner = _learner(projection, learner)
        if known is not None:
            return _promoted_already(projection, known, learner, by, reason)
        serving = projection.promoted
        learner, before, target, evidence, against = _evidence(projection, learner)
        projection.catch_up()  # the evidence may have taken a while
        if projection.promoted != serving:
            raise ValueError(
                f"learner: {projection.manifest.learner} was promoted meanwhile, or a promotion rolled back"
            )
        if learner == before:
            raise ValueError(f"learner: expected another than the one that serves, got {learner}")
        if against and not force:
            raise NotReady(learner, tuple(against))
        version = learner_version(projection.candidate(learner).learner, projection.settings)
        record = PromotionRecord(learner, version, before, evidence, tuple(against), by, reason)
        payload = records.encode(record)
        event = Event(0, "promote", event_id, now(), None, target, projection.published.version, payload)
        [answer] = projection.submit_in_turn([PendingEvent(event)])
        return Promoted(answer, learner, before, evidence, tuple(against))


def _promoted_already(projection: Projection, known: Event, learner: str | None, by: str, reason: str) -> Promoted:
    """Return the answer to a promotion whose id is in the log already, as the event `known`."""
    earlier = read_promotion(known.payload)
    answer = Answer("duplicate", known.id, known.seq, projection.published.version)
    if (learner or earlier.learner, by, reason) != (earlier.learner, earlier.by, earlier.reason):
        answer = projection.reject(known.id, f"promote {known.id} is in the log already, with other content")
    return Promoted(answer, earlier.learner, earlier.before, earlier.evidence, earlier.forced)


def _evidence(history: History, learner: str | None) -> tuple[str, str, int | None, dict[str, Any], list[str]]:
    """Return (the learner to promote, what serves, the sequence number of the experiment in which it was tried, the
    evidence for it, the reasons against it, a sentence each)."""
    running, serving = history.experiment, history.manifest.learner
    if running is not None and learner in (None, running[1].learner) and (learner is None or running[1].share):
        experiment = look(history, running[0])
        against = list(experiment.against_promotion)
        return running[1].learner, serving, running[0].seq, evidence_of(experiment), against
    if learner is None:
        raise ValueError("learner: expected its name, as no experiment is running")
    history.candidate(learner)
    return learner, serving, None, *evidence_of_log(history, learner, serving, 0.05)
