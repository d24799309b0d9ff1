"""`heedful doctor`: check a loop, or all of a folder or database, and say what to do about each problem.

The file is long because each thing that may be wrong has a check of its own."""

from __future__ import annotations

import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import typer

from heedful.cli.common import Json, Names, Own, find_loops
from heedful.cli.console import BadInput, Failure, console, print_json, say, show_check
from heedful.core.wording import count, percent
from heedful.storage.address import Address

if TYPE_CHECKING:
    from heedful.loop import Loop
    from heedful.loop.log import Event
    from heedful.loop.packing import LoggedDecision
    from heedful.storage import Place

Status = Literal["ok", "warning", "problem"]
_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "problem": "[red]✗[/]"}
ROOM = 2**30
"""The least number of bytes that should be free on the disk."""
SECOND = 1_000_000
APART = 60 * SECOND
"""By how many microseconds the clocks of servers that own a loop in turn may differ.

Clocks that are set over the network differ by far less, and one that nobody sets is wrong by a minute after two weeks
or more. Times only decide whether feedback is late, which is asked in hours."""


class Finding(NamedTuple):
    """The result of one check of a loop."""

    check: str
    """the name of the check"""
    status: Status
    """how serious it is; "problem" is what has to be mended"""
    told: str
    """what was found"""
    next: str = ""
    """what to do about it; "" if there is nothing to do"""


def doctor(name: Names, own_learners: Own = None, json: Json = False) -> None:
    """The model is computed again from the whole log and compared, which takes time if the log is long. Of a folder or
    a database all loops are checked, those of its tenants too, and of a folder the keys, links and audit log in
    server.db; of each only what is not well is printed.

    Exit codes: 0 no problem, perhaps warnings; 1 a problem; 2 bad input.
    """
    loops, many = find_loops(name)
    inspect = _inspect_one_of_many if many else _inspect
    parts = {str(loop): inspect(loop, own_learners) for loop in loops}
    keys = Path(name) / "server.db"
    if many and isinstance(loops[0], Path) and os.path.lexists(keys):
        parts[str(keys)] = _keys(keys)
    found = {part: list[Finding]() for part in parts}
    for part, findings in parts.items():
        if many and not json:
            say(part)
        for finding in findings:
            found[part].append(finding)
            if not json and (finding.status != "ok" or not many):
                show_check(_MARKS[finding.status], f"{finding.check}: {finding.told}", finding.next)
    statuses = Counter(finding.status for findings in found.values() for finding in findings)
    problems, warnings = statuses["problem"], statuses["warning"]
    if json:
        told = [{"file" if part == str(keys) else "loop": part, "findings": each} for part, each in found.items()]
        print_json(told if many else told[0]["findings"])
    else:
        of = f"{count(len(loops), 'loop')}: " if many else ""
        counts = f"{count(problems, 'problem')}, {count(warnings, 'warning')}"
        console().print(f"\n{of}{counts}." if problems or warnings else f"\n{of}{'all' if many else 'All'} is well.")
    if problems:
        raise typer.Exit(1)


def _inspect_one_of_many(loop: Place, own_learners: Sequence[str] | None) -> Iterator[Finding]:
    """Do what `_inspect` does; what would end the command is a finding, as the other loops are to be checked, too."""
    try:
        yield from _inspect(loop, own_learners)
    except Failure as error:
        yield Finding("learner", "problem", str(error))


def _inspect(folder: Place, own_learners: Sequence[str] | None) -> Iterator[Finding]:
    from heedful.loop import Loop
    from heedful.storage import Newer

    if isinstance(folder, Path):
        yield from _files(folder)
    try:
        loop = Loop.open(folder, learner=own_learners, read_only=True)
    except (KeyError, IndexError):
        raise
    except LookupError as error:
        raise BadInput(f"{error} (here: --own SPEC)") from error
    except (ValueError, OSError) as error:
        if own_learners is not None and isinstance(error, ValueError) and str(error).startswith("learner:"):
            raise BadInput(str(error)) from error
        message, hint = (
            str(error),
            _restore(folder) if isinstance(error, ValueError) else "The log itself may be whole.",
        )
        if isinstance(error, Newer):
            message, hint = f"newer than this heedful: {error}", "Upgrade heedful: the log is whole."
        yield Finding("log", "problem", message, hint)
        return
    if isinstance(folder, Address):
        yield from _role(folder)
    with loop:
        messages = set[str]()
        for look in (_log, _snapshots, _learners, _Incoming, _exports, _arms, _settings):
            try:
                for finding in look(loop):
                    messages.add(finding.told)
                    yield finding
            except (ValueError, OSError) as error:  # a damaged log: the other checks may still find something
                if str(error) not in messages:
                    yield Finding("log", "problem", str(error), _restore(folder))


