"""The forms of feedback: how each is read from JSON, written to JSON, and described.

An interaction lists the forms that it takes (`Interaction.forms`). A kind of feedback of one's own may bring a form of
its own: a class with the methods of `Form`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from heedful.core.validation import describe
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
    from heedful.loop.history import LessonTold

Json = Mapping[str, Any]

CHOICES = {"first": 0, "second": 1, "equal": -1, "cannot_judge": -1}
"""The place of the better one of two; -1 where neither is."""

ITEM: Json = {
    "description": "1 to 200 printable characters",
    "type": "string",
    "maxLength": LONGEST_ID,
    "minLength": 1,
    "pattern": r"^[^\x00-\x1f\x7f]+$",
}
"""The JSON schema of a name."""
_ITEMS: Json = {"type": "array", "items": ITEM}
_DISTINCT: Json = {"uniqueItems": True, "type": "array", "items": ITEM, "maxItems": MOST_CANDIDATES, "minItems": 1}
_ACTIONS: Json = {"anyOf": [ITEM, {"type": "array", "items": ITEM, "maxItems": 100, "minItems": 1}]}
_NUMBER: Json = {"type": "number", "minimum": -1e100, "maximum": 1e100}


def _of_items(schema: Json) -> Json:
    """The JSON schema of an object with something for each item."""
    return {"type": "object", "propertyNames": _named(ITEM), "additionalProperties": schema, "minProperties": 1}


def _named(schema: Json) -> Json:
    return {name: value for name, value in schema.items() if name != "type"}


class Decided(Protocol):
    """What a form may need to write feedback as it was given: the decision it answers, and the log around it."""

    @property
    def names(self) -> Sequence[str]:
        """Of the decision's candidates."""

    @property
    def shown(self) -> Sequence[int]:
        """The candidates that were shown, best first."""

    def later(self, seq: int, /) -> tuple[str, Sequence[str]] | None:
        """(id, names of candidates) of a later decision; None where it was forgotten."""

    def features(self, candidate: int, /) -> list[float]:
        """The features of a candidate of the decision; of the object that the feedback brought along, -1."""


class Taking(Protocol):
    """An interaction, as far as it takes forms."""

    @property
    def forms(self) -> Mapping[str, Form]:
        """By name."""


class Form(ABC):
    """One form of feedback."""

    name: str
    """the field that holds it"""
    hint: str
    """what it says, in one line"""
    example: Any
    """a value of that field, as JSON, about items a, b, c"""
    schema: ClassVar[Json] = {}
    """the JSON schema of that field"""
    beside: ClassVar[Mapping[str, Json]] = {}
    """other fields that belong to it, with their JSON schemas"""

    @abstractmethod
    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """Feedback whose field of this name has this value; `given` has all fields. ValueError, by name, where it
        makes no sense."""

    @abstractmethod
    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """The fields as they were given, of what the log keeps."""

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """(the candidates that feedback chose, those that it put them before)."""
        return list(record.chosen), []

    def values(self, record: FeedbackRecord, chosen: Sequence[int]) -> tuple[float, ...]:
        """The numbers that belong to what feedback chose, in that order; () where there are none."""
        return ()

    def say(self, line: Mapping[str, Any]) -> str:
        """The fields, as `write` gives them, in a few words."""
        told = [f"{name} {line[name]}" for name in (self.name, *self.beside) if line.get(name) is not None]
        return ", ".join(told)

    def tell(self, lesson: LessonTold) -> str:
        """A lesson in words, for a history: what was chosen over what."""
        return f"{self.name.capitalize()}: {_list(lesson.chosen)}{_over(lesson, ', not ')}"


# ---------------------------------------------------------------------------- a better object than the one shown


