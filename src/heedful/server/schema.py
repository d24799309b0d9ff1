"""The bodies that the routes take, and the few that they give which are no results, as msgspec structs.

Names of structs and their docstrings appear in the OpenAPI document."""

from __future__ import annotations

import atexit
import gc
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from heedful.core.validation import ALPHA
from heedful.core.wording import OBEYED
from heedful.loop.interactions.fields import all_forms, fields_of
from heedful.loop.interactions.registry import interactions
from heedful.results.answers import Answer
from heedful.server.page_tokens import LENGTH
from heedful.storage.address import NAME

# Types with `Meta` may be freed twice in the interpreter's last collection, which then crashes (msgspec issue 717):
# nothing is left for it to collect.
atexit.register(gc.freeze)

PRINTABLE = rf"^[^{OBEYED}]+$"
LOOP_NAME = f"^{NAME.pattern}$"
Id = Annotated[str, Meta(min_length=1, max_length=200, description="1 to 200 printable characters", pattern=PRINTABLE)]
MOST = 2**62
"""The greatest value of a count."""
MOST_LEARNERS = 10
"""The most learners that are evaluated in one request."""
Number = Annotated[float, Meta(ge=-1e100, le=1e100)]
Time = (
    Annotated[int, Meta(ge=0, lt=2**53, description="microseconds since 1970")]
    | Annotated[str, Meta(description="2026-01-31T12:00:00Z", examples=["2026-01-31T12:00:00Z"])]
)
Object = dict[str, Any]
Context = Annotated[Object, Meta(description="what is known of the request, in a loop with a context")]
Candidates = Annotated[
    list[Any],
    Meta(
        max_length=100_000,
        description="names of items on offer, objects with attributes, or hits of a search engine with _id, _score "
        "and _source, in your order; without it all items. What is not on offer is ranked by your score or last, what "
        "comes twice counts once, and none give an empty list, unless it is strict",
        extra_json_schema={"items": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]}},
    ),
]
Strict = Annotated[
    bool,
    Meta(
        description="whether candidates that are not on offer, come twice, or are none are refused (422); as the "
        "loop's settings say where it is not said"
    ),
]
Prior = Annotated[dict[Id, Number] | list[Number] | UnsetType, Meta(description="your own scores, by name or in order")]
Names = Annotated[list[Id], Meta(min_length=1, max_length=100_000, extra_json_schema={"uniqueItems": True})]


class _Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body of a request, which may have no other fields than those declared."""


class Decide(_Body):
    """A request for a decision: which of the candidates to show to a person, and in which order.

    `id` is the id of the decision: a request that is sent again under it gets the same one. With `deferred`, the
    decision counts as shown once it is activated. `context` describes the request."""

    candidates: Candidates | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    prior: Prior = UNSET
    show: (
        Annotated[int, Meta(ge=1, le=MOST, description="how many people will see; where there are fewer, all of them")]
        | UnsetType
    ) = UNSET
    id: Id | UnsetType = UNSET
    deferred: Annotated[
        bool | UnsetType, Meta(description="made ahead of time: it counts as shown once it is activated")
    ] = UNSET
    repeats: Annotated[
        bool | UnsetType,
        Meta(description="whether what the person answered before may be shown again, in a loop that leaves it out"),
    ] = UNSET
    strict: Strict | UnsetType = UNSET
    after: (
        Annotated[Id, Meta(description="the decision that this one continues: the next page, without what it showed")]
        | UnsetType
    ) = UNSET


class Rank(_Body):
    """A request for the model's order of candidates; nothing is logged."""

    candidates: Candidates | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    prior: Prior = UNSET
    strict: Strict | UnsetType = UNSET


class Record(_Body):
    """A decision that another system made, to be logged so that feedback on it teaches."""

    candidates: Candidates
    shown: Annotated[Names, Meta(description="what people saw, best first")]
    id: Id | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    prior: Prior = UNSET
    probability: Annotated[float, Meta(gt=0, le=1, description="that of showing just this")] | UnsetType = UNSET
    time: Time | UnsetType = UNSET
    strict: Strict | UnsetType = UNSET


