"""The experiment `letor`: the documents of search queries, ranked for a person whose corrections follow from labels.

It is that of Shivaswamy & Joachims 2015 ([J15]) section 6.1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from heedful.experiments.definitions.base import Experiment, Option, PreparedExperiment


class Letor(Experiment):
    """The experiment `letor`: learning to rank, on files in the format of LETOR (SVMlight with query ids)."""

    name = "letor"
    rounds = "one pass over the queries"

    def prepare(
        self,
        files: Annotated[list[str], Option("LETOR / SVMlight files, plain or gzip.")],
        user: Annotated[
            str,
            Option("strict:alpha=A, expected:alpha=A, noisy:depth=D, position-biased:eta=E or cascade:stop=P."),
        ] = "strict:alpha=0.5",
        k: Annotated[int, Option("How many positions of a ranking count.", least=2)] = 5,
        *,
        seeds: Sequence[int],
    ) -> PreparedExperiment:
        """What the simulated person likes is the least-squares fit of the labels on the features. Each round is one
        query, in random order: the learner ranks its documents, and the person answers with a better ranking. If there
        are more rounds than queries, the queries are gone through again."""
        from heedful.data.letor import load_letor
        from heedful.experiments.coactive import letor_setting
        from heedful.learners.registry import make_user

        setting = letor_setting(load_letor(*files), make_user(user), k=k, seeds=seeds)
        return PreparedExperiment(setting, f"{user}, {setting.rounds:,} queries", {"user": user})
