"""The methods of a remote loop about feedback, items and the model, with the arguments of `heedful.Loop`.

They are written once for both clients: see `heedful.client.sync_async`. The file is long because each has a docstring
of its own: it is what users see."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy.typing as npt

from heedful.client import messages
from heedful.client.decide import DecisionOperations, Time
from heedful.client.decide_request import features_of
from heedful.client.fallback import Decision, Prior
from heedful.client.messages import MSGPACK, Call, answer_of
from heedful.client.operations import MOST, SIZE, id_of
from heedful.client.sync_async import Steps, either
from heedful.core.ids import new_id
from heedful.core.validation import list_of
from heedful.data.frames import Frame, rows_in
from heedful.results.about import About, Items, Weights, Withdrawn
from heedful.results.answers import Answer, Forgotten, PersonEvents, Put, Ranking, RolledBack
from heedful.results.board import Board
from heedful.results.evaluation import Evaluation
from heedful.results.experiment import Experiment, PlannedExperiment, Promoted, Promotion, Promotions
from heedful.results.explanation import Why
from heedful.results.health import Health
from heedful.results.report import Report
from heedful.results.style import Style


class FeedbackOperations(DecisionOperations):
    """The methods of a loop on a server about feedback: sending it, undoing it, taking the model back to an earlier
    version, forgetting a person."""

    @either
    def feedback(
        self,
        /,
        decision: str | Decision | Mapping[str, object],
        *,
        id: str | None = None,
        time: Time = None,
        **form: object,
    ) -> Steps[Answer]:
        """Learn from what a person answered to a decision; return what became of it.

        `form` is one form of feedback with its fields, such as clicks=["b"] (docs/feedback.md); `decision` is a
        decision or its id, or the whole event as a mapping. `id` is the event's id, `time` when it was given
        (microseconds since 1970 or ISO 8601; None: now). It is sent again for up to `patience` seconds under the same
        id, and counts once. An answer with status "rejected" says why in `reason`. Raise TimeoutError or
        ConnectionError if it is not known whether the server has it; the message has the id with which to send it
        again."""
        if isinstance(decision, Mapping):  # the event as one object, as in the JSON lines
            fields = {"id": id, "time": time, **decision, **form}
        else:
            fields = {**form, "decision": decision, "id": id, "time": time}
        event = _event(fields)
        trouble = yield from self._tell_first(fields)
        try:
            reply = yield from self._ask(Call("POST", self._path("feedback"), *messages.short(event)))
        except (TimeoutError, ConnectionError) as error:
            message = f"{error}; it may have arrived: send it again with id={event['id']!r}, and it counts once"
            raise type(error)(message) from None
        return _because(answer_of(reply, event["id"]), trouble)

    @either
    def feedback_many(self, events: Iterable[Mapping[str, object]]) -> Steps[list[Answer]]:
        """Learn from many events, {"decision": ..., "id": ..., "clicks": [...]} each; return their answers in order.

        A thousand go into one request. An event that is no feedback is answered with "rejected" and the reason; the
        others are learned. Give events ids of your own if you may have to send them again."""
        sent: list[object] = []
        troubles: list[str] = []
        for event in list_of("events", events, "objects"):
            is_object = isinstance(event, Mapping)
            troubles.append((yield from self._tell_first(event)) if is_object else "")
            sent.append(_event(event) if is_object else event)
        answers: list[Answer] = []
        for some, content in messages.batches(sent, MOST, SIZE):
            reply = yield from self._ask(Call("POST", self._path("feedback"), content, MSGPACK))
            answers += messages.answers_of(reply, len(some))
        return [_because(answer, trouble) for answer, trouble in zip(answers, troubles)]

    def _tell_first(self, event: Mapping[str, object]) -> Steps[str]:
        """Report to the server what the fallbacks showed that `event` answers, before the event is sent; return why
        that failed, "" if it did not."""
        chain = event.get("chain")
        for decision in (event.get("decision"), *(chain if isinstance(chain, list | tuple) else ())):
            untold = self._untold.find(self.name, decision)
            if untold is None or untold.deferred:  # that one was not shown before it is activated
                continue
            if untold.telling is None:
                return "it fell back, and showed nothing"
            try:
                yield from self._tell(self.name, untold, untold.telling)
            except (ValueError, LookupError) as error:
                return f"it fell back, and what it showed cannot be told now: {error}"
        return ""

    @either
    def undo(self, event: str | Answer, *, id: str | None = None) -> Steps[Answer]:
        """Take one piece of feedback back, given its answer or event id: the model becomes the one that never saw it.

        `id` is the id of this undo; return what became of it."""
        target = event.event if isinstance(event, Answer) else event
        fields = messages.present_fields(event=target, id=id)
        return (yield from self._post(id or f"undo-{target}", fields, "undo"))

    @either
    def rollback(self, to: int, *, id: str | None = None, reason: str | None = None) -> Steps[RolledBack]:
        """Take the model back to its version `to`: feedback and undos after it no longer count, but stay in the log.

        `id` is the id of this event, `reason` a text that is logged with it."""
        event = id or new_id()
        call = Call(
            "POST", self._path("rollback"), messages.body(messages.present_fields(to=to, id=event, reason=reason))
        )
        return messages.read_as((yield from self._ask(call)), RolledBack)

    @either
    def events_of(self, person: str) -> Steps[PersonEvents]:
        """Return what the loop has about a person, as JSON lines: what `forget` would erase; and names spelt alike."""
        return (yield from self._get(PersonEvents, "people", str(person), long=True))

    @either
    def forget(self, person: str) -> Steps[Forgotten]:
        """Erase a person: every decision made for them and every answer to it; return how much was erased.

        Decisions that this client made for them while the server did not answer, and did not report yet, are
        dropped."""
        self._untold.forget(self.name, str(person))
        call = Call("POST", self._path("forget"), messages.body({"person": str(person)}))
        return messages.read_as((yield from self._ask(call, repeat=False, long=True)), Forgotten)


class LoopOperations(FeedbackOperations):
    """All methods of a loop on a server, of `RemoteLoop` and `AsyncRemoteLoop` alike. Those about feedback and
    decisions are inherited; here are those about items, evaluation, experiments and the model."""

    @either
    def put_items(self, items: Iterable[Mapping[str, object]] | Frame) -> Steps[Put]:
        """Put items (rows with attributes) on offer, new or changed; return how many were put, and which of
        them had other attributes before.

        A thousand go into one request. If one cannot be encoded, none of its request is put; those of earlier requests
        stay."""
        put, changed = 0, dict[str, None]()
        for _, content in messages.batches(list_of("items", rows_in("items", items), "objects"), MOST, SIZE):
            reply = yield from self._ask(Call("PUT", self._path("items"), content, MSGPACK), long=True)
            made = messages.read_as(reply, Put)
            put += made.put
            changed |= dict.fromkeys(made.changed)
        return Put(put, tuple(changed))

    @either
    def withdraw(self, name: str) -> Steps[bool]:
        """Take the item `name` off offer; return whether it was on offer."""
        reply = yield from self._ask(Call("DELETE", self._path("items", str(name))), repeat=False)
        return messages.read_as(reply, Withdrawn).withdrawn

    @either
    def items(self) -> Steps[list[str]]:
        """Return the names of all items on offer."""
        names: dict[str, None] = {}
        start, total = 0, 1
        while start < total:
            page = yield from self._get(Items, "items", start=start, limit=MOST)
            names.update(dict.fromkeys(page.items))
            start, total = start + max(len(page.items), 1), page.total
        return list(names)

    @either
    def about(self) -> Steps[About]:
        """Return the server's description of the loop: learner, version, features, settings, numbers of events."""
        return (yield from self._get(About))

    @either
    def rank(
        self,
        candidates: Sequence[object] | None = None,
        *,
        features: npt.ArrayLike | None = None,
        person: str | None = None,
        context: Mapping[str, object] | None = None,
        prior: Prior = None,
        strict: bool | None = None,
    ) -> Steps[tuple[str, ...]]:
        """Return the names of all candidates, best first by the current model; nothing is logged.

        It is the order that `decide` shows if it neither draws at random nor shows the caller's own order for
        comparison. The arguments are those of `decide`. There is no fallback, so that an offline evaluation never gets
        the caller's own order."""
        fields = messages.present_fields(person=person, context=context, prior=prior, strict=strict)
        if features is not None:
            rows = features_of(features, candidates)
            fields["candidates"] = [{"id": str(j), "features": row} for j, row in enumerate(rows.tolist())]
        elif candidates is not None:
            fields["candidates"] = list_of("candidates", candidates, "names or of objects")
        call = Call("POST", self._path("rank"), messages.body(fields, MSGPACK), MSGPACK)
        return messages.read_as((yield from self._ask(call)), Ranking).ranking

    @either
    def weights(self, person: str | None = None) -> Steps[dict[str, float]]:
        """Return the weight of each feature by name, for everybody or for one `person`.

        The last one is that of the caller's score of a candidate (`prior`). Weights are NaN if they have overflowed,
        which the loop's caveats report."""
        found = yield from self._get(Weights, "weights", person=person)
        return {name: math.nan if weight is None else weight for name, weight in found.weights.items()}

    @either
    def why(self, decision: str | Decision, item: str | None = None, top: int = 10) -> Steps[Why]:
        """Return why an item of a decision had its score: what each of its features contributes, and which feedback
        moved it.

        `decision` is a decision or its id, `item` a candidate's name, by default the first shown; the `top` pieces of
        feedback that moved the score most are listed. Raise LookupError if the log has no such decision, it showed
        nothing, or it had no such candidate."""
        return (yield from self._get(Why, "decisions", id_of(decision), "why", long=True, item=item, top=top))

    @either
    def standing(self, person: str | None = None, *, without: Sequence[str] = ()) -> Steps[Board]:
        """Return the ranking of items in a loop that asks which of two is better, for `person` or, if None, for
        everybody but the people in `without`.

        It has its uncertainty, whether to stop asking, and about how many questions are left. Raise ValueError for a
        loop of another kind, or if somebody in `without` has not answered."""
        names = msgspec.json.encode(list(without)).decode() if without else None
        return (yield from self._get(Board, "standing", long=True, person=person, without=names))

    @either
    def report(self, last: int = 10_000) -> Steps[Report]:
        """Return a report on what the loop learned, measured over its newest `last` decisions.

        It compares lists by the model with control lists (the caller's order), and predictions with a baseline."""
        return (yield from self._get(Report, "report", long=True, last=last))

    @either
    def health(self, alpha: float = 0.05) -> Steps[Health]:
        """Return whether feedback is sound and the model still predicts it, with alarms and what to do next; sound
        feedback ever raises one with probability `alpha` at most."""
        return (yield from self._get(Health, "health", long=True, alpha=alpha))

    @either
    def style_of(self, person: str | None = None, *, alpha: float = 0.05) -> Steps[Style]:
        """Return what the edits of `person` (None: of everybody) say about the style of texts that they want; its field
        `prompt` is ready for a prompt.

        The probability that any statement about a person is ever false is `alpha` at most."""
        return (yield from self._get(Style, "style", long=True, person=person, alpha=alpha))

    @either
    def correct_style(
        self, person: str | None = None, *, deny: str | None = None, always: str | None = None, id: str | None = None
    ) -> Steps[Answer]:
        """Correct by hand what `style_of` says of `person` (None: of everybody), by one of two things: a feature of
        which nothing is to be said (`deny`), or a sentence that is added (`always`).

        `id` is the id of this event, which `undo` takes; return what became of it."""
        event = id or new_id()
        fields = messages.present_fields(person=person, deny=deny, always=always, id=event)
        return (yield from self._post(event, fields, "style"))

    @either
    def evaluate(self, *learners: str, alpha: float = 0.05) -> Steps[Evaluation]:
        """Return how well learners predict the answers in the loop's log: its own learner, and others by name, such as
        "second-order:epsilon=0.1".

        Each confidence interval misses with probability `alpha` at most. Raise ValueError if there is no such
        learner."""
        fields = {"learners": list(learners), "alpha": alpha}
        reply = yield from self._ask(Call("POST", self._path("evaluations"), messages.body(fields)), long=True)
        return messages.read_as(reply, Evaluation)

    @either
    def start_experiment(
        self, learner: str, *, share: float = 0.0, frozen: bool = False, alpha: float = 0.05, id: str | None = None
    ) -> Steps[Answer]:
        """Compare another learner, `learner`, with the one that serves; return what became of the event.

        For a `share` of the people (0 to 1) both draft each list together (interleaving), and the answers tell which
        one people prefer. If `frozen`, both sides rank as they do now. The verdict is wrong with probability `alpha` at
        most. `id` is the event's id. Raise ValueError if the learner does not fit, or an experiment is running."""
        event = id or new_id()
        fields = {"learner": learner, "share": share, "frozen": frozen, "alpha": alpha, "id": event}
        return (yield from self._post(event, fields, "experiments", long=True))

    @either
    def stop_experiment(self, *, id: str | None = None) -> Steps[Answer]:
        """End the experiment that is running, so that the loop's learner serves everybody; return what became of the
        event.

        `id` is the event's id. Raise LookupError if no experiment is running."""
        event = id or new_id()
        return (yield from self._post(event, {"id": event}, "experiments", "stop"))

    @either
    def experiment(self) -> Steps[Experiment]:
        """Return the result so far of the experiment that runs, or else of the newest: which learner people prefer, and
        how certain that is.

        Raise LookupError if there was none."""
        return (yield from self._get(Experiment, "experiments", "latest", long=True))

    @either
    def plan_experiment(
        self, share: float = 0.2, *, days: float = 14.0, alpha: float = 0.05
    ) -> Steps[PlannedExperiment]:
        """Return how likely an experiment of `days` days with a `share` of the people would find a better learner.

        Its verdict would be wrong with probability `alpha` at most. It is simulated from how the loop has been used of
        late; nothing is started."""
        numbers = {"share": share, "days": days, "alpha": alpha}
        return (yield from self._get(PlannedExperiment, "experiments", "plan", long=True, **numbers))

    @either
    def promote(
        self, learner: str | None = None, *, force: bool = False, by: str = "", reason: str = "", id: str | None = None
    ) -> Steps[Promoted]:
        """Let another learner serve from here on; return the result with its evidence.

        If `learner` is None, it is the candidate of the experiment, and people have to prefer it; otherwise it has to
        predict the answers in the log better. `force` overrides that. `by` (who does it) and `reason` are logged; `id`
        is the event's id. Raise ValueError, with the reasons, if the evidence does not suffice."""
        fields = messages.present_fields(learner=learner, force=force, by=by, reason=reason, id=id or new_id())
        call = Call("POST", self._path("promotions"), messages.body(fields))
        return messages.read_as((yield from self._ask(call, long=True)), Promoted)

    @either
    def promotions(self) -> Steps[tuple[Promotion, ...]]:
        """Return the changes of the loop's learner to another one, the newest first, each with its evidence then and
        now."""
        return (yield from self._get(Promotions, "promotions", long=True)).promotions


def _event(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the event `fields` as it is sent: with an id, and with ids in place of Decision objects."""
    event = messages.present_fields(**fields)
    event.setdefault("id", new_id())
    if "decision" in event:
        event["decision"] = id_of(event["decision"])
    if isinstance(event.get("chain"), list | tuple):
        event["chain"] = [id_of(decision) for decision in event["chain"]]
    return event


def _because(answer: Answer, trouble: str) -> Answer:
    return answer._replace(reason=f"{answer.reason}: {trouble}") if trouble and answer.status == "rejected" else answer
