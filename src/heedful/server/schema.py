"""The bodies that the routes take and give, as msgspec structs. The file is long because it is one list.

Names of structs and their docstrings appear in the OpenAPI document."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from heedful.core.wording import OBEYED
from heedful.loop.interactions import schemas as kinds
from heedful.loop.interactions.forms import FORMS
from heedful.loop.interactions.registry import interactions
from heedful.loop.interactions.schemas import Difference, Learned

PRINTABLE = rf"^[^{OBEYED}]+$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""The pattern of the name of a loop."""
Id = Annotated[str, Meta(min_length=1, max_length=200, description="1 to 200 printable characters", pattern=PRINTABLE)]
MOST = 2**62
"""The greatest value of a count."""
Number = Annotated[float, Meta(ge=-1e100, le=1e100)]
Time = (
    Annotated[int, Meta(ge=0, lt=2**53, description="microseconds since 1970")]
    | Annotated[str, Meta(description="2026-01-31T12:00:00Z", examples=["2026-01-31T12:00:00Z"])]
)
Object = dict[str, Any]
ALIKE = "other people in the log whose names differ in case or blanks alone"
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
Unknown = Annotated[list[str], Meta(description="candidates that are not on offer; only where there are some")]
Undeclared = Annotated[
    list[str],
    Meta(description="fields of candidates and of the context that are no features of the loop; only where some came"),
]
Names = Annotated[list[Id], Meta(min_length=1, max_length=100_000, extra_json_schema={"uniqueItems": True})]


