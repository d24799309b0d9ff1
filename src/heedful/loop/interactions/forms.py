"""The forms of feedback (clicks, grades, ...): how each is read from JSON, written to JSON, and put into words.

An interaction lists the forms that it takes (`Interaction.forms`). A new kind of feedback may bring a form of its own:
a subclass of `Form`. The file is long because it is one list: a class for each form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from heedful.core.validation import describe
from heedful.evaluation.answers import Answer
from heedful.loop.records import (
    LONGEST_ID,
    MOST_CANDIDATES,
    Feedback,
    FeedbackRecord,
    check_id,
    check_names,
    check_number,
    check_text,
    distinct,
)

if TYPE_CHECKING:
    from heedful.results.history import LessonTold

Json = Mapping[str, Any]

CHOICES = {"first": 0, "second": 1, "equal": -1, "both_bad": -1, "cannot_judge": -1}
"""Answers to which of two items is better, with the index of the better one; -1 if neither is."""
TIES = ("equal", "both_bad")
"""The answers that call two items equally good; the second says, too, that both are bad."""

ITEM: Json = {
    "description": "1 to 200 printable characters",
    "type": "string",
    "maxLength": LONGEST_ID,
    "minLength": 1,
    "pattern": r"^[^\x00-\x1f\x7f]+$",
}
"""The JSON schema of an item's name."""
_ITEMS: Json = {"type": "array", "items": ITEM}
_DISTINCT: Json = {"uniqueItems": True, "type": "array", "items": ITEM, "maxItems": MOST_CANDIDATES, "minItems": 1}
_ACTIONS: Json = {"anyOf": [ITEM, {"type": "array", "items": ITEM, "maxItems": 100, "minItems": 1}]}
_NUMBER: Json = {"type": "number", "minimum": -1e100, "maximum": 1e100}


def _of_items(schema: Json) -> Json:
    """Return the JSON schema of an object whose keys are names of items and whose values follow `schema`."""
    names = {name: value for name, value in ITEM.items() if name != "type"}
    return {"type": "object", "propertyNames": names, "additionalProperties": schema, "minProperties": 1}


class AnsweredDecision(Protocol):
    """A decision that feedback answers, with what `Form.write` needs from the log to write the feedback as JSON
    again."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the decision's candidates."""

    @property
    def shown(self) -> Sequence[int]:
        """Indices of the candidates that were shown, best first."""

    def later(self, seq: int, /) -> tuple[str, Sequence[str]] | None:
        """Return (id, names of its candidates) of the later decision whose event has the sequence number `seq`; None if
        that event was deleted to forget a person."""

    def features(self, candidate: int, /) -> list[float]:
        """Return the N features of the candidate with the index `candidate`.

        The index -1 stands for an object that the feedback names and that was not among the candidates, such as an
        edited text."""


class TakesForms(Protocol):
    """An object that takes some forms of feedback (clicks, grades, ...), such as an `Interaction`."""

    @property
    def forms(self) -> Mapping[str, Form]:
        """The forms of feedback that it takes, by their names ("clicks")."""


