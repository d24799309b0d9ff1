"""The experiment `movielens`: movies for people who rated some of them.

It is the second experiment of Shivaswamy & Joachims 2012 ([C12]) section 5.2 and 2015 ([J15]) section 6.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from heedful.experiments.definitions.base import Experiment, Option, PreparedExperiment


class MovieLens(Experiment):
    """The experiment `movielens`: movies recommended, one at a time, to users of a MovieLens data set."""

    name = "movielens"
    rounds = 1500

    def prepare(
        self,
        folder: Annotated[Path, Option("MovieLens 1M or 100K, as GroupLens packs it; plain or gzip.")],
        user: Annotated[str, Option("strict:alpha=A, expected, better, better:exact=true or best.")] = "better",
        people: Annotated[int, Option("How many users of the other half take part; 0: all of them.", least=0)] = 100,
        split: Annotated[int, Option("The seed by which users are divided into halves.", least=0)] = 0,
        dimension: Annotated[int, Option("How many features a movie has.", least=0, default="by cross-validation")] = 0,
        regularisation: Annotated[
            float, Option("The penalty on the size of features.", least=0.0, default="by cross-validation")
        ] = 0.0,
        penalty: Annotated[
            str, Option("The penalty: plain, the same for every movie, or weighted by its number of ratings.")
        ] = "plain",
        *,
        seeds: Sequence[int],
    ) -> PreparedExperiment:
        """The users are divided into two random halves. The ratings of one half give every movie its features, by
        matrix factorisation. Each person of the other half has a learner of their own, and likes movies by the
        least-squares fit of their own ratings on these features. In each round a movie is recommended, and the person
        answers with one that they like better, if there is one. Both are then taken out of the movies that may be
        shown."""
        from heedful.data.movielens import load_movielens
        from heedful.experiments.movielens import make_movie_world, movie_setting
        from heedful.learners.registry import make_user

        person, ratings = make_user(user), load_movielens(folder)
        world = make_movie_world(
            ratings, split=split, dimension=dimension, regularisation=regularisation, penalty=penalty
        )
        m, N = world.X.shape
        note = f"{folder}: {m:,} movies with {N} features ({penalty} penalty {world.regularisation:g})"
        setting = movie_setting(world, person, people=people, seeds=seeds)
        title = f"{user}, {m:,} movies, {people or world.people.size:,} people"
        return PreparedExperiment(setting, title, {"user": user}, notes=(f"{note}, from half the users",))