class Clicks(Form):
    """Clicks on items that were shown, or that later decisions for the same need showed."""

    name, hint, example = "clicks", "items that were clicked, in the order of the clicks", ["b"]
    schema: ClassVar[Json] = _ITEMS
    beside: ClassVar[Mapping[str, Json]] = {"chain": _ITEMS}

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """Clicking twice on the same thing is ordinary: the first click counts."""
        chain = given.get("chain")
        later = () if chain is None else check_names("chain", chain)
        return Feedback("clicks", tuple(dict.fromkeys(check_names("clicks", value, least=0))), chain=later)

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """The names of what was clicked, and the later decisions that showed some of it."""
        later: dict[int, tuple[str, Sequence[str]]] = {}
        for seq, _ in record.chain:
            if found := decided.later(seq):
                later[seq] = found
        places = [(0, j) if j >= 0 else record.chain[-1 - j] for j in record.chosen]
        clicks = [(seq, (later[seq][1] if seq else decided.names)[j]) for seq, j in places]
        chain = [later[seq][0] for seq in _in_turn(clicks, later)]
        return {"clicks": [name for _, name in clicks]} | ({"chain": chain} if chain else {})

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """What was clicked, and what was passed over: shown above the last click and not clicked."""
        clicked = set(record.chosen)
        deepest = max((i for i, j in enumerate(shown, 1) if j in clicked), default=0)
        looked = len(shown) if min(record.chosen, default=0) < 0 else deepest
        return list(record.chosen), [j for j in shown[:looked] if j not in clicked]

    def say(self, line: Mapping[str, Any]) -> str:
        """What was clicked."""
        return f"clicked {_list(line['clicks'])}" if line["clicks"] else "clicked nothing"

    def tell(self, lesson: LessonTold) -> str:
        """What was clicked, and passed over."""
        return f"Clicked {_list(lesson.chosen)}{_over(lesson, ', not ')}" if lesson.chosen else "Clicked nothing"


def _in_turn(clicks: Sequence[tuple[int, str]], later: Mapping[int, tuple[str, Sequence[str]]]) -> list[int]:
    """The later decisions in an order in which each click is found where it was: the first that has it counts."""
    left, order = sorted(later), list[int]()
    while left:
        free = [s for s in left if not any(at in left and at != s and name in later[s][1] for at, name in clicks)]
        order.append((free or left)[0])
        left.remove(order[-1])
    return order


class Better(Form):
    """Items in a better order, the best first; what is not named follows as it was shown."""

    name, hint, example = "better", "a better order, the best first; one item or several", ["b", "a"]
    schema: ClassVar[Json] = {"anyOf": [_DISTINCT, ITEM]}

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """One name stands for a list of one."""
        return Feedback("better", distinct("better", [value] if isinstance(value, str) else value))

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """The names, as a list."""
        return {"better": [decided.names[j] for j in record.chosen]}

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """What rose, and what fell behind it."""
        return risen(shown, record.chosen)

    def say(self, line: Mapping[str, Any]) -> str:
        """What was put first."""
        return f"{'would rather have ' if len(line['better']) == 1 else 'put first '}{_list(line['better'])}"

    def tell(self, lesson: LessonTold) -> str:
        """What rose past what."""
        if not lesson.over:
            return f"Agreed that {lesson.chosen[0]} is first"
        return f"Put {_list(lesson.chosen)}{_over(lesson, ' before ')}"


def risen(shown: Sequence[int], named: Sequence[int]) -> tuple[list[int], list[int]]:
    """(of those named first in a better order, in that order, what rose; what fell behind one of them). Where nothing
    moved, all that were named rose, past nothing."""
    place = {j: i for i, j in enumerate(shown)}
    last, ahead = len(shown), set(named)
    rest = [j for j in shown if j not in ahead]  # they follow, as they were shown
    before = [place.get(j, last) for j in named]
    highest = [*before, min((place[j] for j in rest), default=last)]
    for i in range(len(before) - 1, -1, -1):  # the highest place, as shown, of all that now stand from there on
        highest[i] = min(before[i], highest[i + 1])
    rose = {j: before[i] for i, j in enumerate(named) if before[i] > highest[i + 1]}
    if not rose:
        return list(named), []
    deepest, fallen = 0, set()
    for j in [*named, *rest]:
        if j in rose:
            deepest = max(deepest, rose[j])
        elif place.get(j, last) < deepest:
            fallen.add(j)
    return list(rose), [j for j in shown if j in fallen]