class Form(ABC):
    """A form of feedback, such as clicks: how it is read from JSON, written to JSON, and put into words.

    In JSON, feedback names items. In the log it is a `FeedbackRecord`, in which items are indices into the candidates
    of the decision that it answers."""

    name: str
    """the JSON field that holds the feedback: "clicks\""""
    hint: str
    """what the field says, in one line"""
    example: Any
    """a value of that field, as JSON, for items named a, b, c"""
    schema: ClassVar[Json] = {}
    """the JSON schema of that field"""
    more_fields: ClassVar[Mapping[str, Json]] = {}
    """JSON fields that may come together with the field `name`, each with its JSON schema"""
    names_unshown: ClassVar[bool] = False
    """whether feedback may name candidates that were not shown"""

    @abstractmethod
    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        """Return the feedback in `value`, the value of the JSON field `name`; `given` has all fields of the JSON
        object.

        Raise ValueError, naming the field, if a value is not valid."""

    @abstractmethod
    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        """Return feedback as the JSON fields that were given, by name, made from its logged `record`.

        `decided` is the decision that it answers."""

    def numbers(self, given: Feedback) -> Mapping[str, float]:
        """Return the numbers in the feedback `given` that have to be on the scale of the kind of feedback, by the field
        that holds each."""
        return {}

    def needs_items(self, given: Feedback) -> bool:
        """Return whether the feedback `given` says something about items; if so, it cannot answer a decision that
        showed none."""
        return True

    def known_part(self, given: Feedback, told: Sequence[str], known: Callable[[str], bool]) -> Feedback | None:
        """Return the part of the feedback `given` that is about known items; None if there is none.

        Known are the items that were on offer when the loop decided: `known(name)` is true for these. `told` are the
        names of the items shown. The values and actions of other items are dropped together with these items. Return
        `given` itself if nothing is dropped."""
        if not any(map(known, told)):
            return None
        if all(map(known, given.names)):
            return given
        kept = [i for i, name in enumerate(given.names) if known(name)]
        if not kept:
            return None
        n = len(given.names)
        values = tuple([given.values[i] for i in kept]) if len(given.values) == n else given.values
        done = tuple([given.done[i] for i in kept]) if given.done else ()
        return given._replace(names=tuple([given.names[i] for i in kept]), values=values, done=done)

    @abstractmethod
    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        """Return what the logged feedback `record` says; `shown` are the indices of the candidates shown, best
        first."""

    def say(self, line: Mapping[str, object]) -> str:
        """Return feedback in a few words, from its JSON fields `line`, as `write` returns them."""
        told = [f"{name} {line[name]}" for name in (self.name, *self.more_fields) if line.get(name) is not None]
        return ", ".join(told)

    def tell(self, lesson: LessonTold) -> str:
        """Return feedback in words for a history: what was chosen over what.

        `lesson` is a piece of feedback in the log, with its items by name."""
        return f"{self.name.capitalize()}: {_list(lesson.chosen)}{_over(lesson, ', not ')}"


# ---------------------------------------------------------------------------- a better object than the one shown


class Clicks(Form):
    """Clicks on items that were shown, or that a later decision showed while the person went on with the same search.

    The JSON field `chain` lists the ids of these later decisions."""

    name, hint, example = "clicks", "items that were clicked, in the order of the clicks", ["b"]
    schema: ClassVar[Json] = _ITEMS
    more_fields: ClassVar[Mapping[str, Json]] = {
        "chain": {
            **_ITEMS,
            "title": "decision",
            "description": "later decisions of the same search, which may have shown what was clicked",
        }
    }

    def needs_items(self, given: Feedback) -> bool:
        return bool(given.names)

    def known_part(self, given: Feedback, told: Sequence[str], known: Callable[[str], bool]) -> Feedback | None:
        return super().known_part(given, told, known) if given.names else given

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        chain = given.get("chain")
        later = () if chain is None else check_names("chain", chain)
        return Feedback("clicks", tuple(dict.fromkeys(check_names("clicks", value, least=0))), chain=later)

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        later: dict[int, tuple[str, Sequence[str]]] = {}
        for seq, _ in record.chain:
            if found := decided.later(seq):
                later[seq] = found
        places = [(0, j) if j >= 0 else record.chain[-1 - j] for j in record.chosen]
        clicks = [(seq, (later[seq][1] if seq else decided.names)[j]) for seq, j in places]
        chain = [later[seq][0] for seq in _in_turn(clicks, later)]
        return {"clicks": [name for _, name in clicks]} | ({"chain": chain} if chain else {})

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(best=tuple(record.chosen), picked=True)

    def say(self, line: Mapping[str, Any]) -> str:
        return f"clicked {_list(line['clicks'])}" if line["clicks"] else "clicked nothing"

    def tell(self, lesson: LessonTold) -> str:
        return f"Clicked {_list(lesson.chosen)}{_over(lesson, ', not ')}" if lesson.chosen else "Clicked nothing"


def _in_turn(clicks: Sequence[tuple[int, str]], later: Mapping[int, tuple[str, Sequence[str]]]) -> list[int]:
    """Return the sequence numbers of the later decisions of a search, ordered so that each click belongs to the first
    that shows its item."""
    left, order = sorted(later), list[int]()
    while left:
        free = [s for s in left if not any(at in left and at != s and name in later[s][1] for at, name in clicks)]
        order.append((free or left)[0])
        left.remove(order[-1])
    return order