def _forms_by_kind() -> str:
    """Return which forms of feedback each kind of loop takes, in words."""
    *most, last = all_forms()
    text = f"in one form: {', '.join(most)} or {last}. docs/feedback.md says what each means."
    taken = []
    for kind in interactions().values():
        *first, last = kind.forms
        taken.append(f"{kind.words.loop} takes {', '.join(first)} and {last}")
    return f"What a person answered to a decision, {text} {'; '.join(taken)[0].upper()}{'; '.join(taken)[1:]}."


def _fields() -> list[tuple[str, Any, Any]]:
    """Return (name, type with JSON schema, default) of the fields of all forms of feedback."""
    fields = fields_of(*all_forms().values())
    return [
        (each.name, Annotated[Any, Meta(extra_json_schema={"description": each.hint, **each.schema})], UNSET)
        for each in fields
    ]


_Forms: Any = msgspec.defstruct("_Forms", _fields(), bases=(_Body,), kw_only=True)


class Feedback(_Forms):
    __doc__ = _forms_by_kind()

    decision: Id
    id: Annotated[Id | UnsetType, Meta(description="yours: sent again it counts once")] = UNSET
    time: Time | UnsetType = UNSET


class Click(_Body):
    """A click on an item of a list that a page shows, as a browser reports it.

    `token` is a JSON Web Token for this decision, which the page's own server signed; it stands in place of a key."""

    token: Annotated[str, Meta(min_length=1, max_length=LENGTH)]
    decision: Id
    item: Annotated[Id, Meta(description="of those shown; it counts as clicked once")]


class Activate(_Body):
    """Says that a deferred decision was shown."""

    decision: Id
    time: Time | UnsetType = UNSET


class Undo(_Body):
    """Takes one piece of feedback back, given its event id, `event`. `id` is the id of this undo: sent again under it,
    it counts once."""

    event: Id
    id: Id | UnsetType = UNSET


class Forget(_Body):
    """Erases a `person`: their decisions, the answers to these, and all that was learned from them."""

    person: Id


class Rollback(_Body):
    """Takes the model back to an earlier version. `id` is the id of this rollback: sent again under it, it counts once.
    `reason` is logged with it."""

    to: Annotated[int, Meta(ge=1, description="the version; feedback and undos after it are left out of the model")]
    id: Id | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=1000)] | UnsetType = UNSET


class Evaluate(_Body):
    """A request to compare other learners with the loop's own on its log."""

    learners: (
        Annotated[
            list[Annotated[str, Meta(max_length=500)]],
            Meta(
                max_length=MOST_LEARNERS,
                description="next to the loop's own; NAME@VERSION is frozen at that version; NAME@VERSION.. "
                "and NAME@2026-01-31T12:00:00Z.. begin to learn there",
                examples=[["second-order:epsilon=0.1"]],
            ),
        ]
        | UnsetType
    ) = UNSET
    alpha: (
        Annotated[
            float, Meta(ge=ALPHA[0], le=ALPHA[1], description="the probability with which an interval may miss; 0.05")
        ]
        | UnsetType
    ) = UNSET


class CorrectStyle(_Body):
    """Corrects by hand what is said of a person's style: one of `deny` and `always`.

    `id` is the event's id: sent again under it, it counts once. Undoing that event takes it back."""

    person: Annotated[Id | UnsetType, Meta(description="whose; without it everybody's")] = UNSET
    deny: Annotated[str, Meta(max_length=100, description="a feature of which nothing is to be said")] | UnsetType = (
        UNSET
    )
    always: Annotated[str, Meta(min_length=1, max_length=500, description="a sentence that is added")] | UnsetType = (
        UNSET
    )
    id: Id | UnsetType = UNSET


