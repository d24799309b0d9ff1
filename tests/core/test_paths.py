"""What is at a path: nothing is called missing that only may not be seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heedful.core.paths import new_folder, path_kind
from locked import lock


def test_what_is_at_a_path_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nothing")
    kinds = {"file": "file", "pipe": "other", "link": "file", "dangling": "", "nothing": "", "file/a": "", "\0": ""}
    assert {name: path_kind(tmp_path / name) for name in kinds} == kinds
    assert path_kind(tmp_path) == path_kind(f"{tmp_path}/") == "folder"


def test_what_the_system_does_not_tell_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    for path in (tmp_path / "round", tmp_path / ("a" * 300)):
        with pytest.raises(OSError, match=path.name[:9]):
            path_kind(path)


def test_a_folder_that_may_not_be_entered_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    lock(tmp_path, monkeypatch)
    assert not (tmp_path / "file").is_file()
    assert path_kind(tmp_path) == "folder"
    for name in ("file", "nothing"):
        with pytest.raises(PermissionError, match=name):
            path_kind(tmp_path / name)


def test_the_system_says_so_of_such_a_folder(nobody: Path) -> None:
    (nobody / "locked").mkdir()
    (nobody / "locked" / "file").touch()
    os.chmod(nobody / "locked", 0o600)
    with pytest.raises(PermissionError):
        path_kind(nobody / "locked" / "file")


def test_a_new_folder_is_on_the_disk_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut it is found: the folder that it is in is synchronised once it has its name."""
    synced = list[tuple[bool, bool]]()

    def fsync(file: int) -> None:
        synced.append((os.path.samestat(os.fstat(file), os.stat(tmp_path)), (tmp_path / "new").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with new_folder(tmp_path / "new") as folder:
        folder.mkdir()
        assert synced == []
    assert synced == [(True, True)]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
