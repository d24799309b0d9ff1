"""Compiled loops: kept on disk, compiled once, never stale; in other processes too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import heedful
from heedful.core.conformance import identical
from heedful.core.fold import trace
from heedful.jit import cache as compiling
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.learners.ordinal.perceptrons import ConstantRank
from heedful.spaces.ranking import Ranking
from heedful.worlds.instances import synthetic_ordinal

# A learner and a world that take little time to compile: what is tried here is the cache.
RULE = """
    from typing import Any, NamedTuple
    import numpy as np
    from helper import step_length
    from heedful.jit.kernel import kernel

    class State(NamedTuple):
        w: Any

    class Mine(NamedTuple):
        rate: float = 1.0
        def init(self, rng): return State(np.zeros(1))
        def propose(self, state, x, rng): return 1.0 if state.w[0] * x >= 0.0 else -1.0
        def update(self, state, x, y, feedback):
            state.w[0] += step_length(self.rate) * x * feedback
            return state

    class Signs(NamedTuple):
        X: Any
        def init(self, rng): return 0
        def over(self, truth, t): return t == len(self.X)
        def context(self, truth, t, rng): return self.X[t]
        def respond(self, truth, x, shown, rng): return 1.0 if x > 0.0 else -1.0
        def regret(self, truth, x, shown): return abs(shown - (1.0 if x > 0.0 else -1.0))
        def advance(self, truth, x, shown, feedback): return truth + 1
"""
HELPER = """
    from numba import njit
    from heedful.jit.kernel import kernel

    @njit
    def signed(t):  # a function that its author may call from Python, too
        return SIGN * t

    @kernel
    def step_length(t):
        return signed(t)
"""
MAIN = """
    import json, sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    from helper import signed
    from rule import Mine, Signs
    from heedful.core.fold import trace
    import heedful.jit.cache as compiling

    if len(sys.argv) > 2:  # the source changes after it was imported
        from pathlib import Path
        helper = Path(sys.argv[1], "helper.py")
        helper.write_text(helper.read_text().replace("+1.0", "-1.0"))
    from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen
    optimized, optimize = [], CPUCodeLibrary._optimize_final_module
    added, add = [], JITCPUCodegen._add_module
    def noted(codegen, module):
        added.append(module.name)
        return add(codegen, module)
    JITCPUCodegen._add_module = noted
    def counted(library):
        optimized.append(library.name)
        optimize(library)
    CPUCodeLibrary._optimize_final_module = counted
    world = Signs(-np.random.default_rng(0).standard_normal(61))  # the first is wrong
    regrets = trace(Mine(), world, 100, 0)
    plain = trace(Mine(), world, 100, 0, interpreted=True)
    [loop] = compiling._loops.values()
    print(json.dumps({
        "mean": regrets.mean(), "as interpreted": bool((regrets == plain).all()), "called": abs(signed(3.0)),
        "optimized": optimized, "added": sorted(added),
        "as before": CPUCodeLibrary._optimize_final_module is counted,
        "compiled": sum(loop.stats.cache_misses.values()), "loaded": sum(loop.stats.cache_hits.values()),
    }))
