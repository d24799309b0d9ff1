"""From a request to a decision: what is asked, what the published model makes of it, what is said of it.

`asked` reads a request, `proposed` makes the event of its decision, `decided` tells it once it is in the log. Nothing
here writes: whoever has a thread to wait in submits the event and waits (`Loop.decide`), whoever serves many at once
submits many.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.doors import describe
from heedful.loop import wire
from heedful.loop.grading import GradingModel
from heedful.loop.ledger import Draft, Ledger, Published
from heedful.loop.log import Event, now
from heedful.loop.model import Model, Person, order_shown
from heedful.loop.packing import Known, pack
from heedful.loop.pairing import Pairing
from heedful.loop.request import Request
from heedful.loop.slating import Slating, kept_only
from heedful.loop.wire import Answer, Decision, DecisionRecord


class Asked(NamedTuple):
    """A request for a decision that has come through the door."""

    id: str
    request: Request
    person: str | None
    deferred: bool
    repeats: bool | None = None
    """in a loop of ratings, whether what the person has consumed may be shown, in a loop of choices, a pair that was
    asked; None as the loop's settings say"""


class Deciding:
    """What a loop needs to decide."""

    def __init__(self, ledger: Ledger) -> None:
        """From what `ledger` publishes."""
        self.ledger = ledger
        self.settings = ledger.settings
        choosing = ledger.choices is not None
        self._slating = Pairing(ledger) if choosing else None if ledger.ratings is None else Slating(ledger)
        self._chances = [getattr(ledger.learner, name, None) for name in ("depth", "chance", "order")]
        """what the learner says of its draws, where it does"""

    # ------------------------------------------------------------------------ what is asked

    def asked(
        self,
        candidates: Any = None,
        *,
        person: str | None = None,
        context: Mapping[str, Any] | None = None,
        prior: Mapping[str, float] | Sequence[float] | None = None,
        show: int | None = None,
        id: str | None = None,
        deferred: bool = False,
        repeats: bool | None = None,
    ) -> Asked | Decision:
        """A request that was read; or the decision that was made under its id before.

        ValueError, by name, on bad input; LookupError for an item that is not on offer here: another process may have
        put it there, `Ledger.catch_up` looks."""
        person = None if person is None else wire.wanted_id("person", person)
        if not isinstance(deferred, bool):
            raise ValueError(f"deferred: wanted true or false, got {describe(deferred)}")
        if repeats is not None:
            self._wanted_repeats(repeats)
        if id is not None and (known := self.ledger.known(id := wire.wanted_id("id", id))) is not None:
            return self._repeated(id, known, candidates, person)
        request = self.parsed(candidates, context, prior, show)
        return Asked(wire.new_id() if id is None else id, request, person, deferred, repeats)

    def _wanted_repeats(self, repeats: Any) -> None:
        if self._slating is None:
            raise ValueError("repeats: wanted it in a loop of ratings or of choices alone, got it in another")
        if not isinstance(repeats, bool):
            raise ValueError(f"repeats: wanted true or false, got {describe(repeats)}")

    def parsed(self, candidates: Any, context: Any, prior: Any, show: Any) -> Request:
        """Candidates and what is known of them, as features."""
        if show is not None and self.settings.k == 1 and show != 1 and self._slating is None:
            raise ValueError(f"show: wanted 1, as a loop with k = 1 shows a single item, got {describe(show)}")
        return self.ledger.requests.parsed(candidates, context, prior, show)

    def _repeated(self, id: str, known: Known, candidates: Any, person: str | None) -> Decision:
        """The decision that was made under this id before; whatever became of the model and the items since."""
        names = self.ledger.requests.asked(candidates)
        if (names is not None and not _same(names, known)) or person != known.person:
            other = "was shown to somebody else" if person != known.person else "has other candidates"
            raise ValueError(f"id: wanted a new one, got {describe(id)}, which {other}")
        return told(id, known)

    # ------------------------------------------------------------------------ what is proposed

    def proposed(self, asked: Asked) -> Draft:
        """The event of a decision, from the state published at this moment."""
        id, request, person, deferred, repeats = asked
        seed = self.settings.seed
        if self._slating is not None:
            return self._slating.proposed(id, request, person, deferred, repeats, keyed(seed, id))
        state, own = self.ledger.reading(person)
        rng = keyed(seed, id)
        control = rng.random() < self.settings.control
        size = 1 if self.settings.k == 1 else min(request.show or len(request.x), len(request.x))
        order = (-request.x[:, -1]).argsort(kind="stable")[:size] if request.prior else np.arange(size)
        model: Model | GradingModel = self.ledger.model  # type: ignore[assignment]  # others slate
        try:
            y = model.propose(state.shared, own, request.x, rng)
            shown = order if control else order_shown(y)[:size]
            probability = self._probability(model, y, request, shown, order, state, own)
            grades = self._grades(request, shown, state, own)
        except Exception as error:  # what a learner raises is nobody's bad input
            told = f"{type(self.ledger.learner).__name__} cannot propose: {type(error).__name__}: {error}"
            raise RuntimeError(told) from error
        places, of = tuple(shown.tolist()), 0
        if request.names and not self.settings.keep_unshown and size < len(request.x):
            of, kept = len(request.x), sorted(places)  # in the caller's order: sums come out the same, bit for bit
            request, places = request.only(kept), tuple(map({j: i for i, j in enumerate(kept)}.__getitem__, places))
        record = DecisionRecord(
            shown=places,
            items=request.items,
            catalogue=request.catalogue,
            names=request.names,
            prior=request.prior,
            arm="control" if control else "learned",
            learner=self.ledger.named,
            seed=seed,
            probability=probability,
            proposal={} if control else model.described(y),
            context=request.context,
            attributes=request.attributes,
            of=of,
            deferred=deferred,
            grades=grades,
        )
        when, numbers, version = now(), request.numbers(), state.version
        known = Known(id, 0, when, person, record, numbers, request.called, version, request.rows)
        event = Event(0, "decision", id, when, person, None, version, *pack(record, numbers))
        return Draft(event, known, again=True)

    def _probability(
        self,
        model: Model | GradingModel,
        y: Any,
        request: Request,
        shown: Any,
        order: Any,
        state: Published,
        own: Person | None,
    ) -> float | None:
        """Of showing this list: by the control, by the learner, with its swaps. None where the learner cannot say."""
        control, [depth, chance_of, undrawn] = self.settings.control, self._chances
        if not isinstance(y, tuple):
            chance = float(np.array_equal(shown, y[: shown.size]))
        elif shown is not order and depth is not None and shown.size >= depth(y[0].size):
            chance = y.probability  # type: ignore[attr-defined]  # of all that was drawn: the proposal knows it
        elif chance_of is not None:
            learned = model.order(state.shared, own, request.x) if undrawn is None else undrawn(y)
            chance = float(chance_of(learned, shown))
        else:
            return None
        return control * float(shown is order or shown.tolist() == order.tolist()) + (1.0 - control) * chance

    def _grades(self, request: Request, shown: Any, state: Published, own: Person | None) -> tuple[int, ...]:
        """What is predicted of each that is shown, in a grading loop; whichever arm shows it."""
        model = self.ledger.model
        if not isinstance(model, GradingModel):
            return ()
        return tuple(model.grades(state.shared, own, request.x[shown]).tolist())

    def recorded(
        self,
        candidates: Any,
        shown: Any,
        *,
        id: Any,
        person: Any = None,
        context: Any = None,
        prior: Any = None,
        probability: Any = None,
        time: Any = None,
    ) -> Draft:
        """The event of what somebody else decided. ValueError, by name; LookupError for an item that is not on offer
        here."""
        request = self.parsed(candidates, context, prior, None)
        names = wire.distinct("shown", shown)
        places = {name: j for j, name in enumerate(request.called)}
        for name in names:
            if name not in places:
                raise ValueError(f"shown: wanted candidates, got {describe(name)}")
        if probability is not None and not 0.0 < wire.wanted_number("probability", probability) <= 1.0:
            raise ValueError(f"probability: wanted a number above 0, up to 1, got {probability}")
        if self._slating is not None:  # what was not shown is not kept
            request, of = kept_only(request, [places[name] for name in names]), len(request.called)
            places = {name: j for j, name in enumerate(names)}
        else:
            of = 0
        record = DecisionRecord(
            shown=tuple([places[name] for name in names]),
            items=request.items,
            catalogue=request.catalogue,
            names=request.names,
            prior=request.prior,
            arm="imported",
            probability=None if probability is None else float(probability),
            context=request.context,
            attributes=request.attributes,
            of=of,
        )
        person = None if person is None else wire.wanted_id("person", person)
        when = now() if time is None else wire.wanted_time("time", time)
        version, numbers, id = self.ledger.published.version, request.numbers(), wire.wanted_id("id", id)
        known = Known(id, 0, when, person, record, numbers, request.called, version, request.rows)
        return Draft(Event(0, "decision", id, when, person, None, version, *pack(record, numbers)), known)

    # ------------------------------------------------------------------------ what is said

    def decided(self, draft: Draft, answer: Answer) -> Decision:
        """The decision, now that it is in the log: its own, or the one that had its id before. LookupError where it was
        refused or forgotten; ValueError where its id is another's."""
        event = draft.event
        if answer.status == "rejected":
            raise LookupError(f"id: wanted a new one: {answer.reason}")
        if answer.status == "applied" and draft.decision is not None and answer.seq is not None:
            return told(event.id, draft.decision, answer.seq)
        known = self.ledger.known(event.id)
        if known is None:
            raise LookupError(f"id: wanted a new one: decision {event.id} was forgotten")
        ours = self.ledger.decision(event).record
        imported = known.record.arm == "imported" and known.record != ours
        names = draft.decision.names if draft.decision is not None else ()
        whole = known.record.of == 0
        if draft.decision is not None and draft.decision.record.arm == "imported":  # what was shown is what is told
            imported = imported or told(event.id, known).shown != told(event.id, draft.decision).shown
        if (whole and names != known.names) or known.person != event.subject or imported:
            raise ValueError(f"id: wanted a new one, got {describe(event.id)}, which was used for another decision")
        return told(event.id, known)