class _Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body of a request, which may have no other fields than those declared."""


class Decide(_Body):
    """A request for a decision: which of the candidates to show to a person, and in which order.

    `id` is the id of the decision: a request that is sent again under it gets the same one. With `deferred`, the
    decision counts as shown once it is activated. `context` describes the request."""

    candidates: Candidates | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Object | UnsetType = UNSET
    prior: Annotated[
        dict[Id, Number] | list[Number] | UnsetType, Meta(description="your own scores, by name or in order")
    ] = UNSET
    show: Annotated[int, Meta(ge=1, le=MOST, description="where there are fewer, all of them")] | UnsetType = UNSET
    id: Id | UnsetType = UNSET
    deferred: bool | UnsetType = UNSET
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
    context: Object | UnsetType = UNSET
    prior: Annotated[
        dict[Id, Number] | list[Number] | UnsetType, Meta(description="your own scores, by name or in order")
    ] = UNSET
    strict: Strict | UnsetType = UNSET


class Ranking(msgspec.Struct, kw_only=True):
    """All candidates, best first."""

    ranking: list[str]
    version: Annotated[int, Meta(description="of the model that ranks them so")]
    unknown: Unknown | UnsetType = UNSET
    undeclared: Undeclared | UnsetType = UNSET


class Record(_Body):
    """A decision that another system made, to be logged so that feedback on it teaches."""

    candidates: Candidates
    shown: Names
    id: Id | UnsetType = UNSET
    person: Id | UnsetType = UNSET
    context: Object | UnsetType = UNSET
    prior: dict[Id, Number] | list[Number] | UnsetType = UNSET
    probability: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    time: Time | UnsetType = UNSET
    strict: Strict | UnsetType = UNSET


class Decision(msgspec.Struct, kw_only=True):
    """A decision: what to show, best first, and how that came about.

    `probability` is that of showing exactly this list, null if it is unknown; `version` is that of the model, `seq` the
    sequence number in the log. `arm` says what decided: learned (the model), control (your order, or random, for
    comparison), sampled (a random draw around the model's order), interleaved (two learners in turn) or imported
    (another system)."""

    id: str
    shown: list[str]
    probability: float | None
    version: int
    arm: Literal["learned", "control", "sampled", "interleaved", "imitated", "imported"]
    seq: int
    predicted: Annotated[
        list[float | None] | UnsetType,
        Meta(
            description="of each that is shown: its grade, its rating, or how likely it is to be chosen, as the kind "
            "of the loop has it; null of what is unknown"
        ),
    ] = UNSET
    unknown: Unknown | UnsetType = UNSET
    undeclared: Undeclared | UnsetType = UNSET


def _forms_by_kind() -> str:
    """Return which forms of feedback each kind of loop takes, in words."""
    *most, last = FORMS
    told = f"in one form: {', '.join(most)} or {last}. docs/feedback.md says what each means."
    taken = []
    for kind in interactions().values():
        *first, last = kind.forms
        taken.append(f"{kind.loop} takes {', '.join(first)} and {last}")
    return f"What a person answered to a decision, {told} {'; '.join(taken)[0].upper()}{'; '.join(taken)[1:]}."


def _fields() -> list[tuple[str, Any, Any]]:
    """Return (name, type with JSON schema, default) of the fields of all forms of feedback."""
    schemas = {
        name: schema for form in FORMS.values() for name, schema in {form.name: form.schema, **form.more_fields}.items()
    }
    return [(name, Annotated[Any, Meta(extra_json_schema=dict(schema))], UNSET) for name, schema in schemas.items()]


_Forms: Any = msgspec.defstruct("_Forms", _fields(), bases=(_Body,), kw_only=True)


class Feedback(_Forms):
    __doc__ = _forms_by_kind()

    decision: Id
    id: Annotated[Id | UnsetType, Meta(description="yours: sent again it counts once")] = UNSET
    time: Time | UnsetType = UNSET


class Click(_Body):
    """A click on an item of a list that a page shows, as a browser reports it.

    `token` is a JSON Web Token for this decision, which the page's own server signed; it stands in place of a key."""

    token: Annotated[str, Meta(min_length=1, max_length=4096)]
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
                max_length=10,
                description="next to the loop's own; NAME@VERSION is frozen at that version; NAME@VERSION.. "
                "and NAME@2026-01-31T12:00:00Z.. begin to learn there",
                examples=[["second-order:epsilon=0.1"]],
            ),
        ]
        | UnsetType
    ) = UNSET
    alpha: (
        Annotated[float, Meta(ge=1e-6, le=0.5, description="the probability with which an interval may miss; 0.05")]
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


class Answer(msgspec.Struct, kw_only=True):
    """What became of an event: applied, a duplicate, or rejected with a reason.

    `event` is its id; `seq` its sequence number in the log, null if it was rejected; `version` the model's after it.
    `late`: it is feedback that came later than the setting `late_after`. `learned`: it changed what the model is made
    of; if not, `reason` says why."""

    status: Literal["applied", "duplicate", "rejected"]
    event: str
    seq: int | None
    version: int
    late: bool
    learned: bool
    reason: str | None


class RolledBack(msgspec.Struct):
    """The result of taking the model back to an earlier version."""

    answer: Answer
    to: int
    left_out: Annotated[int, Meta(description="how many pieces of feedback do not count any more")]
    restored: Annotated[int, Meta(description="how many count again")]
    forgotten: Annotated[int, Meta(description="people who were forgotten after that version, and stay so")]


class NewLoop(_Body):
    """A loop to create, as `heedful init` does."""

    name: Annotated[str, Meta(pattern=NAME)]
    items: list[Object] | UnsetType = UNSET
    learner: str | UnsetType = UNSET
    settings: Object | UnsetType = UNSET
    identifier: str | UnsetType = UNSET
    kinds: dict[str, Literal["number", "category", "text", "prose", "vector", "ignored"]] | UnsetType = UNSET
    context: list[Object] | UnsetType = UNSET
    crosses: list[Annotated[list[str], Meta(min_length=2, max_length=2)]] | Literal["all"] | UnsetType = UNSET
    query_features: Annotated[
        Object | UnsetType,
        Meta(description="what each request says of each item, by name: [low, high] of a number, a list of texts"),
    ] = UNSET
    features: Annotated[
        bool | UnsetType,
        Meta(description="whether items that are like each other are liked alike, in a loop that can do without"),
    ] = UNSET


class Agreement(msgspec.Struct):
    """The share of cases in which a learner agrees with the caller's order, with an interval that holds at any time."""

    share: Annotated[float | None, Meta(description="null where nothing can be compared")]
    low: float
    high: float


class Apprentice(msgspec.Struct, kw_only=True):
    """How well the learner of a loop imitates the caller's order, and whether it may serve in its place."""

    learner: str
    serves: Annotated[int, Meta(description="the event of the promotion since which a learner serves; 0 before that")]
    asked: Annotated[float, Meta(description="the share of pairs that has to be agreed on: the setting agreement")]
    pairs: Annotated[Agreement, Meta(description="pairs of a list that the learner puts in the caller's order")]
    first: Annotated[Agreement, Meta(description="lists in which the learner has the same first item")]
    decisions: Annotated[int, Meta(description="recent ones, that are compared")]
    since: Annotated[int, Meta(description="the event after which these came")]
    alpha: Annotated[float, Meta(description="how often an interval ever misses")]
    against_promotion: Annotated[list[str], Meta(description="a sentence each; empty if it may be promoted")]
    ready: Annotated[bool, Meta(description="whether it asks to be promoted")]
    told: Annotated[str, Meta(description="all of this in a few sentences")]


class Loop(kinds.Loop, kw_only=True):
    """The description of a loop: its learner, features, settings and counts."""

    name: str
    learner: str
    identifier: Annotated[str, Meta(description="the attribute that names an item")]
    version: int
    features: Annotated[int, Meta(description="N: numbers that an item has")]
    names: Annotated[list[str], Meta(description="of the features, crosses included; the caller's score the last")]
    items: int
    events: dict[str, int]
    settings: Object
    caveats: list[str]
    notes: list[str]
    unknown: dict[str, int]
    query_features: Annotated[
        list[str] | UnsetType, Meta(description="names of what each request says of each item, where it says anything")
    ] = UNSET
    apprentice: Annotated[Apprentice | UnsetType, Meta(description="in a loop with the setting apprentice")] = UNSET


class Loops(msgspec.Struct):
    """The names of the loops of the key's tenant."""

    loops: list[str]


class Put(msgspec.Struct):
    """How many items were new or changed."""

    put: int


class Items(msgspec.Struct):
    """A page of the names of items on offer, and how many there are in all."""

    items: list[str]
    total: int


class Withdrawn(msgspec.Struct):
    """Whether the item was on offer."""

    withdrawn: bool


class Forgotten(msgspec.Struct):
    """The result of forgetting a person: how much was erased."""

    events: int
    exports: list[str]
    version: int
    erased: Annotated[bool, Meta(description="false where somebody else is reading: the bytes go when nobody is")]
    unreached: Annotated[list[str], Meta(description="what the loop cannot erase them from, in words")]
    alike: Annotated[list[str], Meta(description=ALIKE)]


class PersonEvents(msgspec.Struct):
    """What the loop has about a person: the events that DELETE would erase, as the lines of an export."""

    person: str
    events: list[Object]
    alike: Annotated[list[str], Meta(description=ALIKE)]


class Weights(msgspec.Struct):
    """The weight of each feature, by name."""

    version: int
    weights: dict[str, Learned]


class Part(msgspec.Struct):
    """What one feature adds to the lead of the first item over the second: weight times difference."""

    name: str
    weight: Learned
    first: float
    second: float
    counts: Learned


class Moved(msgspec.Struct):
    """By how much one piece of feedback moved the lead of the first item over the second."""

    event: str
    seq: int
    form: str
    by: Learned


class Explanation(msgspec.Struct, kw_only=True):
    """Why the first item of a decision stands before the second, by the model of that time."""

    decision: str
    arm: str
    first: str
    second: str | None
    because: str
    margin: Learned
    features: list[Part]
    lessons: list[Moved]
    prediction: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="of the first, and from how much, by the names of the kind of feedback; where one is made"),
    ] = UNSET