def _keys(file: Path) -> Iterator[Finding]:
    """Yield whether the `server.db` of a folder is whole."""
    from heedful.server.database import problem_of

    problem = problem_of(file)
    hint = "Stop the server, and put the file of a back-up in its place; then revoke again what was revoked since."
    yield Finding("keys", "problem", problem, hint) if problem else Finding("keys", "ok", "whole")


def _restore(folder: Place) -> str:
    return (
        f"Close what uses it, copy {folder} aside as it is, and put a back-up or an import of an export in its place."
    )


# ---------------------------------------------------------------------------- files


def _files(folder: Path) -> Iterator[Finding]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    if os.name == "posix":
        open_to = [path for path in (folder, *files) if stat.S_IMODE(path.stat().st_mode) & 0o077]
        if open_to:
            names = ", ".join(str(path) for path in open_to)
            yield Finding("permissions", "warning", f"others may read {names}", f"chmod -R go= {folder}")
        else:
            yield Finding("permissions", "ok", "nobody else can read it")
    locked = [str(path) for path in (folder, *files) if not os.access(path, os.W_OK)]
    if locked:
        message = f"cannot be written by this user: {', '.join(locked)}"
        yield Finding("writing", "warning", message, "It is read; give the right to who decides and takes answers.")
    size = sum(path.stat().st_size for path in files)
    free = shutil.disk_usage(folder).free
    message = f"{_bytes(free)} free, the loop takes {_bytes(size)}"
    if free < 2 * size:  # forgetting somebody rewrites the log, next to the old one
        yield Finding("disk", "problem", message, "Make room: to forget somebody takes as much again as the loop.")
    elif free < ROOM:
        yield Finding("disk", "warning", message, "Make room before it is full: then nothing can be decided.")
    else:
        yield Finding("disk", "ok", message)


def _bytes(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:,.1f} TB"


def _role(address: Address) -> Iterator[Finding]:
    """Yield what the role of the database may not do, if there is anything."""
    from heedful.loop.log.directory import Directory

    with closing(Directory(address)) as directory:
        for lack in directory.lacks():
            message, _, grant = lack.rpartition(": ")
            yield Finding("role", "warning", message, grant)


# ---------------------------------------------------------------------------- log, model, snapshots


def _log(loop: Loop) -> Iterator[Finding]:
    problems = loop.projection.log.problems()
    for problem in problems:
        yield Finding("log", "problem", problem, _restore(loop.path))
    if not problems:
        yield Finding("log", "ok", "whole, append-only, and refuses to be changed")
    if (lease := loop.projection.log.store.lease_problem()) is not None:
        yield Finding("lease", "problem", *lease)
    wrong = [problem for problem in loop.verify() if problem not in problems]
    for problem in wrong:
        yield Finding(
            "model", "problem", problem, f"Remove {loop.path}/snapshot-*: the next start folds the log again."
        )
    if not wrong:
        yield Finding("model", "ok", f"version {loop.version}, the fold of the log bit for bit")
    if loop.overflown:
        hint = "heedful export, heedful init with another --learner, heedful import: nothing that was said is lost."
        yield Finding("weights", "problem", loop.overflown, hint)
    text, hint = loop.unmoved.rpartition(". ")[::2] if loop.unmoved else ("", "")
    moves = loop.projection.moves
    if text:
        yield Finding("lessons", "warning", text, hint)
    elif moves.given:
        yield Finding("lessons", "ok", f"{moves.moved:,} of {moves.given:,} feedback moved the model")
    for text in loop.notes:
        if not text.endswith("the log is folded again"):  # of snapshots
            yield Finding("note", "warning", text)


