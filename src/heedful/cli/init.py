"""`heedful init`: make a loop from a table of items.

The file is long because the command does everything that a loop needs to begin: it reads and encodes two tables, checks
options of all kinds against each other, and shows what became of the columns and what to do next.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from heedful.cli.common import (
    Json,
    asking,
    check_absent,
    holds_loop,
    open_loop,
    pairs,
    place,
    read_json,
    read_text,
)
from heedful.cli.console import BadInput, console, new_table, print_json, reading_input, say
from heedful.cli.signature import add_parameters, option
from heedful.core.validation import read_range
from heedful.core.wording import count
from heedful.loop.interactions.protocol import Interaction
from heedful.loop.interactions.registry import default_learner, interactions
from heedful.loop.settings import Settings

if TYPE_CHECKING:
    import rich.table

    from heedful.features import Encoding
    from heedful.loop import Loop

MOST_COLUMNS = 40
"""How many columns of a table are shown one by one."""


def _kinds() -> list[type[Interaction[Any]]]:
    """Return the interactions that have options of `heedful init`; the first of these makes a loop one of that kind."""
    return [kind for kind in interactions().values() if kind.options]


def _default_learners() -> str:
    """Return the default of --learner in words: the usual one, then those of other kinds of loops."""
    of = [f"{kind.default_learner} with {kind.options[0].flag}" for kind in _kinds()]
    return "; ".join([default_learner(Settings()), ", ".join(of)])


def _by_name() -> str:
    """Return the options of the kinds of loops that know items by their names alone, unless --features is given."""
    return " or ".join(kind.options[0].flag for kind in _kinds() if kind.by_number)


def _other_actions() -> str:
    """Return in words how kinds of loops write an --action that do not write it as usual."""
    of = [kind for kind in _kinds() if kind.action_syntax != Interaction.action_syntax]
    return "".join(f"; with {kind.options[0].flag} {kind.action_syntax}" for kind in of)


def init(
    around: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The name of the new loop: cars makes ./cars.heedful; with a / or .heedful, that folder.",
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The items: CSV, JSON lines or Parquet, plain or gzip.")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME[:A=1,...]",
            help="The learner; `heedful learners` lists them.",
            show_default=_default_learners(),
        ),
    ] = None,
    repeats: Annotated[
        bool,
        typer.Option("--repeats", help="Show items again that a person has answered, in loops that leave them out."),
    ] = False,
    identifier: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that names the items.", show_default="found")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="number, logarithm, category, tags, text, prose, vector or ignored; may be repeated.",
        ),
    ] = None,
    context: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table of sample requests, whose columns become features of the context."),
    ] = None,
    cross: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONTEXT:ITEM", help="Two columns whose products become features, or all; may be repeated."
        ),
    ] = None,
    products: Annotated[
        bool,
        typer.Option(
            "--products", help="Products of each two features are features too: the worth of one may depend on another."
        ),
    ] = False,
    query_features: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='What each request says of each item: JSON, {"bm25": [0, 40], "source": ["web", "app"]}; - for stdin.',
        ),
    ] = None,
    k: Annotated[
        int,
        typer.Option(
            min=1, help="Positions that count when an order is corrected, or how many are shown; 1 shows one item."
        ),
    ] = 10,
    control: Annotated[
        float,
        typer.Option(help="The share of decisions in your own order, or made at random, for comparison."),
    ] = 0.05,
    exploration: Annotated[
        float | None,
        typer.Option(help="The probability of swapping two neighbours, 0 to 0.5.", show_default="the learner's own"),
    ] = None,
    sampled: Annotated[
        float, typer.Option(help="The share of lists drawn at random around the ranking, with known probabilities.")
    ] = 0.0,
    temperature: Annotated[
        float, typer.Option(help="How random the lists drawn at random are: the higher, the more.")
    ] = 1.0,
    people: Annotated[
        float,
        typer.Option(
            metavar="SHRINK", help="Learn an offset for each person, which counts half after so many lessons; 0: none."
        ),
    ] = 0.0,
    action: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WEIGHT",
            help=f"How much an action says for its item{_other_actions()}. May be repeated.",
            show_default="view=0.1, cart=0.5, buy=1, hide=-1, or as much in the range of answers",
        ),
    ] = None,
    features: Annotated[
        bool,
        typer.Option("--features", help=f"With {_by_name()}: what is known of an item tells of others like it."),
    ] = False,
    no_text: Annotated[bool, typer.Option("--no-text", help="Do not keep texts, only their features.")] = False,
    only_shown: Annotated[
        bool,
        typer.Option("--only-shown", help="Of candidates that come with a request, keep only those that were shown."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse requests that name an item twice, or one that is not on offer.")
    ] = False,
    durable: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="What is written to disk before it is answered: each decision, or only feedback."
        ),
    ] = "decision",
    rewards: Annotated[
        str | None,
        typer.Option(
            metavar="LOW..HIGH",
            help="With --k 1: the lowest and the highest reward of the item shown.",
            show_default="0..1",
        ),
    ] = None,
    none_after: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="After how many seconds the loop answers none to a list that nobody has answered, for pages that "
            "report clicks alone.",
            show_default="silence says nothing",
        ),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Rank texts that come with each request; there is no FILE.")
    ] = False,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="LOOP",
            help="Encode items and requests as that loop does, with its settings and learner, and nothing learned; its "
            "items are on offer, unless there is a FILE.",
        ),
    ] = None,
    json: Json = False,
    **options: object,
) -> None:
    """Every column of the table becomes numbers (features) that suit its values; the output says which, and why. This
    cannot be changed once the loop is made, so look at it before anything is learned. To change it, remove the loop and
    make it again with --kind or --identifier.

    Exit codes: 0 made; 1 it could not be written; 2 bad input.
    """
    if like is not None:
        _end(around, _create_like(around, name, file, learner, like), [], name, json)
        return
    asked_kind = _kind_made(options)
    by_number = asked_kind is not None and asked_kind.by_number
    if features and not by_number:
        raise BadInput(f"--features: expected {_by_name()} with it, got none")
    others = {"--texts": texts, "--context": context, "--cross": cross, "--query-features": query_features}
    if asked_kind is not None and by_number:
        told = f"expected none with {asked_kind.options[0].flag}, which knows items by their names alone, got it"
        check_absent(others, told)
        if kind and not features:
            raise BadInput("--kind: expected --features with it, as items are known by their names alone, got it")
    if not by_number and texts == (file is not None):
        raise BadInput(
            "FILE: expected none with --texts, got one"
            if texts
            else "FILE: expected a table of items, or --texts, got neither"
        )
    if texts and (identifier is not None or kind):
        raise BadInput(f"{'--kind' if kind else '--identifier'}: expected a FILE that it is about, got --texts")
    if not 0.0 <= people <= 1e9:
        raise BadInput(f"--people: expected a number from 0 to {1e9:g}, got {people:g}")
    kinds, type_ = pairs("--kind", "COLUMN=KIND", kind or ()), asked_kind or Interaction
    settings, prompts = dict[str, Any](), None
    with asking():
        for each in type_.options:
            value = each.default if options[each.name] is None else options[each.name]
            if each.setting:
                settings[each.setting] = value if each.read is None else each.read(value)
            if each.learner is not None:
                learner = each.learner(learner, value)
            if each.context is not None and value is not None:
                prompts = each.context(value)
        rewards_range = None if rewards is None else read_range("--rewards", rewards)
        actions = pairs("--action", type_.action_syntax, action or ())
        weights = {name: _read_action(type_.action_syntax, name, value) for name, value in actions.items()}
    loop, rows = _create(
        name,
        file,
        learner,
        {"identifier": identifier, "kinds": kinds, "features": features or bool(kinds)},
        context,
        cross or [],
        None
        if query_features is None
        else read_json("--query-features", read_text("--query-features", query_features)),
        {"k": k, "control": control, "exploration": exploration, "shrink": people, "store_text": not no_text}
        | {"keep_unshown": not only_shown, "strict": strict, "durable": durable}
        | {"repeats": repeats, "sampled": sampled, "temperature": temperature, "products": products}
        | {"none_after": none_after, "rewards": rewards_range}
        | ({"actions": weights} if weights else {})
        | settings,
        prompts,
    )
    _end(around, loop, rows, name, json)


def _create_like(around: typer.Context, name: str, file: Path | None, learner: str | None, like: str) -> Loop:
    """Return a new loop like the loop `like`. Raise BadInput for options about what it decides."""
    with_it = {"name", "file", "learner", "like", "json"}
    for parameter in around.command.params:
        source = around.get_parameter_source(str(parameter.name))
        if parameter.name not in with_it and source is not None and source.name == "COMMANDLINE":
            raise BadInput(f"{parameter.opts[0]}: expected none with --like, as it is as in {like}, got it")
    with reading_input():
        from heedful.data.set_aside import item_rows
        from heedful.data.table import open_table
        from heedful.learners.registry import is_own
        from heedful.loop import Loop

        rows = item_rows(open_table(file)) if file is not None else None
    own = [learner] if learner is not None and is_own(learner) else None
    with open_loop(like, own, read_only=True) as other, _making(name):
        return Loop.create_like(place(name), other, items=rows, learner=learner)


def _end(around: typer.Context, loop: Loop, rows: list[dict[str, Any]], name: str, json: bool) -> None:
    """Print what the new loop is, which is closed then."""
    with loop:
        n = len(rows) or len(loop.items)
        if json:
            print_json(_as_json(loop, name, n))
        else:
            _show(loop, name, n)
            _tell_what_could_count(around, loop, rows)
            say(f"\nNext: {_next(loop, name)}")


def _kind_made(options: Mapping[str, object]) -> type[Interaction[Any]] | None:
    """Return the interaction that `options` ask for, None for none; raise BadInput if they do not go together."""
    asked = {name for name, value in options.items() if value is not None and value is not False}
    kinds = [kind for kind in _kinds() if kind.options[0].name in asked]
    if len(kinds) > 1:
        first, second = (kind.options[0].flag for kind in kinds[:2])
        raise BadInput(f"{second}: expected none with {first}, got it")
    for kind in _kinds():
        main, *more = kind.options
        alone = [] if kind in kinds else [other.flag for other in more if other.name in asked]
        if alone:
            raise BadInput(f"{alone[0]}: expected {main.flag} with it, got none")
    return kinds[0] if kinds else None


def _read_action(syntax: str, name: str, given: str) -> float | tuple[float, ...]:
    """Return the weight of the action `name` as settings store it: a number, or several with a colon between."""
    try:
        numbers = tuple(map(float, given.split(":", 1) if ":" in syntax else [given]))
    except ValueError:
        raise ValueError(f"--action: expected {syntax}, got {f'{name}={given}'!r}") from None
    return numbers if len(numbers) > 1 else numbers[0]


def _create(
    name: str,
    file: Path | None,
    learner: str | None,
    columns: dict[str, Any],
    context: Path | None,
    cross: Sequence[str],
    query: Any,
    settings: Mapping[str, Any],
    requested: Encoding | None = None,
) -> tuple[Loop, list[dict[str, Any]]]:
    """Return (a new loop, the rows of `file`)."""
    folder = place(name)
    with reading_input():
        from heedful.data.set_aside import item_rows
        from heedful.data.table import open_table, read_table
        from heedful.features import TEXTS
        from heedful.loop.interactions.registry import interaction_type
        from heedful.server.manifest import encode_loop

        loop_settings = Settings(**settings)
        rows = item_rows(open_table(file)) if file is not None else None
        requests = read_table(context) if context is not None else None
        kind = interaction_type(learner, loop_settings)
        if kind.arrange is not None:
            told = f"expected none in {kind.words.loop}, which encodes columns itself, got it"
            check_absent({"--cross": cross or None, "--kind": columns["kinds"] or None}, told)
        if requested is not None and context is not None:
            raise BadInput("--context: expected none where another option says what comes with a request, got it")
        if cross and requests is None:
            raise BadInput("--cross: expected --context too, whose columns are crossed, got none")
        of_items = {
            *(set(TEXTS.places) if rows is None else set().union(*rows)),
            *(query if isinstance(query, Mapping) else ()),
        }
        of_requests = set().union(*requests or ())
        crosses = "all" if list(cross) == ["all"] else [_split_cross(pair, of_requests, of_items) for pair in cross]
        around = requested or _around(context, requests, () if crosses == "all" else [pair[0] for pair in crosses])
    with _making(name):
        loop = encode_loop(
            folder, rows, learner, loop_settings, context=around, crosses=crosses, query_features=query, **columns
        )
    return loop, rows or []


@contextmanager
def _making(name: str) -> Iterator[None]:
    """Run the block, which makes the loop `name`, and raise its errors as those of the command."""
    try:
        with asking():
            yield
    except FileExistsError as error:
        if isinstance(folder := place(name), Path) and not holds_loop(folder):
            raise BadInput(f"{folder}: {error.strerror}, and no loop: expected another NAME") from error
        go_on = f"{shlex.join(['heedful', 'decide', name])} goes on with it"
        go_on += "; to begin again, remove it, with all that it learned"
        raise BadInput(f"{folder}: {error.strerror}: {go_on}") from error
    except FileNotFoundError as error:
        raise BadInput(f"{error.filename}: {error.strerror}" if error.strerror else str(error)) from error


def _around(file: Path | None, requests: list[dict[str, Any]] | None, keep: Sequence[str]) -> Encoding | None:
    """Return the encoding of the context, from a table of `requests`, with the columns to `keep`; None without."""
    if requests is None:
        return None
    from heedful.features import infer

    try:
        return infer(requests, identifier="", keep=keep)
    except ValueError as error:
        how = "; name what is crossed, --cross CONTEXTCOLUMN:ITEMCOLUMN, and it is kept" if not keep else ""
        raise ValueError(f"{file}: {error}{how}") from None


def _split_cross(cross: str, of_requests: Collection[str], of_items: Collection[str]) -> tuple[str, str]:
    """Return `cross`, CONTEXT:ITEM, as two columns, split at the first colon with a known column on both sides."""
    cuts = [(cross[:i], cross[i + 1 :]) for i, mark in enumerate(cross) if mark == ":"]
    if not cuts:
        raise BadInput(f"--cross: expected CONTEXT:ITEM, the names of two columns, or all, got {cross!r}")
    return next(((a, b) for a, b in cuts if a in of_requests and b in of_items), cuts[0])


add_parameters(
    init,
    [
        option(
            declared.name,
            declared.takes if declared.takes is bool else Optional[declared.takes],  # noqa: UP045  # read when run
            False if declared.takes is bool else None,
            declared.help,
            metavar=declared.metavar,
            show_default=None if declared.default is None else str(declared.default),
        )
        for kind in _kinds()
        for declared in kind.options
    ],
    before="repeats",
    names={},
)


# ---------------------------------------------------------------------------- what it became


def _next(loop: Loop, name: str) -> str:
    by_number = loop.projection.interaction.by_number
    if loop.items and by_number:
        return shlex.join(["heedful", "decide", name, "--person", "NAME"])
    if loop.items and loop.manifest.query is not None:
        return shlex.join(["heedful", "decide", name, "--candidates", "CANDIDATES.json"])
    if loop.items:
        return shlex.join(["heedful", "decide", name, *loop.projection.interaction.example_request()])
    if by_number:
        return shlex.join(["heedful", "import", name, "--features", "ITEMS.csv"])
    return shlex.join(["heedful", "decide", name, "--candidates", "TEXTS.json"])


def _as_json(loop: Loop, name: str, n_items: int) -> dict[str, object]:
    manifest = loop.manifest
    return {
        "loop": str(loop.path),
        "learner": manifest.learner,
        "items": len(loop.items),
        "rows": n_items,
        "identifier": manifest.encoding.identifier,
        "columns": [column._asdict() for column in manifest.encoding.describe()],
        "context": [column._asdict() for column in manifest.context.describe()] if manifest.context else None,
        **({} if manifest.query is None else {"query_features": [e._asdict() for e in manifest.query.describe()]}),
        "crosses": manifest.crosses if manifest.crosses == "all" else [list(pair) for pair in manifest.crosses],
        "features": len(loop.feature_names),
        "caveats": loop.caveats,
        **loop.projection.interaction.facts(),
        "next": _next(loop, name),
    }


def _show(loop: Loop, name: str, n_items: int) -> None:
    manifest, interaction, screen = loop.manifest, loop.projection.interaction, console()
    all_features = not interaction.by_number
    items = f"{count(n_items, 'item')} by {manifest.encoding.identifier}" if n_items or all_features else "no items yet"
    if all_features or manifest.encoding.size:
        screen.print(_table(f"{loop.path}: {items}", manifest.encoding))
    else:
        say(f"{loop.path}: {items}")
    if manifest.query is not None:
        screen.print(_table("What a request says of each", manifest.query))
    if manifest.context is not None:
        screen.print(_table("The context", manifest.context))
    if all_features:
        n, crossed = len(loop.feature_names), "crosses included, " if manifest.crosses else ""
        crossed += f"{count(manifest.n_products, 'product')} included, " if manifest.n_products else ""
        text = f"{count(n, 'feature')}, {crossed}your own score the last. All of this is frozen: an item has the same "
        text += "features for good. A column of the wrong kind? Remove the folder, and say --kind COLUMN=KIND."
        if interaction.arrange is not None:
            text = (
                f"{count(n - 1, 'feature')}, crosses included. All of this is frozen, but for the values of the items."
            )
        say(text)
    for text in interaction.fill(interaction.words.introduction).splitlines():
        say(text)
    if manifest.context is not None and not manifest.crosses:
        text = interaction.words.context_alone
        screen.print(f"Note: {text}: name what it is crossed with, --cross CONTEXTCOLUMN:ITEMCOLUMN.", markup=False)
    for caveat in loop.caveats:
        say(f"Note: {caveat}.")


def _tell_what_could_count(around: typer.Context, loop: Loop, rows: Sequence[Mapping[str, object]]) -> None:
    """Print the columns of texts that were ignored because few texts recur, and the commands that would use them."""
    from heedful.features.inference import TOO_FEW

    kinds = {}
    for described in loop.manifest.encoding.describe() if loop.manifest.encoding.size else ():
        column = described.column
        if described.why.endswith(TOO_FEW) and (kind := _kind_if_asked([row.get(column) for row in rows])):
            kinds[column] = kind
    if kinds:
        remove = shlex.join(["rm", "-r", str(loop.path)])
        text = f"Ignored, though they may well matter: {', '.join(kinds)}. With them:"
        command = shlex.join([*_words(around), *(f"--kind={column}={kind}" for column, kind in kinds.items())])
        say(f"\n{text}\n  {remove}\n  {command}")


def _kind_if_asked(cells: Sequence[object]) -> str:
    """Return "text" if words of the `cells` recur, "category" if whole texts do, otherwise ""."""
    from heedful.features.texts import words

    texts = [str(cell) for cell in cells if cell is not None]
    apart = [set(words(text)) for text in texts]
    recur = Counter(word for words in apart for word in words)
    if any(len(words) > 1 for words in apart) and any(times > 1 for times in recur.values()):
        return "text"
    return "category" if len(set(texts)) < len(texts) else ""


def _words(around: typer.Context) -> list[str]:
    """Return the words of the command line of `heedful init`, without --json; `around` is typer's context."""
    words = ["heedful", "init"]
    for parameter in around.command.params:
        name = str(parameter.name)
        source = around.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = around.params[name]
        for part in value if isinstance(value, list | tuple) else [value]:
            option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
            words += option if part is True else [*option, str(part)]
    return words


def _table(title: str, encoding: Encoding) -> rich.table.Table:
    from rich.markup import escape

    columns = ("column", "kind", "features", "example", "missing", "why")
    table = new_table(title, columns, right=("features", "missing"))
    described = encoding.describe()
    rest = Counter(column.kind for column in described[MOST_COLUMNS:])
    if rest:
        table.caption = (
            f"and {count(rest.total(), 'more column')}: {', '.join(f'{n:,} {kind}' for kind, n in rest.items())}"
        )
    for row in described[:MOST_COLUMNS]:
        style = "dim" if row.kind == "ignored" else ""
        cells = [row.column, row.kind, f"{row.features:,}", row.example, f"{row.missing:,}", row.why]
        table.add_row(*map(escape, cells), style=style)
    return table
