"""heedful next to its peers: `python bench/peers/run.py [--quick] [--only NAME] [--data FOLDER]`.

Makes an environment of its own, bench/peers/.venv, of the packages in bench/peers/requirements.lock (hash by hash) with
heedful of this tree, once and again whenever the lock changes; then runs `peers.main` in it, which has the comparisons
and their options. A peer that does not install is named, with the reason, in `bench/peers/.venv/missing.json`, and the
others are compared. Only the standard library is needed to start it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = HERE / ".venv"
LOCK = HERE / "requirements.lock"
PEERS = (
    "choix", "implicit", "lightgbm", "mord", "river", "scikit-learn", "scikit-surprise", "skordinal", "vowpalwabbit",
)  # fmt: skip


def blocks(lock: str) -> dict[str, str]:
    """The lines of each package of a lock, by its name; several where a version depends on the Python."""
    found: dict[str, str] = {}
    for block in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE):
        if block.strip():
            name = re.split(r"[=\[ ;]", block, maxsplit=1)[0]
            found[name] = found.get(name, "") + block
    return found


def python() -> Path:
    """The Python of the environment."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(lines: str, *options: str) -> str:
    """Install what the lines of a lock name; what pip said in the end where it could not, else an empty text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requirements.lock"
        path.write_text(lines)
        command = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*command, "--require-hashes", *options, "-r", str(path)], capture_output=True, text=True, check=False
        )
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    return said[-1].removeprefix("ERROR: ") if done.returncode else ""


def prepare() -> None:
    """Make the environment, unless the one that is there was made of this lock."""
    lock = LOCK.read_text()
    made, wanted = VENV / "lock.sha256", hashlib.sha256(lock.encode()).hexdigest()
    if made.exists() and made.read_text() == wanted:
        return
    print(f"making {VENV.relative_to(ROOT)} (about 60 packages, 250 MB to fetch; once)", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    packages = blocks(lock)
    for lines in (packages.pop("setuptools"), "".join(packages[name] for name in packages if name not in PEERS)):
        if error := install(lines, "--only-binary", ":all:"):
            raise SystemExit(f"heedful's own packages cannot be installed: {error}")
    pip = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--editable", str(ROOT)], check=True)
    missing = {}
    for name in PEERS:
        if error := install(packages[name], "--no-build-isolation"):
            missing[name] = error
            print(f"{name} does not install: {error}", flush=True)
    (VENV / "missing.json").write_text(json.dumps(missing))
    made.write_text(wanted)


def main() -> int:
    """Run the comparisons in their environment; its exit status."""
    prepare()
    paths = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH", ""))))
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [str(python()), "-m", "peers.main", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, **one, "PYTHONPATH": paths}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