class Contribution(msgspec.Struct):
    """What one feature of an item contributes to the item's score."""

    name: str
    value: float
    weight: Annotated[Learned, Meta(description="null where the feature was removed instead, and of parts of a mean")]
    counts: Learned


class Influence(msgspec.Struct):
    """By how much one piece of feedback moved the score of an item, and its lead over the next item."""

    event: str
    seq: int
    form: str
    decision: Annotated[str, Meta(description="that it answers")]
    by: Learned
    lead: Annotated[float | None, Meta(description="null where there is no other item")]


class Why(msgspec.Struct, kw_only=True):
    """Why an item of a decision had its score, by the model of that time."""

    decision: str
    item: str
    arm: str
    place: Annotated[int | None, Meta(description="in what was shown, 1 the first; null if it was not shown")]
    version: Annotated[int, Meta(description="of the model that made the decision")]
    score: Annotated[float | None, Meta(description="null where the learner gives items no score")]
    score_is: Annotated[str, Meta(description="what the score is, in words")]
    next: Annotated[str | None, Meta(description="what the item is compared with")]
    lead: Annotated[float | None, Meta(description="the score less that of `next`")]
    features_by: Literal["exact", "gradient", "removed", "none"]
    features_about: Annotated[str, Meta(description="the method in words, or why there are no contributions")]
    features: list[Contribution]
    events_by: Literal["leave-one-out", "additive", "movement", "none"]
    events_about: Annotated[str, Meta(description="the method in words, with its budget, or why there are none")]
    events: list[Influence]
    considered: Annotated[int, Meta(description="the pieces of feedback that the model was made of and still count")]
    undone_since: Annotated[int, Meta(description="those of them that were undone since, which are not listed")]