def _same(names: tuple[str, ...], known: Known) -> bool:
    """Whether these were the candidates of a decision, as far as it kept them."""
    of = known.record.of
    return len(names) == of and set(known.names) <= set(names) if of else names == known.names


def told(id: str, known: Known, seq: int | None = None) -> Decision:
    """A decision as its caller hears of it; `seq` where it was written just now."""
    record, names = known.record, known.names
    shown = tuple([names[j] for j in record.shown])
    at = known.seq if seq is None else seq
    told = record.grades or None, record.ratings or None, record.chances or None
    return Decision(id, shown, record.probability, known.version, record.arm, at, *told)


def keyed(seed: int, id: str) -> np.random.Generator:
    """The generator of one decision: keyed by its id, so that decisions nobody answers leave no trace. It is this
    thread's own, until its next decision."""
    key = np.frombuffer(hashlib.blake2b(f"{seed}\0{id}".encode(), digest_size=16).digest(), "<u8")
    if (generator := getattr(_generators, "own", None)) is None:
        made: np.random.Generator = np.random.Generator(np.random.Philox(key=key))
        _generators.own = made
        return made
    # As good as a new one, in a tenth of the time.
    generator.bit_generator.state = {"state": {"counter": _ZEROS, "key": key}, **_FRESH}
    return generator  # type: ignore[no-any-return]


_generators = threading.local()
_ZEROS = np.zeros(4, np.uint64)
_FRESH = {"bit_generator": "Philox", "buffer": _ZEROS, "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
