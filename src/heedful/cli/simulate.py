"""`heedful simulate`: learners against a simulated person, on ranking data, a table of items or MovieLens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.console import note, reading_input
from heedful.cli.simulate_common import (
    FirstSeed,
    Float32,
    Interpreted,
    Jobs,
    Json,
    Learners,
    Out,
    Plot,
    Rounds,
    Seeds,
    SimulateRequest,
    check_request,
    run_and_tell,
)


def letor(
    files: Annotated[list[str], typer.Argument(help="LETOR / SVMlight files, plain or gzip.")],
    user: Annotated[
        str,
        typer.Option(help="strict:alpha=A, expected:alpha=A, noisy:depth=D, position-biased:eta=E or cascade:stop=P."),
    ] = "strict:alpha=0.5",
    learner: Learners = ["perceptron"],  # noqa: B006
    rounds: Annotated[
        int | None,
        typer.Option(min=1, show_default="one pass over the queries", help="How many rounds each run has."),
    ] = None,
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    k: Annotated[int, typer.Option(min=2, help="Positions of a ranking that count.")] = 5,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Plot = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Rank the documents of queries for somebody whose corrections follow from the labels.

    The person's utility is the least-squares fit of the labels. Every round is a query, in random order; the person
    answers the ranking with a better one. Several passes are made where there are more rounds than queries.
    """
    request = SimulateRequest(learner, {"user": user}, rounds, jobs, interpreted, plot, out, json)
    with reading_input():
        check_request(request)
        from heedful.data.letor import load_letor
        from heedful.experiments.run import letor_setting
        from heedful.learners.registry import make_user

        person, chosen = make_user(user), range(first_seed, first_seed + seeds)
        dtype = "float32" if float32 else "float64"
        setting = letor_setting(load_letor(*files), person, k=k, seeds=chosen, dtype=dtype)
    run_and_tell(request, setting, f"{user}, {setting.rounds:,} queries")


def catalogue(
    items: Annotated[str, typer.Argument(metavar="ITEMS.csv", help="A table of items with numeric columns.")],
    user: Annotated[str, typer.Option(help="strict:alpha=A, expected, better, better:exact=true or best.")] = "better",
    learner: Learners = ["perceptron"],  # noqa: B006
    rounds: Rounds = 100,
    people: Annotated[int, typer.Option(min=1, help="People with a hidden taste each.")] = 20,
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Plot = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Propose items to people with hidden tastes, who answer each with one they like better.

    What was shown and what came back leave the pool. Every person has a learner of their own.
    """
    request = SimulateRequest(learner, {"user": user}, rounds, jobs, interpreted, plot, out, json)
    with reading_input():
        check_request(request)
        from heedful.data.catalogue import load_catalogue
        from heedful.experiments.run import catalogue_setting
        from heedful.learners.registry import make_user

        person, chosen = make_user(user), range(first_seed, first_seed + seeds)
        table, dtype = load_catalogue(items), "float32" if float32 else "float64"
        note(f"{items}: features are {', '.join(table.features)}; columns that are not numbers are left out")
        setting = catalogue_setting(table, person, people=people, seeds=chosen, dtype=dtype)
    run_and_tell(request, setting, f"{user}, {len(table.names):,} items, {people:,} people")


def movielens(
    folder: Annotated[Path, typer.Argument(help="MovieLens 1M or 100K, as GroupLens packs it; plain or gzip.")],
    user: Annotated[str, typer.Option(help="strict:alpha=A, expected, better, better:exact=true or best.")] = "better",
    learner: Learners = ["perceptron"],  # noqa: B006
    rounds: Rounds = 1500,
    people: Annotated[int, typer.Option(min=0, help="So many of the other half of the users; 0 is all of it.")] = 100,
    split: Annotated[int, typer.Option(min=0, help="The seed that halves the users.")] = 0,
    dimension: Annotated[
        int, typer.Option(min=0, show_default="by cross-validation", help="How many features a movie has.")
    ] = 0,
    regularisation: Annotated[
        float, typer.Option(min=0.0, show_default="by cross-validation", help="What holds the features small.")
    ] = 0.0,
    penalty: Annotated[
        str, typer.Option(help="plain, the same for every movie, or weighted by its number of ratings.")
    ] = "plain",
    seeds: Seeds = 1,
    first_seed: FirstSeed = 0,
    jobs: Jobs = None,
    float32: Float32 = False,
    interpreted: Interpreted = False,
    plot: Plot = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Recommend movies to people who rated some of them, one movie after the other.

    The ratings of one half of the users give every movie its features. The utility of a person of the other half is
    the least-squares fit of her ratings. What was shown and what came back leave the pool. Every person has a learner
    of their own.
    """
    request = SimulateRequest(learner, {"user": user}, rounds, jobs, interpreted, plot, out, json)
    with reading_input():
        check_request(request)
        from heedful.data.movielens import load_movielens
        from heedful.experiments.movielens import cinema, movie_setting
        from heedful.learners.registry import make_user

        person, chosen = make_user(user), range(first_seed, first_seed + seeds)
        ratings = load_movielens(folder)
        house = cinema(ratings, split=split, dimension=dimension, regularisation=regularisation, penalty=penalty)
        m, N = house.X.shape
        made = f"{N} features ({penalty} penalty {house.regularisation:g})"
        note(f"{folder}: {m:,} movies with {made}, from half the users")
        dtype = "float32" if float32 else "float64"
        setting = movie_setting(house, person, people=people, seeds=chosen, dtype=dtype)
    run_and_tell(request, setting, f"{user}, {m:,} movies, {people or house.people.size:,} people")