Learner = Annotated[str, Meta(max_length=500, examples=["second-order:epsilon=0.1"])]


class StartExperiment(_Body):
    """A request to compare another learner (the candidate) with the loop's learner, on lists that both draft together.

    `id` is the id of the experiment: a request that is sent again under it begins no second one."""

    learner: Learner
    share: (
        Annotated[float, Meta(ge=0, le=1, description="of the people, whose lists both learners draft together; 0")]
        | UnsetType
    ) = UNSET
    frozen: Annotated[bool, Meta(description="whether both sides rank as they do now; false")] | UnsetType = UNSET
    alpha: (
        Annotated[float, Meta(ge=ALPHA[0], le=ALPHA[1], description="how often a verdict may be wrong; 0.05")]
        | UnsetType
    ) = UNSET
    id: Id | UnsetType = UNSET


class StopExperiment(_Body):
    """A request to end the experiment that is running. `id` is the id of this request: sent again under it, it counts
    once."""

    id: Id | UnsetType = UNSET


class Promote(_Body):
    """A request to let another learner serve the loop."""

    learner: Annotated[Learner, Meta(description="without it, the candidate of the experiment")] | UnsetType = UNSET
    force: Annotated[bool, Meta(description="whatever speaks against it; false")] | UnsetType = UNSET
    by: Annotated[str, Meta(max_length=1000, description="who does it")] | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=1000)] | UnsetType = UNSET
    id: Id | UnsetType = UNSET


class NewLoop(_Body):
    """A loop to create, as `heedful init` does."""

    name: Annotated[
        str,
        Meta(pattern=LOOP_NAME, description="1 to 100 letters, digits, . _ -; the first a letter or a digit"),
    ]
    items: Annotated[
        list[Object] | UnsetType,
        Meta(description="each an object; without any, a loop for texts that come with requests, {id: ..., text: ...}"),
    ] = UNSET
    learner: Annotated[
        str | UnsetType, Meta(description="the name of a learner of heedful, with parameters; the kind has a default")
    ] = UNSET
    settings: Annotated[Object | UnsetType, Meta(description="settings of the loop that are not the defaults")] = UNSET
    identifier: Annotated[
        str | UnsetType, Meta(description="the column that names the items; found by its values without it")
    ] = UNSET
    kinds: Annotated[
        dict[str, Literal["number", "logarithm", "category", "tags", "text", "prose", "vector", "ignored"]] | UnsetType,
        Meta(description="the kinds of columns where the guess is wrong"),
    ] = UNSET
    context: Annotated[
        list[Object] | UnsetType,
        Meta(description="examples of contexts; their columns become features of the context"),
    ] = UNSET
    crosses: Annotated[
        list[Annotated[list[str], Meta(min_length=2, max_length=2)]] | Literal["all"] | UnsetType,
        Meta(description="pairs of a column of the context and one of the item whose products are features, or all"),
    ] = UNSET
    query_features: Annotated[
        Object | UnsetType,
        Meta(description="what each request says of each item, by name: [low, high] of a number, a list of texts"),
    ] = UNSET
    features: Annotated[
        bool | UnsetType,
        Meta(description="whether items that are like each other are liked alike, in a loop that can do without"),
    ] = UNSET


class Problem(NamedTuple):
    """An error as problem details (RFC 9457)."""

    type: str
    """which kind of error it is: a URN"""
    title: str
    """that kind in words"""
    status: int
    """the HTTP status"""
    detail: str
    """what was expected and what came"""
    field: str | None = None
    """the field that is to blame"""
    answer: Answer | None = None
    """what became of the event that was rejected"""
    request_id: str | None = None
    """the id of the request: the header X-Request-Id"""


class Ready(NamedTuple):
    """The answer of a server to which requests should be sent."""

    status: Literal["ready"]
    """that they should"""


class Serving(NamedTuple):
    """The answer of a server that is up."""

    status: Literal["ok"]
    """that it is"""