class Better(Form):
    """A better order than the one shown, best item first; items that it does not name follow in the order shown."""

    name, hint, example = "better", "a better order, the best first; one item or several", ["b", "a"]
    schema: ClassVar[Json] = {"anyOf": [_DISTINCT, ITEM]}
    names_unshown = True

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        return Feedback("better", distinct("better", [value] if isinstance(value, str) else value))

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        return {"better": [decided.names[j] for j in record.chosen]}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(best=tuple(record.chosen))

    def say(self, line: Mapping[str, Any]) -> str:
        return f"{'would rather have ' if len(line['better']) == 1 else 'put first '}{_list(line['better'])}"

    def tell(self, lesson: LessonTold) -> str:
        if not lesson.over:
            return f"Agreed that {lesson.chosen[0]} is first"
        return f"Put {_list(lesson.chosen)}{_over(lesson, ' before ')}"


class Edit(Form):
    """A correction of an item that was shown: a new text, or its changed attributes.

    The JSON field `item` names the item that was corrected, by default the first shown. With `nearest` true, the loop
    learns that the candidate nearest to the correction would have been better, instead of the correction itself."""

    name, hint, example = "edit", "the corrected text, or the attributes that were changed", "a corrected text"
    schema: ClassVar[Json] = {"anyOf": [{"type": "string"}, {"type": "object"}]}
    more_fields: ClassVar[Mapping[str, Json]] = {
        "nearest": {"type": "boolean", "description": "take the candidate that is nearest to it"},
        "item": ITEM,
    }
    names_unshown = True

    def known_part(self, given: Feedback, told: Sequence[str], known: Callable[[str], bool]) -> Feedback | None:
        return given if known((given.names or told)[0]) else None

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        nearest = given.get("nearest")
        nearest = False if nearest is None else nearest
        if not isinstance(nearest, bool):
            raise ValueError(f"nearest: expected true or false, got {describe(nearest)}")
        item = given.get("item")
        names = () if item is None else (check_id("item", item),)
        values = (1.0,) if nearest else ()
        if isinstance(value, str):
            return Feedback("edit", names, values, text=check_text("edit", value))
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value) and value:
            return Feedback("edit", names, values, given=dict(value))
        raise ValueError(
            f"edit: expected the corrected text, or the attributes of the corrected object, got {describe(value)}"
        )

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        line: dict[str, Any] = {"edit": record.text if record.text is not None else record.given}
        if line["edit"] is None:
            line["edit"] = {"features": decided.features(record.chosen[0])}
        if record.chosen[0] >= 0:
            line["nearest"] = True
        if record.base != decided.shown[0]:
            line["item"] = decided.names[record.base]
        return line

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        better = record.chosen[0]
        return Answer(pairs=((better, record.base),)) if better != record.base else Answer()

    def say(self, line: Mapping[str, object]) -> str:
        return "corrected what was shown"

    def tell(self, lesson: LessonTold) -> str:
        if lesson.chosen:
            return f"Corrected {_list(lesson.over)} to {_list(lesson.chosen)}"
        return "Corrected what was shown" + (f" to “{_beginning(lesson.text)}”" if lesson.text else "")


class Thumb(Form):
    """A thumb up or down, on the whole list that was shown or on one item (JSON field `item`)."""

    name, hint, example = "thumb", "up or down, on what was shown or on an item", "up"
    schema: ClassVar[Json] = {"enum": ["down", "up"]}
    more_fields: ClassVar[Mapping[str, Json]] = {"item": ITEM}

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        """The number is 1 or -1."""
        if not isinstance(value, str) or value not in ("up", "down"):
            raise ValueError(f"thumb: expected up or down, got {describe(value)}")
        item = given.get("item")
        return Feedback("thumb", () if item is None else (check_id("item", item),), (1.0 if value == "up" else -1.0,))

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        item = {"item": decided.names[record.chosen[0]]} if record.chosen else {}
        return {"thumb": "up" if record.values[0] > 0.0 else "down"} | item

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(verdict=(tuple(record.chosen), record.values[0]))

    def say(self, line: Mapping[str, object]) -> str:
        return f"thumb {line['thumb']}" + (f" for {line['item']}" if "item" in line else "")

    def tell(self, lesson: LessonTold) -> str:
        return f"Thumb {'up' if lesson.values[0] > 0.0 else 'down'} for {_list(lesson.chosen) or 'the list'}"


