"""What a person's corrections of texts say about the style that they want, in words, and corrections of that by hand.

An edit turns a draft into a text. For each named feature of style (`heedful.features.style`) the differences between
the two make evidence that the person wants more of it, or less. A statement is made where that evidence suffices, so
that for each person the probability of ever making a false statement is at most alpha, over all features and however
often one looks (`heedful.evaluation.leaning`), unless edits are undone, or drafts edited again, because of what was
said. It needs two sorts of evidence, of which the weaker counts: that edits bring the number down more often than up
(or up than down), and that they do so beyond what the change of the length explains.

That preferences can be inferred from edits and put into a prompt, in words that people can read and change, is from
PRELUDE and its learner CIPHER (Gao et al., NeurIPS 2024), where a language model describes them. Here counting does; a
function of the caller's, such as a language model, may add its words (`describe`).

A person who is answerable for the loop may deny a feature, or say what always holds. That is an event of the log of
kind `style`, of which this file is the only place that knows the content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from heedful.core.decoding import decoder
from heedful.core.validation import check_alpha
from heedful.core.validation import describe as describe_value
from heedful.core.wording import percent
from heedful.evaluation.leaning import log_evidence, sure
from heedful.features.style import FEATURES, NAMES, SIZES, StyleChange, StyleMeasures, compare, is_english, measure
from heedful.loop import records
from heedful.loop.history import History
from heedful.loop.log import Event, Log, Retractions, now
from heedful.loop.packing import LoggedDecision
from heedful.loop.pending import PendingEvent
from heedful.loop.projection import Projection
from heedful.results.answers import Answer
from heedful.results.style import Style, StyleRule, StyleStatement

Describe = Callable[[str, str], str]
"""A function of the caller's, (draft, edited text) -> a few words on what the edit says, such as "prefers bullets"."""

KIND = "style"
"""The kind of the events with corrections by hand."""
LONGEST = 500
"""The most characters of what always holds, and of what `describe` says of one edit."""
POOLED = (
    "These are the edits of everybody taken together: whoever edits more counts more, and what they say need hold for "
    "no one person."
)
"""What the style of everybody says of itself."""
NEWEST = 5
"""How many edits, the newest, `describe` is asked about."""
MOST = 1e12
"""The greatest evidence that is reported."""
LEFT = 0.8
"""The share of drafts with a feature that edits rid of all of it, from which on a text is said to be without it."""
SELDOM = 0.5
"""The share of edits below which a statement says that it holds for some texts."""


class StyleRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A correction by hand in the log: a feature that nothing is to be said of (`deny`), or what always holds
    (`always`); the other is ""."""

    deny: str = ""
    """the name of a feature of style"""
    always: str = ""
    """what is to be said besides, in the words of whoever said it"""


def style_of(history: History, person: str | None, alpha: float = 0.05, describe: Describe | None = None) -> Style:
    """Return what the edits of `person` (None: of everybody) in the log of `history` say about the style they want.

    `alpha` is the probability, at most, that any statement about the person is ever false; `describe` may be a function
    of the caller's that says in words what the newest edits say. Raise ValueError if `alpha` is not from 1e-6 to 0.5,
    or if `describe` returns no text; what it raises is raised."""
    person = None if person is None else records.check_id("person", person)
    check_alpha(alpha)
    retractions = history.log.retractions()
    pairs, unread = _edits(history, person, retractions)
    measured, texts = list[tuple[StyleMeasures, StyleMeasures]](), list[tuple[str, str]]()
    for draft, edited in pairs:
        each = measure(draft), measure(edited)
        if each[0].words and each[1].words:
            measured.append(each)
            texts.append((draft, edited))
        else:
            unread += 1
    rules = tuple(_rules(history.log, person, retractions))
    denied = {rule.deny for rule in rules}
    changes = [compare(*each) for each in measured]
    statements = _statements(changes, [each[1].words for each in measured], alpha, denied)
    english = sum(is_english(*each) for each in measured)
    described = _described(describe, texts[-NEWEST:]) if describe is not None else ()
    told = [each.told for each in statements if each.told and not each.denied]
    prompt = _prompt(told, rules, described)
    unsaid = "" if told else _unsaid(history, person, statements, len(texts), unread)
    pooled = POOLED if person is None and pairs else ""
    return Style(person, prompt, len(texts), english, unread, alpha, statements, rules, described, unsaid, pooled)


# ---------------------------------------------------------------------------- from the log to pairs of texts


def _edits(history: History, person: str | None, retractions: Retractions) -> tuple[list[tuple[str, str]], int]:
    """Return (pairs of draft and edited text in the order of the log, how many edits have no texts in it)."""
    columns = [c.name for c in history.manifest.candidates.columns if c.kind in ("text", "prose")]
    found: dict[tuple[int, int], tuple[str, str] | None] = {}
    for event, decided in history.log.lessons(person=person):
        if event.seq in retractions or not event.payload.startswith('{"form":"edit"'):
            continue
        feedback, decision = records.decode_feedback(event.payload), history.decision(decided)
        key = decision.seq, feedback.base
        found.pop(key, None)
        draft = _attributes(history, decision, feedback.base)
        changed = {columns[0]: feedback.text} if feedback.text is not None and columns else feedback.given
        if draft is None or changed is None or not columns:
            found[key] = None
        else:
            found[key] = _text(draft, columns), _text({**draft, **changed}, columns)
    return [each for each in found.values() if each is not None], sum(each is None for each in found.values())


def _attributes(history: History, decision: LoggedDecision, candidate: int) -> Mapping[str, Any] | None:
    """Return the attributes of a candidate, by its index, of a logged decision; None if the log has none."""
    if not history.settings.store_text:
        return None
    record = decision.record
    if record.attributes:
        return record.attributes[candidate]
    event = history.log.at(record.items[candidate]) if record.items else None
    return None if event is None or event.arrays is None else msgspec.json.decode(event.payload)


def _text(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return "\n\n".join(str(row[name]) for name in columns if row.get(name) is not None)


# ---------------------------------------------------------------------------- statements


def _statements(
    changes: Sequence[Sequence[StyleChange | None]], words: Sequence[int], alpha: float, denied: set[str]
) -> tuple[StyleStatement, ...]:
    """Return what edits say about each feature: those first of which something can be told, the others by evidence."""
    n, m = len(changes), len(FEATURES)
    raw, adjusted = np.zeros((n, m)), np.zeros((n, m))
    for i, each in enumerate(changes):
        for j, change in enumerate(each):
            if change is not None:
                raw[i, j], adjusted[i, j] = change.raw, change.adjusted
    (raw_up, raw_down), (up, down) = log_evidence(raw), log_evidence(adjusted)
    logs = np.concatenate([np.minimum(raw_up, up), np.minimum(raw_down, down)])
    answered = sure(logs, alpha).reshape(2, m)
    found = []
    for j in range(m):
        column = [each[j] for each in changes]
        there = [change for change in column if change is not None]
        more, fewer = sum(c.raw > 0 for c in there), sum(c.raw < 0 for c in there)
        rises = more > fewer if not answered[:, j].any() else bool(answered[0, j])
        moved = [c for c in there if c.raw == (1 if rises else -1)]
        shares = [c.after / c.before - 1.0 for c in there if c.before]
        share = float(np.median(shares)) if shares else None
        occasions = len(there) if rises or j < SIZES else sum(c.before > 0 for c in there)
        told = _told(j, rises, moved, occasions, share, words) if answered[:, j].any() else ""
        evidence = min(math.exp(min(logs[j if rises else m + j], 50.0)), MOST)
        about = (len(there), more, fewer, occasions, share, evidence, NAMES[j] in denied)
        found.append(StyleStatement(NAMES[j], told, *about))
    return tuple(sorted(found, key=lambda each: (not each.told, 0.0 if each.told else -each.evidence)))


def _told(
    j: int, rises: bool, moved: Sequence[StyleChange], occasions: int, change: float | None, words: Sequence[int]
) -> str:
    """Return in words how the person wants texts with respect to feature number `j`: more of it if `rises`, else
    less."""
    feature = FEATURES[j]
    told = feature.more if rises else feature.fewer
    if j == 0 and change is not None and (change > 0.0 if rises else change < 0.0):  # else half are not changed
        return f"{told} (by about {percent(abs(change), 2)}, to about {int(np.median(words))} words)"
    if feature.none and not rises and sum(c.after == 0 for c in moved) >= LEFT * occasions:
        told = feature.none
    return told if len(moved) >= SELDOM * occasions else f"in some texts {told}"


def _prompt(told: Sequence[str], rules: Sequence[StyleRule], described: Sequence[str]) -> str:
    """Return the sentences for a prompt: of what edits told, what always holds, and what was described."""
    parts = []
    if told:
        listed = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
        parts.append(f"Write in the style that corrections of earlier drafts ask for: {listed}.")
    parts += [f"Always: {rule.always}" for rule in rules if rule.always]
    if described:
        parts.append(f"Single edits suggest: {'; '.join(described)}.")
    return " ".join(parts)


def _unsaid(history: History, person: str | None, statements: Sequence[StyleStatement], edits: int, unread: int) -> str:
    """Return why nothing can be told of `person` (None: everybody) from `edits` that could be read and `unread` others,
    given the `statements`."""
    if any(each.told for each in statements):
        return "all that they tell was denied by hand"
    if edits:
        return f"{edits:,} {'edit does' if edits == 1 else 'edits do'} not suffice to be sure of anything"
    if not unread:
        return "nobody has edited a text" if person is None else f"{person} has edited no text"
    if not history.settings.store_text:
        return "the loop stores no texts"
    return "no edit has a text with words before and after"


def _described(describe: Describe, texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return what `describe` says of each pair of draft and edited text, each once, the newest last."""
    found = dict[str, None]()
    for draft, edited in texts:
        if draft == edited:
            continue
        told = describe(draft, edited)
        if not isinstance(told, str):
            raise ValueError(f"describe: expected a function that returns a text, got {describe_value(told)}")
        told = " ".join(told.split())[:LONGEST].rstrip(" .;")
        if told:
            found.pop(told, None)
            found[told] = None
    return tuple(found)


