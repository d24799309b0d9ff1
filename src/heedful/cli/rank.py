"""`heedful rank`: what people prefer, from their choices, how sure that is, and what to ask next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.finding import Json
from heedful.cli.output import check_path
from heedful.cli.ranked import Found, as_json, show
from heedful.cli.ranked_files import draw, write_pairs, write_ranking
from heedful.cli.terminal import BadInput, Failure, notes, print_json, reading_input, wanted_extra

if TYPE_CHECKING:
    from heedful.data.choices import Opened
    from heedful.data.orders import Choices


def rank(
    file: Annotated[
        Path,
        typer.Argument(help="The choices: CSV, JSON lines, Parquet, or PrefLib (.soc, .soi, .toc, .toi); or gzip."),
    ],
    items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table of all items: what is alike is taken to be liked alike."),
    ] = None,
    identifier: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of --items with their names.", show_default="found")
    ] = None,
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Rank for this person, not for all.")] = None,
    pool: Annotated[
        bool | None,
        typer.Option(
            "--pool/--no-pool",
            help="Take all answers for one person's; or each of a person without a name for another's.",
            show_default="by the names of people",
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Leave this person's answers out; may be repeated.")
    ] = None,
    goal: Annotated[str, typer.Option(help="What is to be known: best, or the whole ranking.")] = "best",
    sure: Annotated[float, typer.Option(help="How sure is sure enough, 0.5 to 0.999.")] = 0.9,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=COLUMN",
            help="winner, loser; first, second, answer; item, rank, ballot; order (for each place); person, times.",
            show_default="by their names",
        ),
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=MEANING",
            help="An answer that means first, second, equal or unsure; repeatable. With a number, say what all mean.",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=SCORE", help="This item has that score.", show_default="the average of all has 1,000"
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="So many items are printed and drawn.")] = 40,
    plot: Annotated[Path | None, typer.Option(help="Draw the ranking into this file: .png, .svg or .pdf.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the ranking into this file: .csv.")] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all pairs: wins, ties, probabilities, into this file: .csv."),
    ] = None,
    json: Json = False,
) -> None:
    """Rank things by what people chose, with how sure each place is.

    Columns are found by their names: winner and loser; first, second and answer (first, second, equal, unsure, or the
    item); model_a, model_b and winner (model_a, model_b, tie; both_bad is a tie) as arenas have them; rank 1, rank 2,
    ... for orders; item and rank with person or ballot; or order ("tea > milk = soup"). A column person (or judge, or
    evaluation_session_id) tells people apart: then what they are like is learned, the ranking is that of their average,
    and --person ranks for one, who may have answered little. A column times says how often.

    Utilities are in units of the noise of one choice; scores are as in chess, 400 points for odds of 10 to 1, and the
    average has 1,000; bars hold 90 %. Told are groups of which no two can be told
    apart, whether it is sure enough to stop asking, about how many questions are left, the next question, and what is
    strange in the answers.

    Exit codes: 0 ranked; 1 a package is missing, or a file cannot be written; 2 bad input.
    """
    with reading_input():
        check_path("--plot", plot, (".png", ".svg", ".pdf"))
        check_path("--csv", csv, (".csv",))
        check_path("--pairs", pairs, (".csv",))
        _refuse_same(file, items, csv, pairs)
        if not 0.5 <= sure <= 0.999:
            raise ValueError(f"--sure: wanted a number from 0.5 to 0.999, got {sure:g}")
        if goal not in ("best", "ranking"):
            raise ValueError(f"--goal: wanted best or ranking, got {goal!r}")
    if plot is not None:
        wanted_extra("matplotlib", "plot", "--plot")
    with reading_input():
        opened = _read(file, column or (), answer or ())
        choices = _whose(opened.choices, pool, without or (), person)
        choices, X = _described(choices, items, identifier)
        _refuse_many(choices)
        fixed = _anchor(choices, anchor)
    with reading_input(), notes().status(f"weighing {choices.answers:,} answers"):
        found = _found(str(file), opened, choices, X, person, goal, sure, fixed)
    if csv is not None:
        write_ranking(csv, found)
    if pairs is not None:
        write_pairs(pairs, found)
    if json:
        print_json(as_json(found))
    else:
        show(found, top)
    if plot is not None:
        draw(plot, found, top)


def _read(file: Path, column: Sequence[str], answer: Sequence[str]) -> Opened:
    from heedful.data.choices import open_choices

    columns: dict[str, list[str]] = {}
    for each in column:
        what, mark, name = each.partition("=")
        if not (what and mark and name):
            raise BadInput(f"--column: wanted WHAT=COLUMN, such as winner=chosen, got {each!r}")
        columns.setdefault(what, []).append(name)
    words: dict[str, str] = {}
    for each in answer:
        word, mark, meaning = each.rpartition("=")
        if not (word and mark and meaning):
            raise BadInput(f"--answer: wanted WORD=MEANING, such as 0=first, got {each!r}")
        words[word] = meaning
    try:
        return open_choices(file, columns, words)
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error


def _whose(choices: Choices, pool: bool | None, without: Sequence[str], person: str | None) -> Choices:
    """The answers, by person or as one person's."""
    from heedful.data import orders

    if pool is False and "" in choices.people:
        choices = orders.apart(choices)
    if without:
        if choices.people == ("",):
            raise ValueError(f"--without: wanted a file that names people, got none of {without[0]!r}")
        choices = orders.without(choices, without, "--without")
    if pool:
        choices = orders.pooled(choices)
    if person is not None and (person not in choices.people or choices.people == ("",)):
        known = "people who are told apart" if choices.people == ("",) else f"one of {orders.listed(choices.people)}"
        raise ValueError(f"--person: wanted {known}, got {person!r}")
    return choices


