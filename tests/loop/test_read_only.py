"""Logs that are only read: nothing of them is changed, wherever they lie; what cannot be written says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from heedful import Loop
from heedful.io import export_lines
from heedful.loop.log import Log
from heedful.storage import Damaged, Moved
from loops import bits, small_loop
from unprivileged import unprivileged


def taught(path: Path, n: int = 3) -> Loop:
    loop = small_loop(path, control=0.0)
    for i in range(n):
        d = loop.decide(id=f"d{i}", person=f"p{i % 2}")
        loop.feedback(d.id, id=f"e{i}", clicks=[d.shown[3]])
    return loop


def closed(folder: Path) -> Path:
    taught(folder / "loop").close()
    for snapshot in (folder / "loop").glob("snapshot-*"):
        snapshot.unlink()
    return folder / "loop"


def killed(folder: Path) -> Path:
    """As a process that was killed leaves it, with a write-ahead file in which all events are."""
    with taught(folder / "other") as loop:
        shutil.copytree(loop.path, folder / "loop")
    shutil.rmtree(folder / "other")
    return folder / "loop"


def folder_locked(path: Path) -> None:
    os.chmod(path, 0o500)


def files_locked(path: Path) -> None:
    for file in path.iterdir():
        os.chmod(file, 0o400)


def both_locked(path: Path) -> None:
    files_locked(path)
    folder_locked(path)


def files(path: Path) -> dict[str, bytes]:
    """What is in a folder, but for the file in which readers of a log mark what they read."""
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "log.db-shm"}


def read(loop: Loop) -> None:
    """Read all that there is to read."""
    assert loop.verify() == []
    assert loop.report().decisions == 3
    assert loop.why("d1").decision == "d1"
    assert loop.health() is not None
    assert [line["id"] for line in export_lines(loop) if line["kind"] == "feedback"] == ["e0", "e1", "e2"]
    loop.projection.look()


@pytest.mark.parametrize("made", [closed, killed])
@pytest.mark.parametrize("lock", [folder_locked, files_locked, both_locked])
def test_a_log_that_cannot_be_written_is_read(
    tmp_path: Path, made: Callable[[Path], Path], lock: Callable[[Path], None]
) -> None:
    with taught(tmp_path / "loop") as loop:
        read(loop)  # which imports modules that only the administrator may read
    with unprivileged() as folder:
        path = made(folder)
        before = files(path)
        lock(path)
        with Loop.open(path) as loop:
            read(loop)
            for write in (loop.decide, lambda: loop.feedback("d0", clicks=["i1"]), lambda: loop.forget("p0")):
                with pytest.raises(PermissionError, match="cannot be written, so it is only read; nothing was changed"):
                    write()
        assert files(path) == before


@pytest.mark.parametrize("made", [closed, killed])
def test_who_only_reads_changes_nothing_where_all_may_be_written(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    path = made(tmp_path)
    before = files(path)
    with Loop.open(path, read_only=True) as loop:
        assert loop.verify() == []
        with pytest.raises(PermissionError, match="opened for reading only"):
            loop.decide()
    assert files(path) == before


def test_who_only_reads_leaves_a_forgetting_to_who_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(log: Log) -> None:
        raise TimeoutError("another process is reading")

    with taught(tmp_path / "loop") as loop, monkeypatch.context() as patched:
        patched.setattr(Log, "finish_erasing", cut)
        with pytest.raises(TimeoutError):
            loop.forget("p0")
    before = files(tmp_path / "loop")
    with Loop.open(tmp_path / "loop", read_only=True) as loop:
        assert loop.projection.log.unfinished()
    assert files(tmp_path / "loop") == before
    with Loop.open(tmp_path / "loop") as loop:
        assert not loop.projection.log.unfinished()


def test_who_reads_meanwhile_learns_what_others_write(tmp_path: Path) -> None:
    with taught(tmp_path / "loop") as loop, Loop.open(tmp_path / "loop", read_only=True) as reader:
        d = loop.decide(id="new")
        loop.feedback(d.id, clicks=[d.shown[2]])
        reader.projection.look()
        assert bits(reader) == bits(loop)


def test_events_that_only_a_write_ahead_file_has_are_not_left_out_in_silence(nobody: Path) -> None:
    """A copy of two of the three files, in a place where the third cannot be made again."""
    path = killed(nobody)
    (path / "log.db-shm").unlink()
    before = files(path)
    folder_locked(path)
    told = r"log\.db-wal has events .* copy .* to a folder that can be written"
    with pytest.raises(OSError, match=told) as raised:
        Loop.open(path)
    assert not isinstance(raised.value, Damaged)
    assert files(path) == before


def test_a_log_that_is_written_while_it_is_read_as_one_that_nobody_writes(nobody: Path) -> None:
    path = closed(nobody)
    folder_locked(path)
    with closing(Loop.open(path).projection.log) as log:
        assert log.last()[0] > 0
        os.chmod(path, 0o700)
        with Loop.open(path) as writer:
            writer.decide()
        with pytest.raises(Moved, match="written while it was read"):
            log.last()
        assert not log.store.is_there()


def test_a_log_that_can_be_written_again_is_to_be_opened_again(nobody: Path) -> None:
    path = closed(nobody)
    folder_locked(path)
    with Loop.open(path) as loop:
        assert loop.projection.log.store.is_there()
        os.chmod(path, 0o700)
        assert not loop.projection.log.store.is_there()


@pytest.mark.parametrize("store", ["postgres"])
def test_a_loop_in_a_database_is_only_read_too(home: Any) -> None:
    taught(home / "loop").close()
    with Loop.open(home / "loop", read_only=True) as loop:
        head = loop.projection.log.last()
        assert loop.verify() == []
        with pytest.raises(PermissionError, match="opened for reading only"):
            loop.decide()
        assert loop.projection.log.last() == head
