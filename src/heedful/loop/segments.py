"""Sealed segments: closed stretches of a loop's log as Parquet files in its folder, next to the database.

A segment is a copy: the events stay in the database, which is the log of record and lists the segments with their
SHA-256. It has a row for each event, as the log has it, and columns with the training examples that the model learns
from, as numbers: a fold reads those, and learns them in a compiled loop. A segment that is missing or damaged costs
time, and nothing else. docs/decisions/0030 weighs the alternatives. The file is long because it is the one place that
knows the columns: what writes them, learns from them and checks them.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice, takewhile, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.data.files import TEMPORARY
from heedful.jit.kernel import Floats, Ints
from heedful.loop import records
from heedful.loop.batch import NUMBERS, Batch, Run, prepare
from heedful.loop.history import History
from heedful.loop.interactions.columns import Columns, Encoded, Lessons, Ragged, Single, below, lengths, own_scores
from heedful.loop.log import Event, Log, Retractions, Segment, checksum
from heedful.loop.model import LoopModel

EVENTS = 1_000_000
"""How many events a segment has."""
BLOCK = 16_384
"""How many events of a segment are read at a time."""
NONE, EMPTY, ENCODED, ALONE, ITEM = range(5)
"""What the column `lesson` says of an event: the model learns nothing from events of its kind; there is nothing to
learn in it; it is in columns; it is learned by itself, from the log; it is an item that the model takes in, from the
log, also if it was rolled back."""
_LISTS = {"rows": "int32", "scores": "float64", "shown": "int32", "answer": "int32"}


class Sealed(NamedTuple):
    """The result of sealing the log: the segments (files of events) that were written, in order, and how many events at
    the end of the log are in no segment yet (`left`)."""

    segments: tuple[Segment, ...]
    """the segments that were written, in order"""
    left: int
    """how many events at the end of the log are in no segment yet"""


def segment_path(folder: Path, first: int) -> Path:
    """Return the path in `folder` of the segment that begins with the event `first`."""
    return folder / f"segment-{first:012d}.parquet"


def remove_unlisted(folder: Path, log: Log) -> list[str]:
    """Remove the files of segments in `folder` that `log` does not list, also unfinished ones; return the names of
    those that could not be removed."""
    left = []
    with log.writing():  # nobody is between writing a file and listing it
        listed = {segment_path(folder, each.first).name for each in log.segments() if each.hash}
        for path in folder.glob("segment-*"):
            if path.name not in listed and not path.is_dir():
                try:
                    path.unlink(missing_ok=True)
                except OSError:
                    left.append(path.name)
    return left


# ---------------------------------------------------------------------------- writing


def seal(history: History, events: int = EVENTS) -> Sealed:
    """Write every closed stretch of `events` events of the log that has no segment yet to a file, and those again whose
    file is missing, damaged, or of another learner.

    Nothing is locked while a segment is written; it is listed in one short transaction. Raise ModuleNotFoundError, with
    the command that installs it, if pyarrow is missing; ValueError for a loop in a database, or if `events` is below 1;
    OSError if a file cannot be written."""
    folder = folder_of(history)
    _pyarrow()
    if isinstance(events, bool) or not isinstance(events, int) or not 1 <= events <= 2**40:
        raise ValueError(f"events: expected a whole number from 1 on, got {events!r}")
    log, interaction = history.log, history.interaction
    columns = interaction.columns(interaction.fresh())
    for path in folder.glob("segment-*.tmp"):
        if time.time() - path.stat().st_mtime > TEMPORARY:
            path.unlink(missing_ok=True)
    there, head = log.segments(), log.last()[0]
    spans = [(each.first, each.last) for each in there if not _is_current(folder, each, columns)]
    after = max([each.last for each in there], default=0)
    while after + events <= head:
        spans.append((after + 1, after + events))
        after += events
    model = interaction.fresh()
    done = [_seal(history, folder, model, columns, *span) for span in spans]
    prepare(history, sum(each.lessons for each in log.segments()), anyway=True)
    return Sealed(tuple(done), head - after)


def folder_of(history: History) -> Path:
    """Return the folder of a loop. Raise ValueError if it is in a database, which has no files."""
    if not isinstance(history.path, Path):
        raise ValueError(f"{history.path}: expected a loop in a folder: segments are files next to its log")
    return history.path


def _is_current(folder: Path, segment: Segment, columns: Columns | None) -> bool:
    """Return whether the file of `segment` in `folder` is whole, and has the `columns` that learning from it needs."""
    try:
        with open_segment(folder, segment) as file:
            return columns is None or stamp_of(file) == columns.stamp
    except (OSError, ValueError):
        return False


def _seal(history: History, folder: Path, model: LoopModel, columns: Columns | None, first: int, last: int) -> Segment:
    log, path = history.log, segment_path(folder, first)
    while True:
        forgot = log.last_forgotten()
        handle, aside = tempfile.mkstemp(dir=folder, prefix=path.name, suffix=".tmp")
        try:
            with os.fdopen(handle, "w+b") as out:
                count, encoded = _write(out, history, model, columns, first, last)
                out.flush()
                os.fsync(out.fileno())
                out.seek(0)
                digest = hashlib.file_digest(out, "sha256").hexdigest()
            segment = Segment(first, last, count, encoded, digest)
            with log.writing():
                # If somebody was forgotten meanwhile, what was written may hold them, and whoever forgot removed it.
                if log.last_forgotten() == forgot and os.path.exists(aside):
                    if any(
                        each.first <= last and each.last >= first
                        for each in log.segments()
                        if each[:2] != (first, last)
                    ):
                        raise TimeoutError(f"{path.name}: another process has sealed some of it meanwhile: try again")
                    os.replace(aside, path)
                    _sync_folder(folder)
                    log.list_segment(segment)
                    return segment
            Path(aside).unlink(missing_ok=True)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write(
    out: Any, history: History, model: LoopModel, columns: Columns | None, first: int, last: int
) -> tuple[int, int]:
    """Write the events with sequence numbers `first` to `last` to the file `out` as Parquet; return (how many there
    are, how many of them are stored as training examples in columns)."""
    pa, parquet = _pyarrow()
    schema = _schema(columns)
    count = encoded = 0
    known: Floats = np.zeros((0, 0 if columns is None else max(columns.size - 1, 0)))
    with parquet.ParquetWriter(out, schema, compression="zstd", write_page_checksum=True) as writer:
        for rows, examples in _blocks(history, model, columns, first, last):
            arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows), schema)]
            arrays.append(pa.array([kind for kind, _ in examples], pa.int8()))
            found = [example for _, example in examples]
            if columns is not None and columns.people:
                arrays.append(pa.array([None if each is None else each.person for each in found], pa.string()))
            made, known = _example_columns(pa, found, () if columns is None else columns.like, known)
            arrays += made
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=BLOCK)
            count, encoded = count + len(rows), encoded + sum(each is not None for each in found)
    return count, encoded


def _schema(columns: Columns | None) -> Any:
    """Return the Arrow schema of a segment: the columns of an event, one that says what sort of training example it is,
    and those of the example."""
    pa, _ = _pyarrow()
    number, text = pa.int64(), pa.string()
    kinds = (number, text, text, number, text, number, number, text, pa.binary())
    fields = [*zip(Event._fields, kinds, strict=True), ("checked", number), ("lesson", pa.int8())]
    fields += [("person", text)] if columns is not None and columns.people else []
    fields += [("anew", pa.bool_()), ("new_float32", pa.list_(pa.float32())), ("new_float64", pa.list_(pa.float64()))]
    fields += [(name, pa.list_(getattr(pa, kind)())) for name, kind in _LISTS.items()]
    for j, like in enumerate(() if columns is None else columns.like):
        kind = pa.from_numpy_dtype(_stored(np.asarray(like).dtype))
        fields.append((f"part_{j}", pa.list_(kind) if isinstance(like, np.ndarray) else kind))
    about = {"stamp": "" if columns is None else columns.stamp, "size": str(0 if columns is None else columns.size)}
    return pa.schema(fields, metadata=about)


def _stored(kind: Any) -> Any:
    """Return the numpy type in which numbers of the type `kind` are stored: bool as a byte, others as they are."""
    return np.dtype(np.uint8) if kind == np.bool_ else kind


def _blocks(
    history: History, model: LoopModel, columns: Columns | None, first: int, last: int
) -> Iterator[tuple[list[Any], list[tuple[int, Encoded | None]]]]:
    """Yield (rows, examples) of the events with sequence numbers `first` to `last`: rows of the log, and (sort, arrays
    or None) of the training example of each."""
    log = history.log
    rows: list[Any] = []
    examples: list[tuple[int, Encoded | None]] = []
    numbers = 0
    for page in _pages(log.rows(first - 1), last):
        events = [Event._make(row[:-1]) for row in page]
        given = {event.target for event in events if event.kind == "feedback" and event.target is not None}
        decisions = {event.seq: event for event in events if event.seq in given}
        decisions |= {event.seq: event for event in log.many(sorted(given - decisions.keys()))}
        for row, event in zip(page, events):
            decided = decisions.get(event.target or 0) if event.kind == "feedback" else None
            example = _lesson(history, model, columns, event, decided)
            rows.append(row)
            examples.append(example)
            numbers += 0 if example[1] is None else example[1].x.size
            if len(rows) == BLOCK or numbers > NUMBERS:
                yield rows, examples
                rows, examples, numbers = [], [], 0
    if rows:
        yield rows, examples


def _pages(rows: Iterator[Any], last: int) -> Iterator[list[Any]]:
    """Yield the rows up to event `last`, a few thousand at a time."""
    there = takewhile(lambda row: row[0] <= last, rows)
    while page := list(islice(there, 4096)):
        yield page


def _lesson(
    history: History, model: LoopModel, columns: Columns | None, event: Event, decided: Event | None
) -> tuple[int, Encoded | None]:
    """Return (sort, example) of an event: what sort of training example it is (a number), and its arrays if it is
    stored in columns, else None."""
    if event.kind == "item" and history.interaction.by_number:
        return ITEM, None
    if decided is None:
        return NONE, None
    feedback = records.decode_feedback(event.payload)
    if columns is None:
        return ALONE, None
    if model.refusal(feedback.form) is not None:
        return EMPTY, None
    step = history.step(event, history.decision(decided), feedback)
    lesson = model.lesson(step.context, feedback, step.extra)
    if lesson is None:
        return EMPTY, None
    found = columns.encode(lesson, step.context)
    return (ALONE, None) if found is None else (ENCODED, found)


def _example_columns(
    pa: Any, found: list[Encoded | None], like: tuple[Any, ...], known: Floats
) -> tuple[list[Any], Floats]:
    """Return (the columns of the training examples of a block of a segment, the features of all candidates that later
    blocks may refer to)."""
    nothing = np.zeros(0, np.int64)
    m = np.array([0 if each is None else len(each.x) for each in found], np.int64)
    numbers = [each.x for each in found if each is not None and each.x.ndim == 1]
    came = [np.asarray(each.x[:, :-1], np.float64) for each in found if each is not None and each.x.ndim == 2]
    anew = not len(known) or known.size > NUMBERS
    known = known[:0] if anew else known
    first, which = _distinct(np.concatenate([known, *came]))
    if not np.array_equal(first[: len(known)], np.arange(len(known))):  # one of them stood twice
        anew, known = True, known[:0]
        first, which = _distinct(np.concatenate([known, *came]))
    old = len(known)
    known = np.concatenate([known, *came])[first]
    rows, flat = np.concatenate([which[old:], *numbers]), known[old:].reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = flat.astype(np.float32)
    exact = narrow.astype(np.float64).tobytes() == flat.tobytes()
    ends = np.searchsorted(first[old:] - old, np.concatenate([[0], np.cumsum(0 * m if numbers else m)]))
    new = known.shape[1] * np.diff(ends)
    scores = [nothing if each is None else own_scores(each.x) for each in found]
    lists = {
        "rows": (rows, m),
        "scores": _flat(scores, np.float64),
        "shown": _flat([nothing if each is None else each.shown for each in found], np.int64),
        "answer": _flat([nothing if each is None else each.answer for each in found], np.int64),
    }
    made = [
        pa.array([anew] * len(found)),
        _lists(pa, narrow if exact else narrow[:0], new if exact else 0 * new, np.float32),
        _lists(pa, flat[:0] if exact else flat, 0 * new if exact else new, np.float64),
        *[_lists(pa, *lists[name], kind) for name, kind in _LISTS.items()],
    ]
    for j, each_like in enumerate(like):
        kind = _stored(np.asarray(each_like).dtype)
        if isinstance(each_like, np.ndarray):
            parts = [nothing if each is None else each.parts[j] for each in found]
            made.append(_lists(pa, *_flat(parts, kind), kind))
        else:
            made.append(pa.array(np.array([0 if each is None else each.parts[j] for each in found], kind)))
    return made, known


def _flat(arrays: list[Any], kind: Any) -> tuple[Any, Ints]:
    """Return (all numbers of some arrays, how many each has)."""
    return np.concatenate(arrays).astype(kind) if arrays else np.zeros(0, kind), np.array([len(a) for a in arrays])


def _lists(pa: Any, values: Any, sizes: Ints, kind: Any) -> Any:
    """Return a column of lists, the i-th of sizes[i] numbers."""
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(values.astype(kind)))


def _distinct(features: Floats) -> tuple[Ints, Ints]:
    """Return (first, which): the indices of the different rows of `features` (s, n), in order, and for each of its s
    rows which of these it equals (s,)."""
    mixed = (features * np.random.default_rng(0).random(features.shape[1])).sum(axis=1)
    _, first, which = np.unique(mixed.view(np.int64), return_index=True, return_inverse=True)
    order = np.argsort(first)
    first, place = first[order], np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    which = place[which.reshape(-1)]
    if (features[first][which].view(np.int64) != features.view(np.int64)).any():  # -0.0, or two rows by chance
        return np.arange(len(features)), np.arange(len(features))
    return first, which


# ---------------------------------------------------------------------------- the fold


def learn(history: History, batch: Batch, after: int, head: int) -> int:
    """Let `batch`, whose fold has learned all up to event `after`, learn the feedback after it as far as segments
    reach, but not beyond event `head`; return the sequence number up to which it has learned.

    Feedback between two segments, and in one that cannot be used, is read from the log. If the learner fails, learning
    ends there, and the fold is broken."""
    folder, log = history.path, history.log
    if not isinstance(folder, Path):
        return after
    retractions = log.retractions(head)
    for segment in log.segments():
        if not segment.hash or not segment.lessons or segment.first > head or segment.last <= after:
            continue
        after = max(from_log(history, batch, after, segment.first - 1, retractions), after)
        try:
            for end, empty, found in _read(folder, segment, batch, after, head, retractions):
                batch.fold.count(empty, 0, 0)
                for each in found:
                    if isinstance(each, Run):
                        batch.run(each)
                    elif not batch.events(history, each.tolist()):
                        return after
                after = max(after, min(end, head))
        except _Unusable as error:
            history.note(f"{segment_path(folder, segment.first).name}: {error}: the log is read instead")
        if batch.fold.broken:
            break
    return after


def from_log(history: History, batch: Batch, after: int, up_to: int, retractions: Retractions | None = None) -> int:
    """Let `batch` learn the feedback after event `after` up to `up_to`, read from the log, without what `retractions`
    leave out (None: those up to then); return `up_to`. If the learner fails, learning ends there, and the fold is
    broken."""
    if after < up_to and not batch.fold.broken:
        for lesson in history.steps([batch], after, up_to, retractions=retractions):
            batch.learn(history, *lesson)
            if batch.fold.broken:
                break
        batch.flush()
    return up_to


class _Unusable(Exception):
    """Raised if a segment cannot be read, with the reason."""


def _read(
    folder: Path, segment: Segment, batch: Batch, after: int, head: int, retractions: Retractions
) -> Iterator[tuple[int, int, list[Run | Ints]]]:
    """Yield the blocks of a segment, as `runs` does. Raise _Unusable if it cannot be read, or was sealed for another
    learner, as one that served before a promotion."""
    try:
        with open_segment(folder, segment) as file:
            if stamp_of(file) != batch.columns.stamp:
                raise ValueError("sealed for another learner (heedful seal writes it again)")
            yield from runs(file, batch.columns, after, head, retractions, batch.fold.failed)
    except FileNotFoundError:
        raise _Unusable("there is no such file") from None
    except Exception as error:  # whatever Arrow makes of a damaged file
        told = str(error) or type(error).__name__
        raise _Unusable(told.removeprefix(f"{segment_path(folder, segment.first).name}: ")) from error


# ---------------------------------------------------------------------------- reading


@contextmanager
def open_segment(folder: Path, segment: Segment) -> Iterator[Any]:
    """Open the file of a segment, as a `ParquetFile`.

    Raise OSError if it cannot be read, and ValueError, with its name, if it is not the file that was listed."""
    _, parquet = _pyarrow()
    path = segment_path(folder, segment.first)
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError(f"{path.name}: expected a plain file, got another kind")
        key = str(path), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
        if _hashes.get(key) != segment.hash:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != segment.hash:
                raise ValueError(f"{path.name}: its content was changed since it was sealed")
            _hashes[key] = digest
            file.seek(0)
        yield parquet.ParquetFile(file)


_hashes: dict[tuple[Any, ...], str] = {}


def runs(
    file: Any, columns: Columns, after: int, up_to: int, retractions: Retractions, left_out: Collection[int]
) -> Iterator[tuple[int, int, list[Run | Ints]]]:
    """Yield (last, idle, found) of each block of a segment, in order: the sequence number of its last event, how many
    pieces of feedback have nothing to learn in them, and what is learned: runs, and the sequence numbers of events that
    are learned one by one, from the log.

    Only feedback after event `after` up to `up_to` counts, without what `retractions` or `left_out` (sequence numbers)
    leave out. Raise ValueError if the columns make no sense."""
    candidates = ["anew", "new_float32", "new_float64"]
    wanted = ["seq", "lesson", *candidates, *_LISTS, *[f"part_{j}" for j in range(len(columns.like))]]
    wanted += ["person"] if columns.people else []
    gone = np.fromiter({*retractions.undone, *left_out}, np.int64)
    features: Floats = np.zeros((0, max(columns.size - 1, 0)))
    for block in range(file.num_row_groups):
        about = file.metadata.row_group(block).column(0).statistics
        aside = about is not None and about.has_min_max and (about.max <= after or about.min > up_to)
        table = file.read_row_group(block, columns=candidates if aside else wanted)
        features = _known(table, features) if columns.size else features
        if aside:
            continue
        seqs, kinds = (table[name].combine_chunks().to_numpy() for name in ("seq", "lesson"))
        kept = ~np.isin(seqs, gone)
        for to, end in retractions.spans:
            kept &= ~((seqs > to) & (seqs < end))
        at = np.flatnonzero((kinds > NONE) & (seqs > after) & (seqs <= up_to) & (kept | (kinds == ITEM)))
        empty = int(np.count_nonzero(kinds[at] == EMPTY))
        at = at[kinds[at] != EMPTY]
        if not at.size:
            yield int(seqs[-1]), empty, []
            continue
        encoded = kinds[at] == ENCODED
        found: list[Run | Ints] = []
        if encoded.any():
            lessons, who = _lessons(table, columns, features), _people(table, columns)
        for part in np.split(at, 1 + np.flatnonzero(np.diff(encoded))):
            found.append(Run(lessons, part, seqs[part], *who) if kinds[part[0]] == ENCODED else seqs[part])
        yield int(seqs[-1]), empty, found


def _people(table: Any, columns: Columns) -> tuple[Ints, list[str]]:
    """Return (the person of each row of a block of a segment, as an index, -1 for none; the names of people)."""
    if not columns.people:
        return np.zeros(0, np.int64), []
    coded = table["person"].combine_chunks().dictionary_encode()
    return np.array(coded.indices.fill_null(-1).to_numpy(), np.int64), coded.dictionary.to_pylist()


def _known(table: Any, features: Floats) -> Floats:
    """Return the features of the candidates that a block of a segment may refer to; `features` are those of blocks
    before."""
    narrow, wide = _ragged(table["new_float32"], np.float32), _ragged(table["new_float64"], np.float64)
    values = (wide if wide.values.size else narrow).values.astype(np.float64)
    if values.size % max(features.shape[1], 1):
        raise ValueError("its columns make no sense")
    new = values.reshape(-1, features.shape[1]) if features.shape[1] else np.zeros((1, 0))
    return new if table.num_rows and table["anew"][0].as_py() else np.concatenate([features, new])


def _lessons(table: Any, columns: Columns, features: Floats) -> Lessons:
    """Return the columns of a block of a segment, whose candidates are among those with these `features`."""
    rows, scores, shown, answer = (
        _ragged(table[name], np.float64 if kind == "float64" else np.int64) for name, kind in _LISTS.items()
    )
    parts = tuple([_part(table[f"part_{j}"], like) for j, like in enumerate(columns.like)])
    found = Lessons(features, rows, scores, shown, answer, parts)
    m, given = lengths(rows), lengths(scores)
    whole = not columns.size or below(rows, np.full(m.size, len(features)))
    whole = whole and bool(((given == 0) | (given == m)).all())
    if not (whole and columns.fits(found)):
        raise ValueError("its columns make no sense")
    return found


def _ragged(column: Any, kind: Any) -> Ragged:
    """Return a column of lists as arrays of the numpy type `kind`, of our own, since Arrow's cannot be written to."""
    lists = column.combine_chunks()
    starts = np.array(lists.offsets.to_numpy(), np.int64)
    return Ragged(np.array(lists.values.to_numpy(), kind), starts)