class Measure(msgspec.Struct, kw_only=True):
    """A measure by which learners are compared on the log."""

    name: str
    about: Annotated[str, Meta(description="what it is the mean of")]
    missing: Annotated[str, Meta(description="why a log may not tell it")]
    remedy: str
    low: float
    high: float
    more_is_better: bool
    most_weight: float
    once: Annotated[bool, Meta(description="whether a decision counts with its first answer alone")]
    decisive: Annotated[bool, Meta(description="whether a learner that is better by it is the better one to serve")]
    counts: Annotated[str, Meta(description="what `comparisons` of a value counts, as a noun")]


class Value(msgspec.Struct, kw_only=True):
    """The value of a learner by one measure, with its interval."""

    measure: str
    value: Annotated[float | None, Meta(description="null if the log cannot tell")]
    low: Annotated[float | None, Meta(description="the ends of an interval")]
    high: float | None
    comparisons: int
    people: int
    effective: Annotated[float, Meta(description="the effective sample size of the comparisons")]
    difference: Annotated[float | None, Meta(description="to the loop's own learner; null for that one itself")]
    difference_low: float | None
    difference_high: float | None
    verdict: Literal["better", "worse", "cannot be told", ""]
    refused: Annotated[str, Meta(description='why the log cannot tell; "" if it can')]
    remedy: str
    mean_weight: Annotated[
        float | UnsetType,
        Meta(
            description="of lists, weighted by how likely the learner was to show them; 1 if the log supports them all"
        ),
    ] = UNSET
    unsupported: Annotated[
        float | UnsetType, Meta(description="the share of what it would show that is not in the log")
    ] = UNSET
    warning: Annotated[str, Meta(description='why it should not be trusted; "" if nothing speaks against it')]
    decisions_needed: Annotated[
        int | UnsetType,
        Meta(description="about how many decisions it takes to tell the difference, if it stays as it was measured"),
    ] = UNSET


class PositionBias(msgspec.Struct, kw_only=True):
    """How much people look at a place of a list compared with the place above it, whatever stands there.

    `clicks` is how many clicks there were on the two items, shown in either order at random."""

    place: Annotated[int, Meta(description="the upper of the two, from 1")]
    ratio: Annotated[
        float | None,
        Meta(description="the clicks at the lower place for each at the upper one, of the same items; null: infinite"),
    ]
    low: Annotated[float | None, Meta(description="the ends of an interval")]
    high: float | None
    clicks: int


class LearnerEvaluation(msgspec.Struct, kw_only=True):
    """One learner's values on the log, and what it would have learned from it."""

    learner: str
    lessons: int
    weights: dict[str, Learned]
    values: list[Value]


class Evaluation(msgspec.Struct, kw_only=True):
    """What the log says about learners, the loop's own first."""

    learners: list[LearnerEvaluation]
    measures: list[Measure]
    alpha: float
    after: Annotated[int, Meta(description="answers are compared from this version on")]
    first: Annotated[str, Meta(description="what the first is, with which the others are compared")]
    position_bias: Annotated[
        list[PositionBias] | UnsetType, Meta(description="how much people look at each place, if the log can tell")
    ] = UNSET
    decisions: Annotated[int, Meta(description="how many decisions were answered, on which all of it rests")]


class Arm(msgspec.Struct):
    """The lists of one arm: made by the model (learned), or left in the caller's order (control)."""

    shown: int
    answered: Annotated[int, Meta(description="got feedback that says what was preferred, or that nothing was")]
    mean: Annotated[
        float | None,
        Meta(
            description="of how good it was, over those answered: 1 / the place of what was preferred, or as the "
            "kind of feedback has it"
        ),
    ]