class Reward(Form):
    """What the item that was shown was worth: a number from the lowest to the highest reward of the loop."""

    name, hint, example = "reward", "what the item shown was worth, a number", 0.7
    schema: ClassVar[Json] = _NUMBER
    more_fields: ClassVar[Mapping[str, Json]] = {"item": ITEM}

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        item = given.get("item")
        return Feedback("reward", () if item is None else (check_id("item", item),), (check_number("reward", value),))

    def numbers(self, given: Feedback) -> Mapping[str, float]:
        return {"reward": given.values[0]}

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        item = {"item": decided.names[record.chosen[0]]} if record.chosen else {}
        return {"reward": record.values[0]} | item

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        items = record.chosen or (shown if len(shown) == 1 else ())
        return Answer(dict.fromkeys(items, record.values[0]))

    def say(self, line: Mapping[str, object]) -> str:
        return f"reward {line['reward']:g}" + (f" for {line['item']}" if "item" in line else "")

    def tell(self, lesson: LessonTold) -> str:
        return (
            f"Reward {_list([f'{value:g}' for value in lesson.values])} for {_list(lesson.chosen) or 'what was shown'}"
        )


class Action(Form):
    """An action on one item, such as a purchase. The loop's settings give the weight of each action: how much it speaks
    for the item, negative for an action that speaks against it."""

    name, hint, example = "action", "what was done with an item", "buy"
    schema: ClassVar[Json] = dict(ITEM)
    more_fields: ClassVar[Mapping[str, Json]] = {"item": ITEM}

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        return Feedback("action", (check_id("item", given.get("item")),), text=check_id("action", value))

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        return {"action": record.text} | ({"item": decided.names[record.chosen[0]]} if record.chosen else {})

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        items, weight = tuple(record.chosen), record.values[0]
        return Answer(best=items if weight > 0.0 else None, weights=dict.fromkeys(items, weight), stated=False)

    def say(self, line: Mapping[str, object]) -> str:
        return f"{line['action'] or 'did something'}: {line.get('item', '')}"

    def tell(self, lesson: LessonTold) -> str:
        return f"{(lesson.text or 'an action').capitalize()}: {_list(lesson.chosen)}{_over(lesson, ', shown below ')}"


# ---------------------------------------------------------------------------- numbers, and what stands for them


class Actions(Form):
    """Actions on several items, one or more on each; the loop's settings say which rating each action stands for."""

    name, hint, example = "actions", "what was done with each item", {"a": "buy", "b": ["view", "cart"]}
    schema: ClassVar[Json] = _of_items(_ACTIONS)

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        if not isinstance(value, Mapping) or not value:
            expected = "expected what was done with each item, as {item: action}"
            raise ValueError(f"actions: {expected}, got {describe(value)}")
        done = []
        for item, names in value.items():
            where = f"actions[{describe(item)}]"
            done.append(check_names(where, [names] if isinstance(names, str) else names, most=100))
        return Feedback("actions", distinct("actions", list(value)), done=tuple(done))

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        done = [each[0] if len(each) == 1 else each for each in record.done]
        return {"actions": {decided.names[j]: each for j, each in zip(record.chosen, done)}}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(weights=dict.fromkeys(record.chosen, 1.0), stated=False)

    def say(self, line: Mapping[str, Any]) -> str:
        done = line["actions"].items()
        return _list([f"{what if isinstance(what, str) else ', '.join(what)}: {name}" for name, what in done])

    def tell(self, lesson: LessonTold) -> str:
        done = (lesson.text or "an action").split("; ")
        if len(done) != len(lesson.chosen):  # a name of an action may have a semicolon
            return f"{(lesson.text or 'an action').capitalize()}: {_list(lesson.chosen)}"
        return _list([f"{what.capitalize()}: {name}" for name, what in zip(lesson.chosen, done)])


