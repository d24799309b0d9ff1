"""`heedful import` and `heedful validate`: events as JSON lines, OpenSearch's click logs (UBI), formats of others.

The file is long because `import` is one command with every source of events: lines, logs, formats, a server."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.common import Json, Name, Own, format_options, kind_of, numbers, open_loop, pairs
from heedful.cli.console import BadInput, Failure, console, note, notes, print_json, reading_input, say
from heedful.cli.import_summary import Tally, show_counts, show_report
from heedful.core.wording import count
from heedful.data.files import cut_list
from heedful.data.row_report import ALREADY
from heedful.results.answers import Put

if TYPE_CHECKING:
    from heedful.data.jsonl import Line
    from heedful.data.row_report import Report
    from heedful.io import Outcome
    from heedful.io.table_import import TableImport
    from heedful.loop import Loop

AS, OPTION = format_options("read")
NO_ACTIONS = ("click", "impression", "")
"""What `ACTIONS` of the UBI loader maps an event to that is no action (buy, ...) of a loop."""

EVERY = 1_000
"""After how many lines of an import a bar shows how far it is."""
SECONDS = 10.0
"""How often, where no bar can be drawn, a note says how far an import is."""


# ---------------------------------------------------------------------------- import


def import_(
    name: Name,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="JSON lines, or tables; plain or gzip.")
    ] = None,
    ubi: Annotated[
        Path | None,
        typer.Option(metavar="QUERIES", help="FILE holds the events of an OpenSearch UBI log; these its queries."),
    ] = None,
    chains: Annotated[
        bool, typer.Option("--chains", help="With --ubi: searches within 30 minutes of each other are one need.")
    ] = False,
    items: Annotated[
        Path | None,
        typer.Option("--features", metavar="FILE", help="First put these items on offer: CSV, JSON lines or Parquet."),
    ] = None,
    format: Annotated[str | None, AS] = None,
    option: Annotated[list[str] | None, OPTION] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--langfuse", metavar="URL", help="Read the scores of a project of Langfuse; keys: LANGFUSE_..._KEY."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --langfuse: scores from this time on (ISO 8601).")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --as langfuse: the outputs that scores are about.")
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=MEANING", help="Of scores: 1..5, 0.5, good:up,bad:down or none; may be repeated."),
    ] = None,
    evaluations: Annotated[
        bool, typer.Option("--evaluations", help="Of scores: also those that a model gave.")
    ] = False,
    own_learners: Own = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=COLUMN",
            help="Of a table of ratings: person, item, rating, aside; with --as: aside.",
            show_default="found",
        ),
    ] = None,
    worth: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=R", help="What a kind of feedback is worth, such as star=5; may be repeated."),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(metavar="R", help="Of a table of ratings: one that stands for none; none if none does."),
    ] = None,
    json: Json = False,
) -> None:
    """A FILE may also be a table (CSV, JSON or Parquet): of ratings in loops that learn these, otherwise of items,
    which are put on offer.

    Importing the same file twice changes nothing. A line that does not fit is rejected with the reason, and the others
    are imported all the same. The import can be stopped at any time, and started again. With --as, files are of a
    format of others; one that is malformed is refused before anything is written.

    Exit codes: 0 everything is in; 1 some lines were rejected, a file of another format has no row that was used, or
    the loop cannot be written; 2 bad input, such as a file of another kind.
    """
    files = files or []
    options = pairs("--option", "NAME=VALUE", option or (), at_first=True)
    options |= {} if format is None else pairs("--column", "WHAT=COLUMN", column or (), at_first=True)
    options |= {f"score:{score}": how for score, how in pairs("--score", "NAME=MEANING", score or ()).items()}
    options |= ({"evaluations": "yes"} if evaluations else {}) | ({} if traces is None else {"traces": str(traces)})
    if options and format is None and url is None:
        raise BadInput(f"--{'option' if option else 'score'}: expected --as FORMAT too, got none")
    if url is not None and (
        files or ubi is not None or items is not None or format not in (None, "langfuse") or traces
    ):
        raise BadInput("--langfuse: expected no FILE and no other format with it, got one")
    if since is not None and url is None:
        raise BadInput("--since: expected --langfuse URL too, got none")
    if not files and url is None and (items is None or ubi is not None):
        raise BadInput(
            f"FILE: expected {'the events' if ubi is not None else 'some events, or --features ITEMS'}, got none"
        )
    if ubi is not None and len(files) > 1:
        raise BadInput(f"FILE: expected one with --ubi, the events, got {len(files)}")
    if chains and ubi is None:
        raise BadInput("--chains: expected --ubi too, got none")
    for file in [*files, *(path for path in (ubi, traces) if path is not None)]:
        _check_is_file(file)
    if format is not None and url is None and (ubi is not None or not files):
        raise BadInput("--ubi: expected none with --as, got it" if ubi else "FILE: expected some with --as, got none")
    from heedful.io.table_import import holds_events

    tally = Tally()
    with open_loop(name, own_learners) as loop:
        loop.projection.look()
        before = loop.projection.moves
        # All of them are looked at before anything of one is taken.
        plain = files if ubi is None and format is None else []
        listed = [] if items is None else [items]
        listed += [file for file in plain if not holds_events(file)]
        tables = {file: _read_table(loop, file, column, worth, missing) for file in listed}
        named = [
            f"--{name}"
            for name, value in (("column", column if format is None else None), ("worth", worth), ("missing", missing))
            if value
        ]
        if named and not tables:
            raise BadInput(f"{named[0]}: expected a table that it is about, got none")
        put: Put | None = None
        for table in tables.values():
            for text in table.notes:
                note(text)
            if table.items:
                change = loop.put_items(table.items)
                put = change if put is None else Put(put.put + change.put, (*put.changed, *change.changed))
        report = _import_ubi(loop, ubi, files[0], chains, tally) if ubi is not None else None
        if url is not None:
            report = _import_langfuse(loop, url, since, options, tally)
        elif format is not None:
            report = _import_as(loop, format, options, files, tally)
        for file in plain:
            _import_file(loop, file, tally, tables.get(file))
        lessons, moved = (max(now - earlier, 0) for now, earlier in zip(loop.projection.moves, before))
        result = tally.as_json() | {"version": loop.version}
        result |= {"lessons": {"feedback": lessons, "moved": moved}} if lessons else {}
        result |= {} if put is None else {"items_put": put.put, "items_changed": list(put.changed)}
        result |= {} if report is None else {"report" if ubi is None else "ubi": vars(report)}
        if json:
            print_json(result)
        else:
            read = (bool(files) or url is not None) and (put is None or tally.lines > 0)
            _show(loop, tally, put, report, read, (lessons, moved))
    unused = [] if report is None or ubi is None else _unused_files(report, {"queries": ubi, "events": files[0]})
    if report is not None and ubi is None and not report.used.total() and set(report.dropped) - {ALREADY}:
        n = report.rows.total()
        unused = ["the only row was not used" if n == 1 else f"none of {n:,} rows was used"]
    for warning in unused:
        note(warning)
    if tally.rejected or unused:
        raise typer.Exit(1)


def _check_is_file(path: Path) -> None:
    """Raise BadInput unless a file, or a pipe, is at `path`."""
    kind = kind_of(path)
    if kind in ("folder", ""):
        raise BadInput(f"{path}: {'expected a file, got a folder' if kind else 'no such file'}")


def _check_objects(file: Path) -> None:
    """Raise BadInput if neither of the first two lines begins a JSON object."""
    from heedful.core.validation import describe
    from heedful.io.table_import import first_two

    first = first_two(file)
    if first and not any(text.startswith("{") for text in first):
        expected = f"expected JSON lines, one object a line, got {describe(first[0])} first"
        help = "docs/commands.md, import, has their fields; a table is for `heedful import`"
        raise BadInput(f"{file}: {expected}; {help}")


def _unused_files(report: Report, files: Mapping[str, Path]) -> list[str]:
    """Return a warning for each UBI file in `files` ("queries", "events") of which no row was used."""
    named = " and ".join(f"{file.name} the {what}" for what, file in files.items())
    return [
        f"{file.name}: none of its {report.rows[what]:,} rows was used as {what}: is {named}?"
        for what, file in files.items()
        if report.rows[what] and not report.used[what]
    ]


def _read_table(
    loop: Loop, file: Path, column: list[str] | None, worth: list[str] | None, missing: list[str] | None
) -> TableImport:
    """Return what the table in `file` brings into the loop, by options of the command."""
    from heedful.data.roles import columns_of
    from heedful.io.table_import import read_import

    with reading_input():
        worths = numbers("--worth", "KIND=R", worth or ())
        return read_import(loop, file, columns_of(column or ()), worths, missing or ())


def _import_file(loop: Loop, file: Path, tally: Tally, table: TableImport | None) -> None:
    from heedful.data.jsonl import as_lines, read_lines
    from heedful.io import import_answers
    from heedful.loop.batch import prepare

    if table is None:
        _import_lines(loop, file.name, read_lines(file), tally, _count_lines(file), by_line=True)
        return
    _import_lines(loop, file.name, as_lines(table.lines), tally, len(table.lines))
    with _progress(file.name, table.answered) as advance, _no_collection():
        prepare(loop.projection, table.answered, note)
        for outcome in import_answers(loop, advance(table.answers)):
            tally.add(outcome, f"{outcome.kind} {outcome.id}")


def _import_lines(
    loop: Loop, source: str, lines: Iterable[Line], tally: Tally, total: int | None = None, *, by_line: bool = False
) -> None:
    """Import `lines` behind a progress bar, and count what became of them, named `by_line` or by their ids."""
    from heedful.io import import_lines
    from heedful.loop.batch import prepare

    with _progress(source, total) as advance, _no_collection():
        prepare(loop.projection, (total or 0) // 2, note)  # a decision and an answer each
        for outcome in import_lines(loop, advance(lines)):
            tally.add(outcome, f"{source}:{outcome.line}" if by_line else f"{outcome.kind} {outcome.id}")


def _import_ubi(loop: Loop, queries: Path, events: Path, chains: bool, tally: Tally) -> Report:
    from heedful.data.jsonl import as_lines
    from heedful.data.row_report import Report
    from heedful.data.ubi import ACTIONS, read_ubi

    # If the loop has an action of the same name as the log's, the name is kept.
    own_actions = {
        name: name for name, what in ACTIONS.items() if what not in NO_ACTIONS and name in loop.settings.actions
    }
    report = Report()
    records = _on_offer(
        loop, read_ubi(queries, events, report, chains=chains, actions={**ACTIONS, **own_actions}), report
    )
    _import_lines(loop, queries.name, as_lines(records), tally)
    return report


def _import_as(loop: Loop, name: str, options: Mapping[str, str], files: Sequence[Path], tally: Tally) -> Report:
    """Import `files` of the format `name` with its `options`, and return what became of their rows."""
    from heedful.data.jsonl import as_lines
    from heedful.data.row_report import Report
    from heedful.io.formats import find_format

    format, report = find_format(name, "read", options), Report()
    assert format.read is not None  # it was found as one that is
    for file in files:
        if not file.is_file():
            raise BadInput(f"{file}: expected a file with --as, which is read twice, got a pipe")
    _import_lines(loop, files[0].name, as_lines(format.read(loop, files, report, options)), tally)
    return report


def _import_langfuse(loop: Loop, url: str, since: str | None, options: Mapping[str, str], tally: Tally) -> Report:
    """Import the scores of a Langfuse project at `url`, page by page, and return what became of them."""
    from heedful.client.langfuse_http import Langfuse, LangfuseError
    from heedful.data.jsonl import as_lines
    from heedful.data.langfuse import Output, Score, parse_output, parse_score
    from heedful.data.row_report import Report
    from heedful.io.formats import find_format
    from heedful.io.formats.langfuse import Meanings, find_output, score_lines
    from heedful.io.line_schema import check_time

    find_format("langfuse", "read", options)
    if since is not None:
        check_time("--since", since)
    meaning, server, report = Meanings(options), Langfuse.from_environment(url), Report()
    outputs: dict[str, list[Output]] = {}
    broken = list[LangfuseError]()

    def find(score: Score) -> Output | None:
        if score.trace is None:
            return None
        if score.trace not in outputs:
            outputs.clear()  # scores of a trace mostly come together
            outputs[score.trace] = []
            for record in server.outputs(score.trace):
                with suppress(ValueError):  # one that cannot be read is one that is not there
                    outputs[score.trace].append(parse_output(*record))
        return find_output(score, outputs[score.trace])

    def scores() -> Iterator[Score]:
        try:
            for record in chain.from_iterable(server.scores(since)):
                try:
                    yield parse_score(*record)
                except ValueError as error:  # one of them should not keep the others out for ever
                    report.rows["scores"] += 1
                    report.drop("malformed", str(error))
        except LangfuseError as error:  # what came before is imported first
            broken.append(error)

    texts = None if loop.projection.interaction.by_number or not _has_texts(loop, options.get("text")) else find
    try:
        lines = score_lines(loop, scores(), report, meaning, texts, options.get("text"))
        _import_lines(loop, "scores", as_lines(lines), tally)
        if broken:
            raise broken[0]
    except LangfuseError as error:
        raise Failure(str(error)) from error
    return report


def _has_texts(loop: Loop, column: str | None) -> bool:
    from heedful.io.texts import text_column

    with suppress(ValueError):
        return bool(text_column(loop, column))
    return False


def _on_offer(loop: Loop, records: Iterator[dict[str, Any]], report: Report) -> Iterator[dict[str, Any]]:
    """Yield `records` without candidates that are no items, which `report` counts, if others are left."""
    items = set(loop.items)
    for record in records:
        if record["kind"] == "decision":
            candidates = [name for name in record["candidates"] if name in items]
            if candidates and len(candidates) < len(record["candidates"]):
                report.left_out["hits that are not on offer (--features brings items along)"] += len(
                    record["candidates"]
                ) - len(candidates)
                record = record | {
                    "candidates": candidates,
                    "shown": [name for name in record["shown"] if name in items],
                }
        yield record


def _count_lines(file: Path) -> int | None:
    """Return how many lines a file has, for a progress bar; None for a pipe, or if there is no terminal."""
    from heedful.data.files import open_uncompressed

    if not (notes().is_terminal and file.is_file()):
        return None
    with open_uncompressed(file) as lines:
        return sum(1 for _ in lines)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Run the block without the garbage collector, which would look through all that waits to be written, again and
    again: nothing of it refers to itself."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Any]:
    """Yield a function that passes lines on and counts them in a progress bar, or in notes if there is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=notes(), transient=True, disable=not notes().is_terminal) as progress:
        bar = progress.add_task(what, total=total)

        def advance(lines: Iterable[Any]) -> Iterator[Any]:
            said = time.monotonic()
            for n, line in enumerate(lines, 1):
                yield line
                if n % EVERY == 0 or n == total:
                    progress.update(bar, completed=n)
                    if progress.disable and n != total and time.monotonic() - said >= SECONDS:
                        said = time.monotonic()
                        note(f"{what}: {n:,}{'' if total is None else f' of {total:,}'} lines read")

        yield advance