class Edit(Form):
    """What was shown, corrected: a text, or the attributes that were changed."""

    name, hint, example = "edit", "the corrected text, or the attributes that were changed", "a corrected text"
    schema: ClassVar[Json] = {"anyOf": [{"type": "string"}, {"type": "object"}]}
    beside: ClassVar[Mapping[str, Json]] = {"nearest": {"type": "boolean"}, "item": ITEM}

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """`nearest` takes the candidate that is nearest to it; `item` is what was corrected, the first where it is not
        said."""
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

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """What was corrected; its features where texts are not stored."""
        line: dict[str, Any] = {"edit": record.text if record.text is not None else record.given}
        if line["edit"] is None:
            line["edit"] = {"features": decided.features(record.chosen[0])}
        if record.chosen[0] >= 0:
            line["nearest"] = True
        if record.base != decided.shown[0]:
            line["item"] = decided.names[record.base]
        return line

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """The candidate that was taken for it, and what was corrected."""
        chosen = record.chosen
        return [j for j in chosen if j >= 0 and j != record.base], [record.base] * (chosen[0] != record.base)

    def say(self, line: Mapping[str, Any]) -> str:
        """That it was."""
        return "corrected what was shown"

    def tell(self, lesson: LessonTold) -> str:
        """What it became, or how the corrected text begins."""
        if lesson.chosen:
            return f"Corrected {_list(lesson.over)} to {_list(lesson.chosen)}"
        return "Corrected what was shown" + (f" to “{_beginning(lesson.text)}”" if lesson.text else "")


class Thumb(Form):
    """Approval or not, of all that was shown or of one item."""

    name, hint, example = "thumb", "up or down, on what was shown or on an item", "up"
    schema: ClassVar[Json] = {"enum": ["down", "up"]}
    beside: ClassVar[Mapping[str, Json]] = {"item": ITEM}

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """+1 or -1."""
        if not isinstance(value, str) or value not in ("up", "down"):
            raise ValueError(f"thumb: expected up or down, got {describe(value)}")
        item = given.get("item")
        return Feedback("thumb", () if item is None else (check_id("item", item),), (1.0 if value == "up" else -1.0,))

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """Up or down."""
        item = {"item": decided.names[record.chosen[0]]} if record.chosen else {}
        return {"thumb": "up" if record.values[0] > 0.0 else "down"} | item

    def values(self, record: FeedbackRecord, chosen: Sequence[int]) -> tuple[float, ...]:
        """+1 or -1."""
        return tuple(record.values)

    def say(self, line: Mapping[str, Any]) -> str:
        """Up or down, and of what."""
        return f"thumb {line['thumb']}" + (f" for {line['item']}" if "item" in line else "")

    def tell(self, lesson: LessonTold) -> str:
        """Up or down, and of what."""
        return f"Thumb {'up' if lesson.values[0] > 0.0 else 'down'} for {_list(lesson.chosen) or 'the list'}"


class Action(Form):
    """What was done with an item: its weight is in the loop's settings."""

    name, hint, example = "action", "what was done with an item", "buy"
    schema: ClassVar[Json] = dict(ITEM)
    beside: ClassVar[Mapping[str, Json]] = {"item": ITEM}

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """The name of the action, and the item."""
        return Feedback("action", (check_id("item", given.get("item")),), text=check_id("action", value))

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """The name of the action, and the item."""
        return {"action": record.text} | ({"item": decided.names[record.chosen[0]]} if record.chosen else {})

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """For it: what it rose past. Against it: the item alone."""
        return risen(shown, record.chosen) if record.values[0] > 0.0 else (list(record.chosen), [])

    def values(self, record: FeedbackRecord, chosen: Sequence[int]) -> tuple[float, ...]:
        """The weight of the action, from -1 to 1."""
        return tuple(record.values)

    def say(self, line: Mapping[str, Any]) -> str:
        """The action and its item."""
        return f"{line['action'] or 'did something'}: {line.get('item', '')}"

    def tell(self, lesson: LessonTold) -> str:
        """The action, its item and what it rose past."""
        return f"{(lesson.text or 'an action').capitalize()}: {_list(lesson.chosen)}{_over(lesson, ', shown below ')}"


# ---------------------------------------------------------------------------- numbers, and what stands for them


