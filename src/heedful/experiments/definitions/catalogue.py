"""The experiment `catalogue`: a table of items, shown to people with hidden tastes.

It is that of Shivaswamy & Joachims 2015 ([J15]) section 6.1.2 for any table of items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from heedful.experiments.definitions.base import Experiment, Option, PreparedExperiment


class Items(Experiment):
    """The experiment `catalogue`: items of a table with numeric columns, shown one at a time to simulated people."""

    name = "catalogue"
    rounds = 100

    def prepare(
        self,
        items: Annotated[str, Option("A table of items with numeric columns.", metavar="ITEMS.csv")],
        user: Annotated[str, Option("strict:alpha=A, expected, better, better:exact=true or best.")] = "better",
        people: Annotated[int, Option("How many people, each with a hidden taste.", least=1)] = 20,
        *,
        seeds: Sequence[int],
    ) -> PreparedExperiment:
        """Every simulated person has a learner of their own. In each round the learner shows one item, and the person
        answers with an item that they like better, if there is one. Both are then taken out of the items that may be
        shown."""
        from heedful.data.catalogue import load_catalogue
        from heedful.experiments.coactive import catalogue_setting
        from heedful.learners.registry import make_user

        person, table = make_user(user), load_catalogue(items)
        setting = catalogue_setting(table, person, people=people, seeds=seeds)
        note = f"{items}: features are {', '.join(table.features)}; columns that are not numbers are left out"
        title = f"{user}, {len(table.names):,} items, {people:,} people"
        return PreparedExperiment(setting, title, {"user": user}, notes=(note,))
