"""`heedful compare --models`: makes the study of an arena, or adds what is new, from a folder of models' answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.common import holds_loop
from heedful.cli.console import BadInput, note, notes
from heedful.core.wording import count
from heedful.data.files import cut_list

if TYPE_CHECKING:
    from heedful.data.choices import LoadedChoices, LoadedPairs

TOLD = 10
"""How many names are printed of what is left out, or no longer there."""
GONE = "no longer there, and still asked about"
ASK = "Which answer is better?"


@contextmanager
def making_study(path: Path) -> Iterator[None]:
    """Make the folder that the study `path` is to be in; raise BadInput if the block finds something else at `path`."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield
    except FileExistsError as error:
        raise BadInput(f"{path}: {error.strerror}, and no study: expected another --name") from error


def open_arena(source: Path, path: Path, goal: str, told: dict[str, Any]) -> list[str]:
    """Create the arena in the folder `path` from the outputs in `source`, or add to it what is new there; return a line
    for each thing that was left out, or is missing.

    `told` are the fields of `Study` that were given as options. Raise BadInput if something else is at `path`, and
    ValueError for outputs that cannot be compared."""
    from heedful.loop import Loop
    from heedful.studies.arena import create_arena, extend_arena
    from heedful.studies.outputs import read_outputs
    from heedful.studies.study import Study

    with notes().status("Reading the answers of models"):
        outputs = read_outputs(source)
    size = f"{len(outputs.answers):,} models, {count(len(outputs.prompts), 'prompt')}"
    if holds_loop(path):
        with Loop.open(path) as loop:
            new, gone = extend_arena(loop, outputs)
        note(f"going on with {path}: {size}" + (f"; {new:,} new models" if new else ""))
        if gone:
            note(f"{GONE}: {cut_list(gone, TOLD)}")
    else:
        study = Study(kind="answers", **{"ask": ASK, **told})
        with making_study(path):
            create_arena(path, outputs, study, goal).close()
        note(f"{size}, {count(outputs.questions, 'pair')} of answers to compare, in {path}")
    return [f"{each.name}: {each.why}" for each in outputs.left_out]


def loaded_battles(path: Path, votes: Path | None) -> LoadedPairs | LoadedChoices:
    """Return the votes that were given in the arena in the folder `path`, and write them to the CSV file `votes`.

    Raise ValueError if it is none, or nobody has voted."""
    from heedful.data.choices import pairs_in
    from heedful.data.spreadsheet import write_table
    from heedful.loop import Loop
    from heedful.studies.arena import BATTLES, battles, outputs_of

    outputs = outputs_of(path)
    if outputs is None:
        raise ValueError(f"{path.name}: expected a file, or an arena that heedful compare --models made, got neither")
    with Loop.open(path) as loop:
        given = list(battles(loop, outputs))
        if not given:
            raise ValueError(f"{path.name}: answers: expected at least one, got none yet")
        if votes is not None:
            loop.note_export(str(votes))
            write_table(votes, BATTLES, given)
    return pairs_in(path.name, [each._asdict() for each in given])
