"""`heedful compare --models`: makes the study of an arena, or adds what is new, from a folder of models' answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.cli.console import BadInput, note, notes

TOLD = 10
"""How many models that are no longer there are printed by name."""
ASK = "Which answer is better?"


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
    size = f"{len(outputs.answers):,} models, {len(outputs.prompts):,} prompts"
    if (path / "log.db").is_file():
        with Loop.open(path) as loop:
            new, gone = extend_arena(loop, outputs)
        note(f"going on with {path}: {size}" + (f"; {new:,} new models" if new else ""))
        if gone:
            more = f" and {len(gone) - TOLD:,} more" if len(gone) > TOLD else ""
            note(f"no longer there, and still asked about: {', '.join(gone[:TOLD])}{more}")
    else:
        study = Study(kind="answers", **{"ask": ASK, **told})
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_arena(path, outputs, study, goal).close()
        except FileExistsError as error:
            raise BadInput(f"{path}: {error.strerror}, and no study: expected another --name") from error
        note(f"{size}, {outputs.questions:,} pairs of answers to compare, in {path}")
    return [f"{each.name}: {each.why}" for each in outputs.left_out]
