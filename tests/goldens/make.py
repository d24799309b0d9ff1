"""Write what heedful makes of fixed streams: tests/goldens/folds.

    .venv/bin/python -m goldens.make folds          (in the folder tests)

A fold that is there is written again only under another version: what a version folds never changes.
"""

from __future__ import annotations

import sys

from goldens import folds


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


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if wanted != ["folds"]:
        raise SystemExit(__doc__)
    if told := make_folds():
        raise SystemExit("\n".join(told))
