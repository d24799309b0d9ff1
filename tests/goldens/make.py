"""Write what heedful makes of fixed streams and fixed logs. In the folder tests:

    python -m goldens.make folds     the state of each learner after its stream
    python -m goldens.make states    the state of each log, and what is decided from it
    python -m goldens.make texts     what is said of each log: exports, commands, pages, answers over HTTP
    python -m goldens.make figures   the figures of every report of logs with everything in them
    python -m goldens.make logs      the logs themselves, their snapshots, a server's keys

A fold, or a state with its decisions, is written again only under another version: what a version folds never changes.
Logs and keys are not written again at all: what later code writes is another log. Texts and figures are, in a commit of
their own.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("cli", "server")]

from goldens import asked, figures, folds, logs
from heedful import Loop


def make_folds() -> list[str]:
    """Write the folds that are not there, and those of another version; what was refused, in words."""
    refused = []
    folds.FOLDER.mkdir(exist_ok=True)
    for spec in folds.specs():
        path, state = folds.path_of(spec), folds.fold(spec)
        version = folds.version(spec)
        if path.exists():
            before, expected = folds.from_json(path.read_text())
            if before == version:
                if told := folds.differences(spec, expected, state):
                    refused.append(f"{spec}: {', '.join(told)} changed, and its version is {version} as before")
                continue
        path.write_text(folds.as_json(version, state))
        print(f"{path.name}: version {version}")
    return refused


def make_states() -> list[str]:
    """Write the states and decisions that are not there, and those of another version; what was refused, in words."""
    refused = []
    for kind in logs.MAKERS:
        with tempfile.TemporaryDirectory() as folder, logs.clock(logs.LATER):
            place = logs.place(kind, Path(folder), snapshot=False)
            with closing(Loop.open(place)) as loop:
                found = {"state.json": asked.state(loop), "decisions.json": asked.decisions(kind, loop)}
        to = logs.FOLDER / kind
        version, _ = folds.from_json(found["state.json"])
        if (to / "state.json").exists():
            before = {name: (to / name).read_text() for name in found}
            if folds.from_json(before["state.json"])[0] == version:
                differ = asked.differences(kind, before["state.json"], found["state.json"])
                if differ or asked.other_decisions(before["decisions.json"], found["decisions.json"]):
                    refused.append(f"{kind}: its state or decisions changed, and its version is {version} as before")
                continue
        for name, text in found.items():
            (to / name).write_text(text)
            print(f"{kind}/{name}: version {version}")
    return refused


def make_texts() -> list[str]:
    """Write all texts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in asked.texts(Path(folder)).items():
            (logs.FOLDER / name).write_text(text)
    return []


def make_figures() -> list[str]:
    """Write all figures."""
    figures.FOLDER.mkdir(exist_ok=True)
    for case in figures.CASES:
        (figures.FOLDER / f"{case}.json").write_text(figures.as_json(figures.figures(case)))
    return []


def make_logs() -> list[str]:
    """Write the logs and keys that are not there; which are, in words."""
    refused = []
    for kind in (*logs.MAKERS, "server"):
        if (logs.FOLDER / kind).exists():
            refused.append(f"{kind}: wanted none that is there, as a log of today is another one; remove it first")
            continue
        with tempfile.TemporaryDirectory() as folder:
            if kind == "server":
                logs.make_server(Path(folder))
            else:
                logs.make(kind, Path(folder) / "loop")
                logs.keep(kind, Path(folder) / "loop")
    return refused


if __name__ == "__main__":
    makers = {
        "folds": make_folds,
        "states": make_states,
        "texts": make_texts,
        "figures": make_figures,
        "logs": make_logs,
    }
    if len(sys.argv) != 2 or sys.argv[1] not in makers:
        raise SystemExit(__doc__)
    if told := makers[sys.argv[1]]():
        raise SystemExit("\n".join(told))