def _show(loop: Loop, tally: Tally, put: Put | None, report: Report | None, read: bool, moves: tuple[int, int]) -> None:
    screen = console()
    if put is not None:
        screen.print(f"{count(put.put, 'item')} {'was' if put.put == 1 else 'were'} new or changed")
        if put.changed:
            counts = "for the item" if loop.projection.interaction.by_number else "for what was shown then"
            text = f"{cut_list(put.changed)} had other attributes before: what was answered still counts, {counts}"
            say(text)
    if report is not None:
        duplicates = tally.counts.get("feedback", Counter())["duplicate"]
        show_report(report, duplicates if len(report.rows) == 1 else 0)
    if read:
        show_counts(tally, "What became of the lines" if report is None else "What became of decisions and feedback")
    feedback, moved = moves
    if feedback:
        text = f"moved the model: {moved:,} of {feedback:,} feedback"
        if moved == 0:
            from heedful.loop.movement import why_unmoved

            why, how = why_unmoved(loop.projection)
            text += f": {why}. {how}"
        say(text)
    say(f"{loop.path}: model version {loop.version}")


# ---------------------------------------------------------------------------- validate


def validate(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]", help="The loop to check against; without it only the form of the lines is checked."
        ),
    ],
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="JSON lines, plain or gzip.")] = None,
    own_learners: Own = None,
    json: Json = False,
) -> None:
    """Without the name of a loop only the form of the lines is checked. With --own, forms of feedback that this learner
    brings are known too.

    Exit codes: 0 every line is right; 1 some are not, or the loop cannot be read; 2 bad input.
    """
    path = Path(name) if file is None else file
    _check_is_file(path)
    tally, problems = Tally(), list[Mapping[str, Any]]()

    from heedful.data.jsonl import read_lines
    from heedful.io import import_lines

    opened = nullcontext() if file is None else open_loop(name, own_learners, rehearse_only=True)
    with reading_input(), _progress(path.name, _count_lines(path)) as advance, opened as loop:
        _check_objects(path)
        lines = advance(read_lines(path))
        for outcome in _forms(lines, own_learners) if loop is None else import_lines(loop, lines):
            tally.add(outcome, f"{path.name}:{outcome.line}")
            if outcome.status == "rejected":
                about = {"line": outcome.line, "kind": outcome.kind, "id": outcome.id}
                problems.append(about | {"problem": outcome.reason})
    problems.sort(key=lambda problem: problem["line"])
    remarks = [reason for reason in tally.reasons if reason["status"] == "applied"]
    if json:
        result = {"lines": tally.lines, "counts": tally.as_json()["counts"], "problems": problems, "reasons": remarks}
        print_json(result)
    else:
        for problem in problems:
            say(f"{path.name}:{problem['line']}: {problem['problem']}")
        for reason in remarks:
            say(f"{reason['first']}: {reason['reason']} ({count(reason['count'], 'line')})")
        _summary(tally, path, against=file is not None)
    if problems:
        raise typer.Exit(1)