class Window(msgspec.Struct):
    """Consecutive lists: one point of a line over time."""

    seq: int
    time: Annotated[int, Meta(description="of the last, in microseconds since 1970")]
    learned: Arm
    control: Arm


class Counts(msgspec.Struct):
    """How many pieces of feedback a loop got: `given` in all, of which `late` came more than `late_after` seconds (a
    setting) after what they answer was shown. A piece that was undone or rolled back counts in `undone` alone."""

    given: int
    empty: Annotated[int, Meta(description="there is no lesson in it")]
    contradictory: Annotated[int, Meta(description="the model, as it is now, has it the other way round")]
    late: int
    undone: int


class At(msgspec.Struct):
    """The mean regret of the first t answered lists (how much more the best list was worth than the one shown), with
    its bound."""

    t: int
    regret: float
    bound: float | None


class Measured(msgspec.Struct):
    """The regret of a loop that a simulated person teaches.

    `lists` is how many learned lists were answered; `regret` is the mean over them of how much more the best list was
    worth than the one shown, `bound` the theorem's bound on it."""

    lists: int
    regret: float | None
    bound: float | None
    unbound: Annotated[str, Meta(description="why there is no bound; empty where there is one")]
    curve: list[At]


class Share(msgspec.Struct):
    """Learned lists, or control lists (in the caller's order), and the share of them with a click; or the thumbs on
    them, and the share of thumbs up."""

    total: int
    yes: int
    share: float | None
    low: Annotated[float | None, Meta(description="of the 95 % interval; null where chance cannot be told")]
    high: float | None


class Shares(msgspec.Struct):
    """A share of learned lists and of control lists (in the caller's order)."""

    learned: Share
    control: Share
    difference: Annotated[Difference | None, Meta(description="of the shares: learned less control")]
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]


class SampleRatio(msgspec.Struct):
    """Whether learned and control lists are answered equally often. If they are not (`differs`), what was answered is
    not compared.

    `learned` and `control` are the shares of lists with an answer; `lists` is how many lists are compared, shown to
    `people` people."""

    learned: float | None
    control: float | None
    lists: int
    people: int
    e_value: Annotated[
        float, Meta(description="reaches 1 / alpha with probability alpha at most, ever, if they are answered alike")
    ]
    alpha: float
    differs: bool
    said: Annotated[str, Meta(description="the shares in words and, if they differ, why that matters and what to do")]


class PredictionWindow(msgspec.Struct):
    """Consecutive `answers`: one point of a line over time. `score` is the mean of what the predictions of these
    answers score, `baseline` that of the baseline; `seq` is the sequence number of the last."""

    seq: int
    time: Annotated[int, Meta(description="of the last, in microseconds since 1970")]
    answers: int
    score: float | None
    baseline: float


DETAILS: list[Any] = [details for kind in interactions().values() if (details := kind.prediction_details()) is not None]
"""The structs of what kinds add to the report of their predictions."""


class PredictionReport(msgspec.Struct):
    """How well answers were predicted, each before it was known, compared with a baseline on the same answers."""

    measure: Annotated[str, Meta(description="what a score is, in words")]
    lower_is_better: bool
    compared_with: Annotated[str, Meta(description="what the baseline predicts, in words")]
    answers: Annotated[int, Meta(description="how many are compared")]
    score: Annotated[float | None, Meta(description="the mean of what predictions score")]
    baseline: Annotated[float | None, Meta(description="the mean of what the baseline scores")]
    difference: Annotated[Difference | None, Meta(description="score less baseline")]
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]
    series: list[PredictionWindow]
    details: Annotated[
        dict[str, Any],
        Meta(
            description="what only this kind of feedback has to say",
            extra_json_schema={
                "anyOf": [
                    *({"$ref": f"#/components/schemas/{each.__name__}"} for each in DETAILS),
                    {"type": "object", "description": "of a kind of feedback of your own"},
                ]
            },
        ),
    ] = {}