# ---------------------------------------------------------------------------- corrections by hand


def correct_style(
    projection: Projection, person: str | None, deny: str | None, always: str | None, id: str | None = None
) -> Answer:
    """Correct by hand what is said of the style of `person` (None: of everybody), as `Loop.correct_style` says."""
    event_id = records.new_id() if id is None else records.check_id("id", id)
    event = rule_event(event_id, person, deny, always, projection.published.version, now())
    [answer] = projection.submit([PendingEvent(event)])
    return answer


def rule_event(id: str, person: object, deny: object, always: object, version: int, time: int) -> Event:
    """Return the event of a correction by hand, to be appended, which denies a feature or says what always holds.

    `id` is the caller's event id, `person` whom it is for (None: everybody), `version` the model's version at `time`,
    in microseconds since 1970. Raise ValueError, naming the field, unless exactly one of `deny` and `always` is given,
    and makes sense."""
    who = None if person is None else records.check_id("person", person)
    if (deny is None) == (always is None):
        raise ValueError(f"style: expected one of deny and always, got {'neither' if deny is None else 'both'}")
    if deny is not None:
        if not isinstance(deny, str) or deny not in NAMES:
            raise ValueError(f"deny: expected one of {', '.join(NAMES)}, got {describe_value(deny)}")
        record = StyleRecord(deny=deny)
    else:
        text = " ".join(records.check_text("always", always, LONGEST).split())
        if not text or not text.isprintable():
            raise ValueError(f"always: expected a text of printable characters, got {describe_value(always)}")
        record = StyleRecord(always=text)
    return Event(0, KIND, id, time, who, None, version, records.encode(record))


def rule_line(event: Event) -> dict[str, Any]:
    """Return the JSON line of a correction by hand, which `event` is, without the time."""
    record = _decode(event.payload)
    said = {"deny": record.deny} if record.deny else {"always": record.always}
    who = {} if event.subject is None else {"person": event.subject}
    return {"kind": KIND, "id": event.id} | who | said


def _rules(log: Log, person: str | None, retractions: Retractions) -> Iterator[StyleRule]:
    """Yield the corrections by hand that are in effect for `person`, those for everybody among them, each once."""
    said = set[StyleRecord]()
    for event in sorted(log.many(log.places(KIND))):
        record = _decode(event.payload)
        if event.seq not in retractions and event.subject in (None, person) and record not in said:
            said.add(record)
            yield StyleRule(event.id, event.subject, record.deny, record.always)


_decode = decoder(StyleRecord).decode