def _forms(lines: Iterable[Line], own_learners: Sequence[str] | None) -> Iterator[Outcome]:
    """Yield the outcome of checking each line's form, without a loop; `own_learners` may add forms of feedback."""
    from heedful.io import Outcome, check_form
    from heedful.learners.registry import learner_class
    from heedful.loop.interactions.forms import known_forms
    from heedful.loop.interactions.registry import interaction_class

    forms = known_forms(*(interaction_class(learner_class(spec)) for spec in own_learners or ()))
    for line in lines:
        checked = check_form(line, forms)
        yield checked if isinstance(checked, Outcome) else Outcome(line.number, checked[0], checked[1], "applied")


def _summary(tally: Tally, path: Path, *, against: bool) -> None:
    counts = [f"{kind} {statuses.total():,}" for kind, statuses in tally.counts.items()]
    total = f"{path.name}: {count(tally.lines, 'line')}{': ' if counts else ''}{', '.join(counts)}"
    ends = [f"{tally.rejected:,} wrong" if tally.rejected else "all are right"]
    duplicates = sum(statuses["duplicate"] for statuses in tally.counts.values())
    ends += [f"{duplicates:,} known to the loop already"] if duplicates else []
    ends += [] if against else ["only their form was checked, as no loop was named"]
    say(f"{total}; {'; '.join(ends)}")