class Actions(Form):
    """What was done with each of several items; the loop's settings say which number each action stands for."""

    name, hint, example = "actions", "what was done with each item", {"a": "buy", "b": ["view", "cart"]}
    schema: ClassVar[Json] = _of_items(_ACTIONS)

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """One action of an item, or several."""
        if not isinstance(value, Mapping) or not value:
            expected = "expected what was done with each item, as {item: action}"
            raise ValueError(f"actions: {expected}, got {describe(value)}")
        done = []
        for item, names in value.items():
            where = f"actions[{describe(item)}]"
            done.append(check_names(where, [names] if isinstance(names, str) else names, most=100))
        return Feedback("actions", distinct("actions", list(value)), done=tuple(done))

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """One action of an item as its name, several as a list."""
        done = [each[0] if len(each) == 1 else each for each in record.done]
        return {"actions": {decided.names[j]: each for j, each in zip(record.chosen, done)}}

    def say(self, line: Mapping[str, Any]) -> str:
        """Each action and its item."""
        done = line["actions"].items()
        return _list([f"{what if isinstance(what, str) else ', '.join(what)}: {name}" for name, what in done])

    def tell(self, lesson: LessonTold) -> str:
        """Each action and its item."""
        done = (lesson.text or "an action").split("; ")
        if len(done) != len(lesson.chosen):  # a name of an action may have a semicolon
            return f"{(lesson.text or 'an action').capitalize()}: {_list(lesson.chosen)}"
        return _list([f"{what.capitalize()}: {name}" for name, what in zip(lesson.chosen, done)])


class Numbers(Form):
    """A number for each of several items."""

    schema: ClassVar[Json] = _of_items(_NUMBER)

    def __init__(self, name: str, hint: str, example: Any, verb: str, whole: bool = False) -> None:
        """Under this name, told with this verb: "Rated a: 4"; `whole` numbers are written as such."""
        self.name, self.hint, self.example, self._verb, self._whole = name, hint, example, verb, whole

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """A finite number for each item."""
        if not isinstance(value, Mapping) or not value:
            raise ValueError(
                f"{self.name}: expected a number for each item, as {{item: number}}, got {describe(value)}"
            )
        numbers = tuple(check_number(f"{self.name}[{describe(name)}]", number) for name, number in value.items())
        return Feedback(self.name, distinct(self.name, list(value)), numbers)

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """The number of each item."""
        values: Sequence[float] = list(map(int, record.values)) if self._whole else record.values
        return {self.name: {decided.names[j]: value for j, value in zip(record.chosen, values)}}

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """The items, the highest number first."""
        return [j for j, _ in sorted(zip(record.chosen, record.values), key=lambda each: -each[1])], []

    def values(self, record: FeedbackRecord, chosen: Sequence[int]) -> tuple[float, ...]:
        """The number of each item."""
        given = dict(zip(record.chosen, record.values))
        return tuple([given[j] for j in chosen])

    def say(self, line: Mapping[str, Any]) -> str:
        """The number of each item."""
        return f"{self.name} {_list([f'{name}: {value:g}' for name, value in line[self.name].items()])}"

    def tell(self, lesson: LessonTold) -> str:
        """The number of each item."""
        numbers = [f"{name}: {value:g}" for name, value in zip(lesson.chosen, lesson.values)]
        return f"{self._verb} {_list(numbers)}"


# ---------------------------------------------------------------------------- choices


class Choice(Form):
    """Which of the first two that were shown is better."""

    name, hint, example = "choice", "which of the first two is better", "first"
    schema: ClassVar[Json] = {"enum": sorted(CHOICES)}
    _words: ClassVar[Mapping[str, str]] = {
        "first": "the first",
        "second": "the second",
        "equal": "both alike",
        "cannot_judge": "cannot judge",
    }

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """Parse a choice: "first", "second", "equal" or "cannot_judge".

        The feedback's value is the place of the better item, 0 or 1, or -1 where neither is better. ValueError for
        any other text.
        """
        if not isinstance(value, str) or value not in CHOICES:
            raise ValueError(f"choice: expected {', '.join(CHOICES)}, got {describe(value)}")
        return Feedback("choice", values=(float(CHOICES[value]),), text=value)

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """As it was given."""
        return {"choice": record.text}

    def compared(self, shown: Sequence[int], record: FeedbackRecord) -> tuple[list[int], list[int]]:
        """The better one, and the other."""
        winner = int(record.values[0])
        return ([shown[winner]], [shown[1 - winner]]) if winner >= 0 else ([], [])

    def say(self, line: Mapping[str, Any]) -> str:
        """Which one."""
        return self._words[line["choice"]]

    def tell(self, lesson: LessonTold) -> str:
        """Which one, over which."""
        if not lesson.chosen:
            return "Could not choose between the two"
        return f"Chose {_list(lesson.chosen)}{_over(lesson, ', not ')}"