"""


KEY = """
    from heedful.core.fold import trace
    from heedful.jit import cache
    from heedful.learners.ordinal.perceptrons import ConstantRank
    from heedful.worlds.instances import synthetic_ordinal

    args = ConstantRank(3, 5), synthetic_ordinal(10, 3)[0]
    print(cache.__file__, cache._key(args, None, cache.reachable(args)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rule.py").write_text(textwrap.dedent(RULE))
    (tmp_path / "helper.py").write_text(textwrap.dedent(HELPER).replace("SIGN", "+1.0"))
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    return tmp_path


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "HEEDFUL_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, str(folder / "main.py"), str(folder), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.mark.slow
def test_every_checkout_and_every_environment_finds_the_same_compiled_loop(tmp_path: Path) -> None:
    copy = shutil.copytree(Path(heedful.__file__).parent, tmp_path / "src" / "heedful")
    venv.create(tmp_path / "venv", symlinks=True)
    packages = Path(sysconfig.get_paths(vars={"base": str(tmp_path / "venv")})["purelib"])
    (packages / "all.pth").write_text(f"{copy.parent}\n{sysconfig.get_paths()['purelib']}\n")

    def key(python: Path | str, *options: str) -> list[str]:
        command = [str(python), *options, "-c", textwrap.dedent(KEY)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    [here, first], [there, second] = key(sys.executable), key(tmp_path / "venv" / "bin" / "python", "-E")
    assert Path(there) == copy / "jit" / "cache.py" != Path(here)
    assert first == second


def test_the_key_of_a_loop_has_no_path_of_this_machine_in_it() -> None:
    args = ConstantRank(3, 5), synthetic_ordinal(10, 3)[0]
    modules = compiling.reachable(args)
    paths = [str(path).encode() for path in (sys.prefix, sys.base_prefix, Path(heedful.__file__).parents[1])]
    for module in modules:
        for name, value in vars(module).items():
            if not name.startswith("__") and getattr(value, "__module__", module.__name__) == module.__name__:
                for piece in compiling._code(value):
                    assert not any(path in piece for path in paths), f"{module.__name__}.{name}"


@pytest.mark.slow
def test_the_second_process_compiles_nothing_and_an_edited_source_never_runs_stale(folder: Path) -> None:
    first = finish(start(folder))
    assert (first["compiled"], first["loaded"], first["as interpreted"]) == (1, 0, True)
    # Not each function that it calls, but those that Python may call, too; nor does another one stay beside the loop,
    # which would call it unoptimised.
    assert (first["optimized"], first["as before"], first["called"]) == (["nrt", "signed", "loop"], True, 3.0)
    assert first["added"] == ["loop", "nrt", "signed"]

    second = finish(start(folder))
    assert second == {**first, "compiled": 0, "loaded": 1, "optimized": ["nrt", "signed"]}

    # The helper is another file than the learner's: numba's own cache would not notice. One run edits it after
    # it was imported; what that run keeps belongs to the old code, and the next process must not take it.
    torn = finish(start(folder, "edit"))
    assert (torn["mean"], torn["as interpreted"]) == (first["mean"], True)
    assert "-1.0" in (folder / "helper.py").read_text()

    edited = finish(start(folder))
    assert (edited["compiled"], edited["as interpreted"]) == (1, True)
    assert edited["mean"] > 1.9 > 0.1 > first["mean"] > 0.0  # it now learns the contrary

    (folder / "helper.py").write_text((folder / "helper.py").read_text().replace("-1.0", "+1.0"))
    assert finish(start(folder)) == second  # the first code again, still there


@pytest.mark.slow
def test_two_processes_at_once(folder: Path) -> None:
    """Both may compile; neither may load what the other has half written."""
    together = [start(folder) for _ in range(2)]
    results = [finish(p) for p in together]
    assert results[0]["mean"] == results[1]["mean"]
    assert all(r["as interpreted"] for r in results)
    assert finish(start(folder))["compiled"] == 0


def test_a_cache_that_others_may_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = tmp_path / "cache"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("HEEDFUL_CACHE_DIR", str(open_to_all))
    with pytest.raises(PermissionError, match="writable by you alone"):
        compiling.cache_directory()


@pytest.mark.slow
def test_without_a_cache_it_compiles_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEEDFUL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(compiling, "_loops", {})
    world, learner = synthetic_ordinal(10, 3)[0], ConstantRank(3, 5)
    with pytest.warns(UserWarning, match="Set HEEDFUL_CACHE_DIR"):
        compiled = trace(learner, world, 5, 0)
    assert identical(compiled, trace(learner, world, 5, 0, interpreted=True))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rounds() -> None:
    """A leak of one small array in each of 250,000 rounds would be tens of MB beyond the array returned."""
    program = (
        "import resource\n"
        "from heedful import DuelingBandit, Ranking, trace\n"
        "from heedful.worlds.queries import synthetic_queries\n"
        "from heedful.worlds.users import Noisy\n"
        "world = synthetic_queries(20, 5, 3, noise=1.0, user=Noisy(5))[0]\n"
        "learner = DuelingBandit(3, Ranking(3))\n"
        "trace(learner, world, 10, 0)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "regrets = trace(learner, world, 250_000, 0)\n"
        "print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) - regrets.nbytes)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert int(out) < 16e6


@pytest.mark.slow
def test_a_damaged_cache_is_made_again(folder: Path) -> None:
    """What a full disk or a lost power supply leaves: empty files, or files cut short."""
    first = finish(start(folder))
    for damaged, share in (("**/*.nbc", 0.5), ("**/*.nbi", 0.0), ("*.py", 0.0)):
        [file] = (folder / "cache").rglob(f"heedful_loop_*/{damaged}")
        file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
        assert finish(start(folder))["mean"] == first["mean"]
        assert finish(start(folder))["compiled"] == 0


def test_the_fingerprint_sees_constants_defaults_and_methods() -> None:
    """What decides a rule besides its code: the numbers it names, its defaults, the methods of its classes."""
    import types

    def module(source: str) -> types.ModuleType:
        made = types.ModuleType("made")
        exec(source, vars(made))
        for value in vars(made).values():
            if isinstance(value, type | types.FunctionType):
                value.__module__ = "made"
        return made

    sources = [
        "RATE = 1.0",
        "RATE = 2.0",
        "def f(a, b=1): return a",
        "def f(a, b=2): return a",
        "def f(a, b=1): return -a",
        "class C:\n  def f(self): return 1",
        "class C:\n  def f(self): return 2",
        "class C:\n  f = property(lambda self: 1)",
        "class C:\n  f = property(lambda self: 2)",
        "import numpy as np\nTABLE = np.arange(3)",
        "import numpy as np\nTABLE = np.arange(4)",
        "import numpy as np\nTABLE = np.arange(4).reshape(2, 2)",
        "import numpy as np\nRATE = np.float32(1)",
        "import numpy as np\nRATE = np.float32(2)",
        "def make(a):\n  def f(): return a\n  return f\ng = make(1)",
        "def make(a):\n  def f(): return a\n  return f\ng = make(2)",
        "def f(a, *, b=1): return a",
        "def f(a, *, b=2): return a",
    ]
    prints = [compiling.fingerprint([module(s)]) for s in sources]
    assert len(set(prints)) == len(sources)
    assert prints == [compiling.fingerprint([module(s)]) for s in sources]


def test_kinds_tell_apart_what_numba_does() -> None:
    """A loop meets only what it was compiled for, and is not looked for twice: but numpy's scalars, which a fold has
    coerced, are of another kind than Python's."""
    square = np.ones((3, 3))
    frozen = np.ones(3)
    frozen.flags.writeable = False
    values: list[Any] = [
        *(0, -1, 2**40, 2**63, True, 0.5, np.float32(0.5), 1j, "text"),
        *(square[0], square[:, 0], square, square.T, square[:, :2], square[:1], np.ones((3, 1)), frozen),
        *(np.ones(3, np.float32), np.ones(3, np.int64), np.ones(3, bool), np.random.default_rng(0)),
        *((1, 0.5), (1, 2), (), PreferencePerceptron(3, Ranking(2)), PreferencePerceptron(3, Ranking(2))),
    ]
    for a in values:
        for b in values:
            assert (compiling._kind(a) == compiling._kind(b)) == (numba.typeof(a) == numba.typeof(b)), (a, b)