class Report(msgspec.Struct, kw_only=True):
    """A report on what a loop learned, measured from its log."""

    version: int
    decisions: Annotated[int, Meta(description="the newest, that were looked at")]
    whole: Annotated[bool, Meta(description="whether those are all")]
    since: Annotated[int | None, Meta(description="when the oldest was made, in microseconds since 1970")]
    imported: int
    waiting: Annotated[int, Meta(description="deferred and never activated: not shown")]
    learned: Arm
    control: Arm
    difference: Difference | None
    unsaid: Annotated[str, Meta(description="why there is no difference; empty where there is one")]
    series: list[Window]
    feedback: Counts
    simulation: Measured | None
    prediction: Annotated[PredictionReport | UnsetType, Meta(description="where answers are predicted")] = UNSET
    thumbs: Annotated[Shares | UnsetType, Meta(description="where thumbs were given")] = UNSET
    unknown: Annotated[
        int | UnsetType, Meta(description="decisions that were asked about something that was not on offer")
    ] = UNSET
    apprentice: Annotated[Apprentice | UnsetType, Meta(description="in a loop with the setting apprentice")] = UNSET
    sample_ratio: Annotated[
        SampleRatio | UnsetType, Meta(description="where lists are compared and silence is no answer")
    ] = UNSET
    click_through: Annotated[
        Shares | UnsetType, Meta(description="the share of all lists in which something was clicked, if anything was")
    ] = UNSET
    none_after: Annotated[
        float | UnsetType, Meta(description="seconds after which silence is the answer none: the setting none_after")
    ] = UNSET


Moment = Annotated[int | None, Meta(description="in microseconds since 1970")]


class HealthWindow(msgspec.Struct, kw_only=True):
    """Counts and errors of the feedback on consecutive `decisions`: one point of a line over time.

    The first was shown at `since` and the last at `until`, in microseconds since 1970; `answered` have any feedback so
    far, `feedback` is the number of pieces. `late_after` is a setting of the loop, in seconds. `slack` is the mean
    utility by which corrections gain less than `Corrections.alpha` says; null without corrections."""

    since: int
    until: int
    decisions: int
    answered: int
    settled: Annotated[int, Meta(description="shown twice `late_after` before the last event, or longer ago")]
    unanswered: Annotated[int, Meta(description="of those settled: no feedback in that time")]
    late: Annotated[int, Meta(description="of those settled: feedback in that time, but later than `late_after`")]
    delay: Annotated[float | None, Meta(description="median seconds from a decision to its first feedback")]
    feedback: int
    empty: Annotated[int, Meta(description="pieces of feedback with nothing to learn")]
    repeated: Annotated[int, Meta(description="questions that a person answered who had answered them before")]
    contradictory: Annotated[int, Meta(description="of those, answered otherwise than the last time")]
    error: Annotated[float | None, Meta(description="mean error of predictions, from 0 to 1")]
    alpha: Annotated[float | None, Meta(description="what corrections gained, as a share of the greatest gain")]
    slack: float | None


class Signal(msgspec.Struct, kw_only=True):
    """One thing that may be wrong with feedback: an `alarm` if `evidence` is at least 1 / `error_rate`.

    `people` is how many people the values come from; `after` is the mean since the likeliest change, or over all if
    there is none."""

    name: Literal["unanswered", "late", "empty", "contradictory", "one person", "error", "sample ratio"]
    alarm: bool
    about: Annotated[str, Meta(description="what is compared")]
    said: Annotated[str, Meta(description="what was found")]
    evidence: Annotated[
        float,
        Meta(description="reaches 1 / error_rate with probability error_rate at most, ever, if nothing is wrong"),
    ]
    error_rate: float
    values: Annotated[int, Meta(description="how many values there are; people and rounds are compared, so fewer")]
    people: int
    before: Annotated[float | None, Meta(description="the mean before the likeliest change")]
    after: float | None
    since: Annotated[int | None, Meta(description="of the likeliest change, in microseconds since 1970")]
    remedy: Annotated[str, Meta(description="what to do next")]


class Corrections(msgspec.Struct, kw_only=True):
    """How much corrected lists gain, by the utility of the present model.

    `answers` is how many corrected a list that the model could improve. `alpha` is the sum of the gains over that of
    the greatest possible gains, `slack` the mean utility by which gains fall short of alpha times the greatest (0 where
    they do not)."""

    answers: int
    alpha: float
    slack: float
    worse: Annotated[float, Meta(description="the share of answers that the model likes less than what was shown")]


