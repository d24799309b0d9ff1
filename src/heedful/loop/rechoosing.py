"""Looking at a loop of choices: why was this asked, what moved what was believed, what would another learner have said?

As `heedful.loop.hindsight`, nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from heedful.kernel import Ints
from heedful.loop.choosers import chooser
from heedful.loop.choosing import ChoiceModel, Heard
from heedful.loop.hindsight import Explanation, Moved, Replayed, Weighed
from heedful.loop.ledger import Ledger
from heedful.loop.packing import Known
from heedful.loop.wire import FeedbackRecord
from heedful.preferences.posterior import Posterior
from heedful.spaces_pairs import EQUAL


def explain_choice(ledger: Ledger, id: str) -> Explanation:
    """Why the first two of decision `id` were asked about, and which answers said which is better. LookupError where
    there is no such decision."""
    known = ledger.known(id)
    if known is None:
        raise LookupError(f"decision {id} is not in the log")
    record, names = known.record, known.names
    context = ledger.requests.context(known)
    if len(record.shown) < 2:
        raise LookupError(f"decision {id} showed one item alone: there was nothing to choose between")
    pair: Ints = np.array(context.x[list(record.shown[:2])], np.int64)
    model, moved = _told_on_the_way(ledger, known, pair)
    own = model.people.get(known.person or "")
    believed = _of(model, known.person, pair)
    gap, var = believed.gap(0, 1)
    asked = model.pairs_asked(model.shared, own, np.arange(model.shared.n))
    first, second = (int((asked == number).any(axis=1).sum()) for number in pair.tolist())
    weighed = Weighed(
        getattr(ledger.learner, "rule", None) if record.arm == "learned" else None,
        float(believed.beats(0, 1)),
        float(believed.better(0, 1)),
        float(np.sqrt(var)),
        first,
        second,
        0 if own is None else own.lessons,
    )
    told = tuple(sorted(moved, key=lambda each: -abs(each.by)))
    because = _because(record.arm, weighed)
    return Explanation(
        id, record.arm, names[record.shown[0]], names[record.shown[1]], because, float(gap), (), told, choice=weighed
    )


def _because(arm: str, weighed: Weighed) -> str:
    if arm == "control":
        return "this was a control: chance picked what was asked"
    if arm == "imported":
        return "somebody else asked this; the margin is what the model believed at that time"
    aims = {
        "bald": "the answer says most about what the person likes",
        "mes": "it was least certain what would be answered",
        "eubo": "the better one is likely to be among the best",
        "random": "chance picked it",
    }
    why = aims.get(weighed.rule or "")
    return "the learner asked this" if why is None else f"of all that was left to ask, {why} ({weighed.rule})"


def _of(model: ChoiceModel, person: str | None, pair: Ints) -> Posterior:
    return model.believed(model.shared, model.people.get(person or ""), pair)


def _told_on_the_way(ledger: Ledger, known: Known, pair: Ints) -> tuple[ChoiceModel, list[Moved]]:
    """The model as it was when this was decided, folded from the first answer, and by how much each answer moved the
    first of the pair ahead."""
    model, moved, before = ledger.fresh(), list[Moved](), 0.0
    assert isinstance(model, ChoiceModel)
    for event, decision, feedback in ledger.steps(model, 0, known.version):
        if event.seq in ledger.failed or not ledger.teach(model, event, decision, feedback):
            continue
        if model.shared.known <= pair.max():  # one of the two had not come yet
            continue
        after = float(_of(model, known.person, pair).gap(0, 1)[0])
        if after != before:
            moved.append(Moved(event.id, event.seq, feedback.form, after - before))
        before = after
    return model, moved


# ---------------------------------------------------------------------------- what another would say


def replay_choices(ledger: Ledger, spec: str) -> Replayed:
    """How often what the learner that `spec` names foretells would have been chosen, each before it learned from it.
    ValueError where it is none, or does not fit the loop."""
    size = ledger.founding.encoding.size
    model = ChoiceModel(chooser(spec, ledger.choices, size), size)
    lessons, right, compared = 0, 0.0, 0.0
    for event, decision, feedback in ledger.steps(model):
        try:
            for share in _foretold(ledger, model, decision, feedback):
                right, compared = right + share, compared + 1.0
            lessons += ledger.teach(model, event, decision, feedback)
        except Exception as error:  # whatever a learner of somebody's own raises
            raise ValueError(f"learner: {spec} failed on feedback {event.id}: {error}") from error
    return Replayed(spec, lessons, {}, right / compared if compared else None, compared)


def _foretold(ledger: Ledger, model: ChoiceModel, decision: Known, feedback: FeedbackRecord) -> Iterator[float]:
    """1 for each of the others that what was chosen was likelier to beat, 0 where it was less likely, 1/2 where
    neither; nothing where nothing was chosen."""
    context = ledger.requests.context(decision)
    heard = model.lesson(context, feedback, context.x[:0])
    best = None if heard is None else chosen_place(heard)
    if heard is None or best is None:
        return
    mean = _of(model, decision.person, heard.items).mean
    for i in range(heard.items.size):
        if i != best:
            yield (float(np.sign(mean[best] - mean[i])) + 1.0) / 2.0


def chosen_place(heard: Heard) -> int | None:
    """The place of what an answer put first; None where all were called equally good."""
    answer: Any = heard.answer
    if isinstance(answer, np.ndarray):
        return int(answer[0])
    return None if answer == EQUAL else int(answer)