class Numbers(Form):
    """A number for each of several items, such as ratings or grades."""

    schema: ClassVar[Json] = _of_items(_NUMBER)
    names_unshown = True

    def __init__(self, name: str, hint: str, example: Any, verb: str, whole: bool = False) -> None:
        """Make a form of feedback with the JSON field `name`.

        - `hint`: what the field says, in one line
        - `example`: a value of the field, as JSON
        - `verb`: how the feedback begins in words, such as "Rated" in "Rated a: 4"
        - `whole`: whether numbers are written as integers"""
        self.name, self.hint, self.example, self._verb, self._whole = name, hint, example, verb, whole

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        if not isinstance(value, Mapping) or not value:
            raise ValueError(
                f"{self.name}: expected a number for each item, as {{item: number}}, got {describe(value)}"
            )
        numbers = tuple(check_number(f"{self.name}[{describe(name)}]", number) for name, number in value.items())
        return Feedback(self.name, distinct(self.name, list(value)), numbers)

    def numbers(self, given: Feedback) -> Mapping[str, float]:
        return {f"{self.name}[{describe(name)}]": value for name, value in zip(given.names, given.values)}

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        values: Sequence[float] = list(map(int, record.values)) if self._whole else record.values
        return {self.name: {decided.names[j]: value for j, value in zip(record.chosen, values)}}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(dict(zip(record.chosen, record.values)))

    def say(self, line: Mapping[str, Any]) -> str:
        return f"{self.name} {_list([f'{name}: {value:g}' for name, value in line[self.name].items()])}"

    def tell(self, lesson: LessonTold) -> str:
        numbers = [f"{name}: {value:g}" for name, value in zip(lesson.chosen, lesson.values)]
        return f"{self._verb} {_list(numbers)}"


# ---------------------------------------------------------------------------- choices


class Choice(Form):
    """A choice between the first two items that were shown: which of them is better."""

    name, hint, example = "choice", "which of the first two is better", "first"
    schema: ClassVar[Json] = {"enum": sorted(CHOICES)}
    _words: ClassVar[Mapping[str, str]] = {
        "first": "the first",
        "second": "the second",
        "equal": "both alike",
        "both_bad": "both bad",
        "cannot_judge": "cannot judge",
    }

    def known_part(self, given: Feedback, told: Sequence[str], known: Callable[[str], bool]) -> Feedback | None:
        return given if all(map(known, told[:2])) else None

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        """The number is the index of the better item, 0 or 1; -1 if neither is."""
        if not isinstance(value, str) or value not in CHOICES:
            raise ValueError(f"choice: expected {', '.join(CHOICES)}, got {describe(value)}")
        return Feedback("choice", values=(float(CHOICES[value]),), text=value)

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        return {"choice": record.text}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        if record.values[0] < 0.0:
            return Answer(tied=record.text in TIES)
        winner = int(record.values[0])
        return Answer(best=(shown[winner],), pairs=((shown[winner], shown[1 - winner]),))

    def say(self, line: Mapping[str, Any]) -> str:
        return self._words[line["choice"]]

    def tell(self, lesson: LessonTold) -> str:
        if not lesson.chosen:
            return "Could not choose between the two"
        return f"Chose {_list(lesson.chosen)}{_over(lesson, ', not ')}"


class Nothing(Form):
    """The answer "none": the person wanted none of the items shown."""

    name, hint, example = "none", "nothing of what was shown was wanted", True
    schema: ClassVar[Json] = {"enum": [True]}

    def needs_items(self, given: Feedback) -> bool:
        return False

    def known_part(self, given: Feedback, told: Sequence[str], known: Callable[[str], bool]) -> Feedback | None:
        return given

    def parse(self, value: object, given: Mapping[str, object]) -> Feedback:
        if value is not True:
            raise ValueError(f"none: expected true, got {describe(value)}")
        return Feedback("none")

    def write(self, record: FeedbackRecord, decided: AnsweredDecision) -> dict[str, Any]:
        return {"none": True}

    def answer(self, record: FeedbackRecord, shown: Sequence[int]) -> Answer:
        return Answer(best=())

    def say(self, line: Mapping[str, object]) -> str:
        return "none of these"

    def tell(self, lesson: LessonTold) -> str:
        return "Wanted none of these"


