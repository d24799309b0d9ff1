"""The experiment `letor`: the documents of search queries, ranked for a person whose corrections follow from labels.

It is that of Shivaswamy & Joachims 2015 ([J15]) section 6.1.1.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from heedful.experiments.definitions.base import (
    Float32,
    GridExperiment,
    Option,
    PreparedExperiment,
    checksums,
    matching_files,
)

if TYPE_CHECKING:
    from heedful.experiments.setting import Setting


class Letor(GridExperiment):
    """The experiment `letor`: learning to rank, on files in the format of LETOR (SVMlight with query ids)."""

    name = "letor"
    rounds = "one pass over the queries"
    syntax = "letor = [...]"
    grid_help = 'Ranking data: data = {letor = ["letor4-mq2008/S*.txt.gz"]}, k = 5 positions that count.'
    keys: ClassVar[Mapping[str, type]] = {"letor": list}
    grid_keys = ("k",)
    act = "rank"
    all_seeds = True

    def prepare(
        self,
        files: Annotated[list[str], Option("LETOR / SVMlight files, plain or gzip.")],
        user: Annotated[
            str,
            Option("strict:alpha=A, expected:alpha=A, noisy:depth=D, position-biased:eta=E or cascade:stop=P."),
        ] = "strict:alpha=0.5",
        k: Annotated[int, Option("How many positions of a ranking count.", least=2)] = 5,
        float32: Float32 = False,
        *,
        seeds: Sequence[int],
    ) -> PreparedExperiment:
        """What the simulated person likes is the least-squares fit of the labels on the features. Each round is one
        query, in random order: the learner ranks its documents, and the person answers with a better ranking. If there
        are more rounds than queries, the queries are gone through again."""
        from heedful.data.letor import load_letor
        from heedful.experiments.coactive import letor_setting
        from heedful.learners.registry import make_user

        person, dtype = make_user(user), "float32" if float32 else "float64"
        setting = letor_setting(load_letor(*files), person, k=k, seeds=seeds, dtype=dtype)
        return PreparedExperiment(setting, f"{user}, {setting.rounds:,} queries", {"user": user})

    def check(
        self, where: str, folder: Path, data: Mapping[str, Any], grid: Mapping[str, object]
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        files = matching_files(where, "letor", folder, data["letor"], single=False)
        return tuple(map(str, files)), {"kind": "letor", "sha256": checksums(files), "k": grid.get("k", 5)}

    def blank(self, values: Mapping[str, Any]) -> Setting:
        from heedful.experiments.coactive import COACTIVE
        from heedful.experiments.setting import blank_setting
        from heedful.spaces.ranking import Ranking

        return blank_setting(Ranking(values["k"]), COACTIVE)

    def setting(self, files: tuple[str, ...], values: Mapping[str, Any], user: str, seeds: Sequence[int]) -> Setting:
        return _setting(files, tuple(values["sha256"]), user, values["k"], tuple(seeds))


@functools.lru_cache(maxsize=1)
def _setting(
    files: tuple[str, ...],
    sha256: tuple[str, ...],  # only part of the key
    user: str,
    k: int,
    seeds: tuple[int, ...],
) -> Setting:
    from heedful.data.letor import load_letor
    from heedful.experiments.coactive import letor_setting
    from heedful.learners.registry import make_user

    return letor_setting(load_letor(*files), make_user(user), k=k, seeds=seeds)