def _snapshots(loop: Loop) -> Iterator[Finding]:
    from heedful.loop import snapshots

    usable, wrong, stamp = [], [], loop.projection.stamp()
    shelf = snapshots.shelf_of(loop.projection.log)
    for position in shelf.positions():
        try:
            _, manifest = shelf.read(position)
        except (OSError, ValueError) as error:
            wrong.append(str(error))
            continue
        other = sorted(name for name, value in stamp.items() if manifest.get(name) != value)
        if "learner" in other:
            continue  # of one that served before a promotion or a rollback, which may want it again
        if other:
            wrong.append(f"{shelf.name(position)}: made with another {', '.join(other)}")
        elif not loop.projection.log.is_superseded(position):
            usable.append(position)
    for message in wrong:
        yield Finding("snapshot", "warning", message, "Nothing is lost: the log is folded instead. It can be removed.")
    head, _ = loop.projection.log.last()
    if usable:
        message = f"{len(usable)} usable, the newest {count(head - max(usable), 'event')} behind the log"
        yield Finding("snapshots", "ok", message)
    elif not wrong:
        yield Finding("snapshots", "ok", "none yet, or none that still holds: a start folds the log")


def _learners(loop: Loop) -> Iterator[Finding]:
    """Yield which learner serves by a promotion, and which is tried in an experiment, if there are any."""
    from heedful.loop.serving import read_promotion

    if (event := loop.projection.promoted) is not None:
        record = read_promotion(event.payload)
        by = f" by {record.by}" if record.by else ""
        against = f", against {count(len(record.forced), 'reason')}" if record.forced else ""
        message = f"{record.learner} serves in place of {record.before}: promoted{by} in event {event.seq:,}{against}"
        yield Finding("promotion", "ok", message)
    if (running := loop.projection.experiment) is not None:
        event, experiment = running
        share = f"{percent(experiment.share)} of the people" if experiment.share else "nobody's lists: it only proposes"
        message = f"{experiment.learner} is tried against {experiment.against} on {share}, since event {event.seq:,}"
        message += f" ({event.id})"
        yield Finding("experiment", "ok", message)


# ---------------------------------------------------------------------------- what came in


