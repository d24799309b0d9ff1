"""The interaction of routes: for each prompt one model is chosen, and people say whether its answer was good.

It is the interaction of loops that show one item, with a price: the score is the probability of a thumb up less a
charge for the cost; a thumb may be graded, as an edit is; and the value of a policy is its thumbs, its cost and the
difference of the two. The model is `model.RouteModel`, `table` reads the table of models, `policies` has what
learners are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from heedful.core.validation import check_count, describe
from heedful.core.wording import percent
from heedful.evaluation.expected import Compared
from heedful.features.columns import Vector
from heedful.jit.kernel import Floats, Ints
from heedful.loop.interactions.coactive.model import Model, tells
from heedful.loop.interactions.contributions import EXACT, sort_parts
from heedful.loop.interactions.one import One, reward
from heedful.loop.interactions.one.model import sigmoid
from heedful.loop.interactions.options import LoopOption
from heedful.loop.interactions.protocol import Compare, ListValue, LoggedAnswer, Proposal, Question
from heedful.loop.interactions.routing import table, texts
from heedful.loop.interactions.routing.model import RouteModel
from heedful.loop.interactions.routing.policies import FEW, POLICIES, is_policy, make_policy, policies_of
from heedful.loop.model import View
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import FeedbackRecord
from heedful.loop.settings import Manifest, Settings
from heedful.results.evaluation import Measure
from heedful.results.explanation import Contribution, Contributions


class Routing(One):
    """Feedback on the answers of models: thumbs, rewards, edits, and choices between two answers."""

    name, words = "routing", texts.WORDS
    default_learner = "posterior"
    setting = "cost_weight"
    model_type: type[Any] = RouteModel
    forms = RouteModel.forms
    ranks = orders = linear = rewarded = False
    arrange = staticmethod(table.arrange)
    policies = POLICIES
    options = (
        LoopOption("route", "Choose a model for each prompt; FILE has the models and their cost."),
        LoopOption(
            "cost_weight",
            "With --route: how much more probable a thumb up has to be to pay for one unit of cost.",
            float,
            "W",
            0,
            "cost_weight",
            partial(table.check_weight, "--cost-weight"),
        ),
        LoopOption(
            "embedding",
            "With --route: the numbers of a prompt's embedding; otherwise its words count.",
            int,
            "N",
            context=table.embeddings,
        ),
    )

    def __init__(self, manifest: Manifest, learner: Any) -> None:
        super().__init__(manifest, learner)
        self.span = -1.0, 1.0

    # ------------------------------------------------------------------------ making a loop

    @classmethod
    def check_settings(cls, settings: Settings) -> dict[str, Any]:
        return super().check_settings(settings) | {
            "cost_weight": table.check_weight("cost_weight", settings.cost_weight)
        }

    @classmethod
    def check_items(cls, manifest: Manifest, rows: Sequence[Mapping[str, Any]]) -> None:
        table.check_models(manifest, rows)

    @classmethod
    def make_learner(cls, spec: str, manifest: Manifest) -> Any:
        if manifest.query is not None:
            raise ValueError(f"query_features: expected none in {cls.words.loop}, got some")
        table.find_costs(manifest)
        learner = super().make_learner(spec, manifest)
        if not tells(learner):
            raise ValueError(f"learner: expected one that learns from thumbs, such as posterior, got {spec}")
        return learner

    def check_context(self, context: Mapping[str, Any]) -> None:
        table.check_request(self.manifest.context, context)

    # ------------------------------------------------------------------------ how it speaks of itself

    @cached_property
    def _costs(self) -> table.Costs:
        return table.find_costs(self.manifest)

    @cached_property
    def _models(self) -> tuple[str, ...]:
        return table.models_of(self.manifest.encoding)

    def gaps(self) -> dict[str, Any]:
        columns = () if self.manifest.context is None else self.manifest.context.columns
        by = ", ".join(column.name for column in columns if column.name != table.WEIGHT and column.kind != "ignored")
        settings = self.manifest.settings
        about = {"cost_weight": settings.cost_weight, "control": percent(settings.control), "columns": by}
        return super().gaps() | about | {"n_models": len(self._models), "first": self._models[0]}

    def example(self, model: Any, shown: Sequence[str]) -> tuple[str, dict[str, Any]]:
        if len(shown) > 1:
            return "prefers the first", {"choice": "first"}
        return "likes it", {"thumb": "up"}

    def example_request(self) -> list[str]:
        around = self.manifest.context
        first = next((c for c in (() if around is None else around.columns) if c.kind != "ignored"), None)
        numbers = isinstance(first, Vector)
        name = "" if first is None else first.name
        return ["--context", f'{{"{name}": [...]}}' if numbers else f'{{"{name}": "THE {name.upper()}"}}']

    # ------------------------------------------------------------------------ the fold

    def order(self, view: View[Any], x: Floats) -> Ints:
        found: Ints = view.model.order(view, x)
        return found

    # ------------------------------------------------------------------------ deciding

    def check_show(self, show: object) -> None:
        check_count("show", show)
        if show not in (1, 2):
            raise ValueError(f"show: expected 1, or 2 to choose between, in {self.words.loop}, got {describe(show)}")

    def propose(self, view: View[Any], asked: Question, eligible: Any, rng: np.random.Generator) -> Proposal:
        made = super().propose(view, asked, eligible, rng)
        charges = self._costs.charge(asked.request.x[made.shown]).tolist()
        return made._replace(carried=made.carried | {"charges": charges})

    # ------------------------------------------------------------------------ taking feedback

    def why_unfit(self, feedback: FeedbackRecord, shown: Sequence[int]) -> str | None:
        if feedback.form in ("thumb", "reward"):
            if not feedback.chosen and len(shown) != 1:
                return f"item: expected the model whose answer is judged, as {len(shown)} were shown, got none"
            if feedback.chosen and feedback.chosen[0] not in shown:
                return "item: expected a model that was shown, as only its answer was seen, got another"
        if feedback.form == "choice" and len(shown) != 2:
            return f"choice: expected a decision that shows two models, got one that shows {len(shown)}"
        return None

    # ------------------------------------------------------------------------ looking back

    def explained(self, view: View[Any], x: Any, place: int) -> dict[str, Any]:
        [thumb], [charge] = view.model.approvals(view, x[[place]]), self._costs.charge(x[[place]])
        return {"thumb": float(thumb), "charge": float(charge)}

    def item_scores(self, view: View[Any], x: Any, places: Sequence[int]) -> Floats | None:
        rows = x[list(places)]
        return np.asarray(view.model.utilities(rows, view.model.margins(view, rows)))

    def contributions(self, view: View[Any], x: Any, place: int) -> Contributions:
        """The parts of the probability sigma(m) are those of its integral from m = 0 on, along a straight line
        (integrated gradients; Sundararajan et al. 2017): weight times value times (sigma(m) - 1/2) / m. The numbers of
        an embedding are one part together, the cost is another."""
        row, w = x[place], view.model.effective(view)
        m = float(view.model.margins(view, x[[place]])[0])
        slope = 0.25 if abs(m) < 1e-6 else (float(sigmoid(np.array([m]))[0]) - 0.5) / m
        level = view.model.level(view)
        counts: dict[str, float] = {} if level == 0.0 else {"the level of all thumbs": level * slope}
        single: dict[str, tuple[float, float]] = {}
        hidden = set(self._costs.columns.tolist())
        for j in np.flatnonzero(row * w).tolist():
            if j in hidden:
                continue
            name = self._grouped.get(j, self.names[j])
            counts[name] = counts.get(name, 0.0) + float(row[j] * w[j]) * slope
            single[name] = (float(row[j]), float(w[j]) * slope) if j not in self._grouped else (1.0, counts[name])
        parts = [Contribution(name, *single.get(name, (1.0, each)), each) for name, each in counts.items()]
        parts.append(Contribution("a thumb up before any answer", 1.0, 0.5, 0.5))
        price, charge = float(self._costs.price(x[[place]])[0]), float(self._costs.charge(x[[place]])[0])
        if charge:
            parts.append(Contribution("cost", price, -charge / price, -charge))
        return Contributions("exact", EXACT, "probability of a thumb up less cost", sort_parts(parts))

    @cached_property
    def _grouped(self) -> dict[int, str]:
        """the name of the part that a feature counts in, by its index, for the numbers of an embedding"""
        around = self.manifest.context
        vectors = [] if around is None else [c for c in around.columns if isinstance(c, Vector)]
        names = {f"{column.name}[{j}] × ": f"{column.name} × " for column in vectors for j in range(column.size)}
        found = {}
        for j, name in enumerate(self.names):
            start = name.find(" × ")
            if start > 0 and (group := names.get(name[: start + 3])):
                found[j] = group + name[start + 3 :]
        return found

    def full_spec(self, spec: str) -> str:
        if is_policy(spec):
            about = "a policy, which Loop.evaluate compares and which cannot serve"
            raise ValueError(f"learner: expected the name of a learner, got {spec}, {about}")
        return spec

    def candidate(self, spec: str) -> Model:
        return make_policy(spec, self.learner, self.manifest) if is_policy(spec) else super().candidate(spec)

    def baselines(self, items: Sequence[str]) -> Sequence[str]:
        return policies_of([name for name in items if name in self._models] if len(items) <= FEW else [])

    def measures(self) -> Sequence[tuple[Measure, Compare]]:
        return *super().measures(), (texts.COST, self._compare_costs)

    def _compare_costs(self, said: LoggedAnswer) -> Compared | None:
        if len(said.shown) != 1 or not said.answer.values:
            return None
        x = said.step.context.x
        prices = self._costs.price(x)
        chosen = [view.model.order(view, x)[:1] for view in said.views]
        cost = [prices[each[0]] if each.size else np.nan for each in chosen]
        return Compared(np.array(cost)[:, None], np.ones(1), most=float(prices.max()))

    def list_measures(self) -> Sequence[tuple[Measure, ListValue]]:
        return (texts.VALUE, self._value), (texts.THUMBS, reward)

    def _value(self, said: LoggedAnswer) -> float | None:
        thumb = reward(said)
        if thumb is None:
            return None
        return max(thumb - float(self._costs.charge(said.step.context.x[list(said.answer.values)])[0]), -1.0)

    # ------------------------------------------------------------------------ reporting

    def score(self, decision: LoggedDecision, answers: Sequence[FeedbackRecord]) -> float | None:
        """Return the thumb on the answer of a single model, less its charge, at least -1."""
        charges, thumb = list(decision.record.proposal.get("charges") or ()), super().score(decision, answers)
        return None if thumb is None or len(charges) != 1 else max(thumb - charges[0], -1.0)