def _list(names: Sequence[str], most: int = 4) -> str:
    """Return names joined as in a sentence: the first `most` of them, and how many more there are."""
    told = list(names[:most])
    if len(names) > most:
        return f"{', '.join(told)} and {len(names) - most:,} more"
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else "".join(told)


def _over(lesson: LessonTold, before: str) -> str:
    """Return the text `before` followed by the items that the feedback `lesson` put below its choice; "" if there are
    none."""
    return f"{before}{_list(lesson.over)}" if lesson.over else ""


def _beginning(text: str) -> str:
    """Return the beginning of a text: at most eight words and 140 characters, with "…" if it is cut."""
    told = text.split()
    start = " ".join(told[:8]) + (" …" if len(told) > 8 else "")
    return start if len(start) <= 140 else f"{start[:140].rstrip()}…"


CLICKS, BETTER, EDIT, THUMB, REWARD = Clicks(), Better(), Edit(), Thumb(), Reward()
ACTION, ACTIONS = Action(), Actions()
RATING = Numbers("rating", "how good each item is, a number", {"a": 4, "b": 2}, "Rated")
GRADE = Numbers("grade", "how relevant each item is, a number", {"a": 4, "b": 2}, "Graded")
WHOLE_GRADE = Numbers("grade", "the grade of each item, a whole number from 1", {"a": 4, "b": 2}, "Graded", whole=True)
CHOICE, NONE = Choice(), Nothing()


def by_name(*forms: Form) -> dict[str, Form]:
    """Return the forms of feedback `forms`, by their names."""
    return {form.name: form for form in forms}


FORMS: Mapping[str, Form] = by_name(CLICKS, BETTER, EDIT, THUMB, REWARD, ACTION, ACTIONS, RATING, GRADE, CHOICE, NONE)
"""The forms of feedback that come with heedful, by name."""


def read_answer(forms: Mapping[str, Form], record: FeedbackRecord, shown: Sequence[int]) -> Answer:
    """Return what the logged feedback `record` says by its form; nothing if that is none of `forms`.

    `shown` are the indices of the candidates shown, best first."""
    form = forms.get(record.form)
    return Answer() if form is None else form.answer(record, shown)


def in_taken_form(given: Mapping[str, object], taken: Mapping[str, Form]) -> Mapping[str, object]:
    """Return the JSON fields `given` of feedback in a loop that takes the forms `taken`: a corrected list that came as
    `edit` is `better` where objects cannot be corrected, but lists can."""
    if "edit" not in taken and "better" in taken and isinstance(given.get("edit"), list | tuple):
        return {**given, "edit": None, "better": given["edit"]}
    return given


def known_forms(*interactions: TakesForms) -> dict[str, Form]:
    """Return the forms of feedback that a loop can read, by name: all that come with heedful, and those of
    `interactions`.

    That includes forms that the loop does not take, so that an error can say so instead of calling them unknown."""
    return {**FORMS, **{name: form for each in interactions for name, form in each.forms.items()}}


def parse_feedback(given: Mapping[str, object], forms: Mapping[str, Form] = FORMS) -> Feedback:
    """Return the feedback in the JSON fields `given`, by name, of which exactly one is the name of one of `forms`.

    Fields that are None are ignored. Raise ValueError, naming the field, if
    - none or several of the `forms` are named,
    - there is another field, which the form does not have,
    - a value is not valid."""
    form, others = None, set[str]()
    for name, value in given.items():
        if value is None:
            continue
        if name not in forms:
            others.add(name)
        elif form is None:
            form = forms[name]
        else:
            raise ValueError(f"feedback: expected one of {', '.join(forms)}, got {form.name} and {name}")
    if form is None:
        got = f"got {describe(min(others, key=str))}" if others else "got none of them"
        raise ValueError(f"feedback: expected one of {', '.join(forms)}, {got}")
    if others and (extra := others - form.more_fields.keys()):
        allowed = ", ".join((form.name, *form.more_fields))
        raise ValueError(f"feedback: expected {allowed}, got another field: {describe(min(extra, key=str))}")
    return form.parse(given[form.name], given)