def _part(column: Any, like: Any) -> Ragged | Single:
    kind = np.asarray(like).dtype
    if not isinstance(like, np.ndarray):
        return Single(np.array(column.combine_chunks().to_numpy(), kind))
    return _ragged(column, kind)


def stamp_of(file: Any) -> str:
    """Return what the columns of an open segment depend on besides the log (versions of the code), as text; "" if it
    has no such columns."""
    return str((file.schema_arrow.metadata or {}).get(b"stamp", b"").decode(errors="replace"))


def rows_of(file: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the events of an open segment as the rows of the log, with their checksums."""
    names = [*Event._fields, "checked"]
    for block in file.iter_batches(batch_size=BLOCK, columns=names):
        yield from zip(*[block[name].to_pylist() for name in names])


def problems(history: History) -> Iterator[tuple[str, str]]:
    """Yield (the name of a segment's file, what is wrong with it) for each that is not what the log has.

    Every segment is read, and compared with the log event by event."""
    log, folder = history.log, history.path
    if not isinstance(folder, Path):
        return
    listed = log.segments()
    for segment in listed:
        path = segment_path(folder, segment.first)
        if not segment.hash:
            yield path.name, "somebody in it was forgotten: it is not written again yet"
            continue
        try:
            with open_segment(folder, segment) as file:
                there = (event for event in log.events(segment.first - 1) if event.seq <= segment.last)
                if file.metadata.num_rows != segment.events or any(
                    ours is None or theirs != (*ours, checksum(ours))
                    for theirs, ours in zip_longest(rows_of(file), islice(there, segment.events))
                ):
                    yield path.name, "its events are not those of the log"
        except FileNotFoundError:
            yield path.name, "it is listed in the log, and there is no such file"
        except (OSError, ValueError) as error:
            yield path.name, str(error).removeprefix(f"{path.name}: ")
    names = {segment_path(folder, segment.first).name for segment in listed}
    for path in sorted(folder.glob("segment-*")):
        if path.name not in names and not path.name.endswith(".tmp"):
            yield path.name, "the log does not list it"


def _pyarrow() -> Any:
    """Return (pyarrow, pyarrow.parquet). Raise ModuleNotFoundError, with the command that installs it, if it is
    missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        told = "sealed segments are Parquet files, which need pyarrow: pip install 'heedful[parquet]'"
        raise ModuleNotFoundError(told, name="pyarrow") from None
    return pyarrow, pyarrow.parquet