class Nothing(Form):
    """Nothing was wanted of what was shown."""

    name, hint, example = "none", "nothing of what was shown was wanted", True
    schema: ClassVar[Json] = {"enum": [True]}

    def parse(self, value: Any, given: Mapping[str, Any]) -> Feedback:
        """True, and nothing else."""
        if value is not True:
            raise ValueError(f"none: expected true, got {describe(value)}")
        return Feedback("none")

    def write(self, record: FeedbackRecord, decided: Decided) -> dict[str, Any]:
        """True."""
        return {"none": True}

    def say(self, line: Mapping[str, Any]) -> str:
        """The answer in words."""
        return "none of these"

    def tell(self, lesson: LessonTold) -> str:
        """The lesson in words, for a history."""
        return "Wanted none of these"


def _list(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, the first of many."""
    told = list(names[:most])
    if len(names) > most:
        return f"{', '.join(told)} and {len(names) - most:,} more"
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else "".join(told)


def _over(lesson: LessonTold, before: str) -> str:
    """What a lesson put something before; "" where there is nothing."""
    return f"{before}{_list(lesson.over)}" if lesson.over else ""


def _beginning(text: str, words: int = 8, most: int = 140) -> str:
    """How a text begins."""
    told = text.split()
    start = " ".join(told[:words]) + (" …" if len(told) > words else "")
    return start if len(start) <= most else f"{start[:most].rstrip()}…"


CLICKS, BETTER, EDIT, THUMB, ACTION, ACTIONS = Clicks(), Better(), Edit(), Thumb(), Action(), Actions()
RATING = Numbers("rating", "how good each item is, a number", {"a": 4, "b": 2}, "Rated")
GRADE = Numbers("grade", "how relevant each item is, a number", {"a": 4, "b": 2}, "Graded")
WHOLE_GRADE = Numbers("grade", "the grade of each item, a whole number from 1", {"a": 4, "b": 2}, "Graded", whole=True)
CHOICE, NONE = Choice(), Nothing()


def by_name(*forms: Form) -> dict[str, Form]:
    """Forms, each under its name."""
    return {form.name: form for form in forms}


FORMS: Mapping[str, Form] = by_name(CLICKS, BETTER, EDIT, THUMB, ACTION, ACTIONS, RATING, GRADE, CHOICE, NONE)
"""The forms that come with heedful, by name."""


def known_forms(interaction: Taking) -> dict[str, Form]:
    """The forms that are read in a loop, by name: heedful's, and those of the loop's interaction. One that is not taken
    is refused by what it says, and not as if nobody knew it."""
    return {**FORMS, **interaction.forms}


def parse_feedback(given: Mapping[str, Any], forms: Mapping[str, Form] = FORMS) -> Feedback:
    """The one form of feedback among the fields of an event. ValueError, by name, where it is none of `forms`."""
    form, beside = None, set[str]()
    for name, value in given.items():
        if value is None:
            continue
        if name not in forms:
            beside.add(name)
        elif form is None:
            form = forms[name]
        else:
            raise ValueError(f"feedback: expected one of {', '.join(forms)}, got {form.name} and {name}")
    if form is None:
        got = f"got {describe(min(beside, key=str))}" if beside else "got none of them"
        raise ValueError(f"feedback: expected one of {', '.join(forms)}, {got}")
    if beside and (extra := beside - form.beside.keys()):
        allowed = ", ".join((form.name, *form.beside))
        raise ValueError(f"feedback: expected {allowed}, got another field: {describe(min(extra, key=str))}")
    return form.parse(given[form.name], given)