class _Incoming:
    """Counts of the events of a loop's log, made in one pass over it, and the findings on them."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.kinds = Counter[str]()
        self.unknown = Counter[str]()
        self.strange = Counter[str]()
        self.undeclared = Counter[str]()
        self.people = set[str]()
        self.answered = set[int]()
        self.late = self.early = self.backwards = self.again = 0
        self.clock = 0
        self.apart = APART if isinstance(loop.path, Address) else SECOND  # a file has one machine's clock
        self._seen = set[tuple[int | None, str, bytes | None]]()
        self._times: dict[int, int] = {}
        for event in loop.projection.log.events():
            self._take(event)
        self._items()

    def _take(self, event: Event) -> None:
        self.kinds[event.kind] += 1
        if event.kind == "decision":
            decision = self.loop.projection.decision(event)
            self._times[event.seq] = event.time
            self.strange.update({name for _, name in decision.record.unknown})
            self.undeclared.update(decision.record.undeclared)
            self._encode(decision)
            if event.subject is not None:
                self.people.add(event.subject)
            if decision.record.arm == "imported":
                return  # its time is by another system's clock
        elif event.kind == "feedback":
            decided = self._times.get(event.target or 0, event.time)
            self.late += event.time - decided > self.loop.settings.late_after * SECOND
            self.early += decided - event.time > self.apart
            self.answered.add(event.target or 0)
            content = event.target, event.payload, event.arrays
            self.again += content in self._seen
            self._seen.add(content)
            return
        elif event.kind in ("activate", "undo", "style"):
            return
        ran_back = self.clock - event.time > self.apart
        self.backwards += ran_back
        self.clock = event.time if ran_back else max(self.clock, event.time)

    def _encode(self, decision: LoggedDecision) -> None:
        manifest, record = self.loop.manifest, decision.record
        for encoding, rows in ((manifest.encoding, record.attributes), (manifest.context, [record.context or {}])):
            for row in rows if encoding is not None else ():
                try:
                    encoding.encode(row, self.unknown)  # type: ignore[union-attr]
                except ValueError:
                    continue  # it came as features

    def _items(self) -> None:
        import msgspec

        versions = list(self.loop.projection.catalogue.current.values())
        for event in self.loop.projection.log.many(versions):
            self.loop.manifest.encoding.encode(msgspec.json.decode(event.payload), self.unknown)

    def __iter__(self) -> Iterator[Finding]:
        kinds, n = self.kinds, self.kinds["feedback"]
        shown = {
            "items": len(self.loop.items),
            "decisions": kinds["decision"],
            "answered": len(self.answered),
            "feedback": n,
            "undone": kinds["undo"],
            "people": len(self.people),
            "forgotten": kinds["forget"],
            "exports": kinds["export"],
        }
        message = ", ".join(f"{name} {count:,}" for name, count in shown.items())
        yield Finding("events", "ok", message)
        from heedful.loop.interactions.protocol import CALLERS_SCORE
        from heedful.loop.undeclared import use_of

        names = self.loop.feature_names
        if names:
            message = ", the caller's score among them" if CALLERS_SCORE in names else ""
            yield Finding("features", "ok", f"{len(names):,}{message}")
        hint = "They count as none of the known ones. A new loop over today's items knows them; import the export."
        yield _named("categories", "all are known to the encoding", self.unknown, "unknown to the encoding", hint)
        hint = f"{use_of(self.undeclared, self.loop.projection.interaction.by_number)}. Then import the export."
        fine = "of candidates and contexts all are known"
        yield _named("fields", fine, self.undeclared, "came, and are no features", hint)
        hint = "They stood where the caller's score had them, or last. Put them on offer, and they are ranked."
        fine = "all that were asked about were on offer"
        yield _named("candidates", fine, self.strange, "asked about, not on offer", hint)
        after = f"came more than {self.loop.settings.late_after:g} s after the decision"
        message = f"{self.late:,} of {n:,} feedback {after}"
        hint = "It is learned all the same. Is the clock of its sender right, or does it wait in a queue?"
        yield Finding("late", "warning", message, hint) if 2 * self.late > n else Finding("late", "ok", message)
        fine, hint = (
            "no feedback twice under different ids",
            "Send an event again with the id it had: then it counts once.",
        )
        message = f"{self.again:,} of {n:,} feedback say again what was said of the same decision, under another id"
        yield Finding("repeated", "warning", message, hint) if self.again else Finding("repeated", "ok", fine)
        yield from self._clock()

    def _clock(self) -> Iterator[Finding]:
        if self.early:
            message = f"{self.early:,} feedback are older than their decisions"
            yield Finding("clock", "warning", message, "Set the clocks of those who send it; the model does not mind.")
        if self.backwards:
            message = f"time ran backwards {count(self.backwards, 'time')}"
            hint = "The clock was set back, or an export was imported. The order of the log counts, not its times."
            yield Finding("clock", "warning", message, hint)
        if not self.early and not self.backwards:
            yield Finding("clock", "ok", "time never ran backwards")


def _exports(loop: Loop) -> Iterator[Finding]:
    """Yield the files that exports left that were killed."""
    from heedful.data.files import find_unfinished

    for path in loop.exports():
        for left in find_unfinished(Path(path)):
            hint = "Remove it, unless the export is running: it may hold what was forgotten since."
            yield Finding("exports", "warning", f"an export that did not end left {left}", hint)


def _arms(loop: Loop) -> Iterator[Finding]:
    """Yield whether learned and control lists are answered equally often; nothing if they are not compared."""
    ratio = loop.report(last=2**62).sample_ratio
    if ratio is not None and ratio.differs:
        message, _, hint = ratio.said.partition(". ")
        yield Finding("sample ratio", "warning", message, f"{hint}.")
    elif ratio is not None:
        yield Finding("sample ratio", "ok", ratio.said)


def _settings(loop: Loop) -> Iterator[Finding]:
    for caveat in loop.projection.interaction.words.caveats(loop.settings, loop.learner):
        yield Finding("settings", "warning", caveat, "It is frozen with the loop: a new one can be made otherwise.")


def _named(check: str, fine: str, names: Counter[str], wrong: str, hint: str) -> Finding:
    """Return a warning with the five most frequent of the `names` that are `wrong`; that all is `fine` without any."""
    if not names:
        return Finding(check, "ok", fine)
    most = ", ".join(f"{name} ({count:,} times)" for name, count in names.most_common(5))
    more = f", and {len(names) - 5:,} more" if len(names) > 5 else ""
    return Finding(check, "warning", f"{wrong}: {most}{more}", hint)