def _described(choices: Choices, items: Path | None, identifier: str | None) -> tuple[Choices, Any]:
    """The answers with all items of a table, and their features."""
    from heedful.data import orders

    if items is None:
        if identifier is not None:
            raise ValueError("--identifier: wanted --items, whose column it is, got none")
        return choices, None
    from heedful.data.table import read_table
    from heedful.features import infer

    try:
        rows = read_table(items)
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    try:
        encoding = infer(rows, identifier=identifier)
        names, X = [encoding.name_of(row) for row in rows], encoding.encode_many(rows).astype(float)
    except ValueError as error:
        raise ValueError(f"{items}: {error}") from None
    try:
        return orders.with_items(choices, names), X
    except ValueError as error:
        raise ValueError(f"{items}: {encoding.identifier}: {error}") from None


def _refuse_same(file: Path, items: Path | None, csv: Path | None, pairs: Path | None) -> None:
    """ValueError where a file would be written over one that is read, or over the other."""
    taken = {path.resolve(): told for path, told in ((file, "the choices"), (items, "--items")) if path is not None}
    for option, path in (("--csv", csv), ("--pairs", pairs)):
        if path is not None:
            if path.resolve() in taken:
                raise ValueError(
                    f"{option}: wanted a file of its own, got that of {taken[path.resolve()]}, {str(path)!r}"
                )
            taken[path.resolve()] = option


def _refuse_many(choices: Choices) -> None:
    """ValueError where there are more items than are ranked, with what to do."""
    from heedful.preferences.estimating import MOST_ITEMS, MOST_ITEMS_OF_MANY

    n, told_apart = len(choices.items), len(choices.people) > 1
    if n > MOST_ITEMS:
        pooled = " with --pool" if told_apart else ""
        hint = "keep the answers about fewer of them, such as those with most votes"
        raise ValueError(f"items: wanted 2 to {MOST_ITEMS:,}{pooled}, got {n:,}: {hint}")
    if told_apart and n > MOST_ITEMS_OF_MANY:
        hint = f"--pool takes all answers for one person's, about {MOST_ITEMS:,} items at most"
        raise ValueError(f"items: wanted 2 to {MOST_ITEMS_OF_MANY:,} where people are told apart, got {n:,}: {hint}")


def _anchor(choices: Choices, told: str | None) -> tuple[int, float] | None:
    """Which item has which score."""
    from heedful.data.files import is_number
    from heedful.data.orders import listed

    if told is None:
        return None
    name, _, score = told.rpartition("=")
    if not name or not is_number(score) or not abs(float(score)) <= 1e6:
        raise ValueError(f"--anchor: wanted NAME=SCORE, such as {choices.items[0]}=1000, got {told!r}")
    if name not in choices.items:
        raise ValueError(f"--anchor: wanted one of {listed(choices.items)}, got {name!r}")
    return choices.items.index(name), float(score)


def _found(
    file: str,
    opened: Opened,
    choices: Choices,
    X: Any,
    person: str | None,
    goal: str,
    sure: float,
    anchor: tuple[int, float] | None,
) -> Found:
    from heedful.preferences.elo import scores
    from heedful.preferences.estimating import estimate
    from heedful.preferences.questions import next_question
    from heedful.preferences.remarks import Remark, remarks
    from heedful.preferences.standing import standing, verdict
    from heedful.preferences.stopping import GOALS
    from heedful.preferences.table import votes, wins

    whole = estimate(choices, X)
    posterior, new, whose = whole.posterior, None, choices
    if person is not None:
        one = choices.people.index(person)
        posterior = whole.belief.of(one)
        whose = choices._replace(given=tuple(given for given in choices.given if given.person == one))
    elif len(choices.people) > 1:
        new = whole.belief.new()
    places = standing(posterior, at=sure)
    told = verdict(posterior, goal, places, at=sure, ask=new is None)
    for_new = None if new is None else standing(new).best
    if new is not None:
        told = told._replace(next=next_question(new.whole(), GOALS[goal]))
    said = remarks(whole, X, None if person is None else choices.people.index(person))
    if opened.bad:
        ties = "1 tie is" if opened.bad == 1 else f"{opened.bad:,} ties are"
        said.append(Remark("both_bad", f"{ties} 'both bad': counted as equally good."))
    won = wins(whose, tie=0.0)
    return Found(
        file,
        opened.told,
        whole,
        person,
        places,
        told,
        for_new,
        said,
        sure,
        posterior,
        posterior if new is None else new,
        scores(posterior, anchor),
        anchor,
        votes(whose),
        won,
        wins(whose, tie=1.0) - won,
    )