class CalibrationBin(msgspec.Struct, kw_only=True):
    """Predictions from `low` to `high`, and how the outcomes agree: one point of a calibration curve.

    `answers` is how many answers have predictions in this interval, `predicted` the mean of these predictions, `came`
    the mean of the outcomes, in the same units, and `came_low` to `came_high` a confidence interval for it, which holds
    at the level asked for however often it is looked at."""

    low: float
    high: float
    answers: int
    predicted: float
    came: float
    came_low: Annotated[
        float, Meta(description="the ends of a confidence interval that holds however often it is looked at")
    ]
    came_high: float


class Largest(msgspec.Struct, kw_only=True):
    """The people who count the most: `person` gives the most feedback, `mover` moves the model most; null where nobody
    has a name.

    `people` is how many people gave feedback."""

    people: int
    person: str | None
    feedback: Annotated[float, Meta(description="the share of the feedback that is theirs")]
    mover: str | None
    movement: Annotated[float, Meta(description="the share of the model's movement that is theirs")]


class StyleStatement(msgspec.Struct, kw_only=True):
    """What a person's edits say about one feature of style."""

    feature: str
    told: Annotated[str, Meta(description="how they want texts; empty if that cannot be told")]
    edits: Annotated[int, Meta(description="in how many edits it could be counted")]
    more: Annotated[int, Meta(description="how many raised it")]
    fewer: Annotated[int, Meta(description="how many lowered it")]
    occasions: Annotated[int, Meta(description="how many could have gone the way that most went")]
    change: Annotated[
        float | None, Meta(description="the median change, as a share, over all edits with some of it in the draft")
    ]
    evidence: Annotated[float, Meta(description="for the direction of most, at most 1e12; 1 is none")]
    denied: Annotated[bool, Meta(description="whether it was denied by hand")]


class StyleRule(msgspec.Struct):
    """A correction by hand that is in effect; either `deny` or `always` is empty."""

    event: str
    person: str | None
    deny: str
    always: str


class Style(msgspec.Struct, kw_only=True):
    """What a person's edits of texts tell about the style that they want."""

    person: str | None
    prompt: Annotated[str, Meta(description="in words, ready for a prompt; empty if nothing can be told")]
    edits: Annotated[int, Meta(description="how many could be read")]
    english: Annotated[int, Meta(description="how many are of English texts, in which words are counted")]
    unread: Annotated[int, Meta(description="how many have no texts to compare")]
    alpha: Annotated[float, Meta(description="the probability, at most, that any statement is ever false")]
    statements: list[StyleStatement]
    rules: list[StyleRule]
    described: Annotated[list[str], Meta(description="always empty over HTTP")]
    unsaid: Annotated[str, Meta(description="why nothing can be told; empty where something can")]


class FeedbackHealth(msgspec.Struct, kw_only=True):
    """Whether feedback is sound, and whether the model still predicts it.

    `decisions` is how many were shown, the first at `since`; `until` is when the last event was. `feedback` is how many
    pieces are in effect. Feedback is late after `late_after` seconds."""

    decisions: int
    feedback: int
    since: Moment
    until: Moment
    alpha: Annotated[float, Meta(description="the probability, at most, that sound feedback ever raises any alarm")]
    late_after: float
    delay: Annotated[float | None, Meta(description="seconds that 95 % of first answers stay below")]
    windows: list[HealthWindow]
    signals: list[Signal]
    corrections: Corrections | None
    uncorrected: Annotated[str, Meta(description="why there are no corrections; empty where there are")]
    calibration: list[CalibrationBin]
    uncalibrated: Annotated[str, Meta(description="why there are no bins; empty where there are")]
    largest: Largest
    floods: Annotated[str, Meta(description="what can be seen of a flood")]


class Problem(msgspec.Struct):
    """An error as problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: Annotated[str | UnsetType, Meta(description="that is to blame")] = UNSET
    answer: Annotated[Answer | UnsetType, Meta(description="of what was rejected: what became of it")] = UNSET


class Health(msgspec.Struct):
    """The answer of a server that is up."""

    status: Literal["ok"]


@cache
def names(body: type[msgspec.Struct]) -> frozenset[str]:
    """Return the names of the fields that a body may have."""
    return frozenset(body.__struct_fields__)
