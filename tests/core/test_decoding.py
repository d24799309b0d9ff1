"""Records are decoded in several threads at once, also at their first time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import heedful
from heedful.core.decoding import decoder
from heedful.loop.settings import Manifest
from loops import small_loop

OPENING = """
import sys, threading
from heedful import Loop
sys.setswitchinterval(1e-6)
together = threading.Barrier(4)
def opened():
    together.wait()
    Loop.open(sys.argv[1]).close()
threads = [threading.Thread(target=opened) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.slow
def test_a_loop_opened_by_several_threads_of_a_new_process(tmp_path: Path) -> None:
    """As a server does with its loops when it starts: three of four such processes ended with a segmentation fault."""
    small_loop(tmp_path / "loop").close()
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", OPENING, tmp_path / "loop"], capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


def test_one_decoder_for_each_record() -> None:
    assert decoder(Manifest) is decoder(Manifest)
    assert decoder(list[int]).decode(b"[1, 2]") == [1, 2]


def test_nothing_else_makes_decoders_of_records() -> None:
    makes = re.compile(r"json\.Decoder\([^)]|json\.decode\([^)]*type=|msgspec\.convert")
    root = Path(heedful.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if makes.search(path.read_text())}
    assert found == {"core/decoding.py"}
