"""The server under load, on loopback, one process: decisions by id and with raw features, durable feedback.

    .venv/bin/python bench/server.py [--quick] [--folder DIR] [--durable] [--parts]

The load comes from wrk (Debian's package wrk), another process; latencies at a steady rate from a generator of our own
that keeps to its schedule whether answers come or not, in a third. Next to each figure, from the same run: what a route
that does nothing answers, and the single commits that the disk does. `--parts` says where a decision's time goes, by
py-spy, which looks at the server 200 times a second.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from loop import single_commits
from machine import record

from heedful import Loop, Settings, infer
from heedful.server.keys import Keys

ITEMS, CANDIDATES, SHOW, CONNECTIONS = 10_000, 100, 10, 64
BARE = """
import sys, socket
from heedful.server.main import config
import uvicorn
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=2048)
uvicorn.Server(config(app)).run([listener])
"""

PEER = """
import sys
from granian.constants import Interfaces
from granian.server import Server
async def app(scope, protocol):
    await protocol()
    protocol.response_bytes(200, [("content-length", "2")], b"{}")
if __name__ == "__main__":
    Server("peer:app", address="127.0.0.1", port=int(sys.argv[1]), interface=Interfaces.RSGI, log_enabled=False).serve()
"""
"""The same route of granian's RSGI, a server that is maintained elsewhere."""


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A server process, once it answers; its process id."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(200):
            try:
                asyncio.run(_touch(port))
                break
            except OSError:
                time.sleep(0.05)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


async def _touch(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def worker_of(pid: int) -> int:
    """The process that answers for granian's: its only child that is no tracker of multiprocessing's."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    [found] = [each for each in children if b"tracker" not in Path(f"/proc/{each}/cmdline").read_bytes()]
    return int(found)


def wrk(pid: int, port: int, script: str, seconds: int, folder: Path) -> dict[str, float]:
    """What wrk makes of it: requests a second, and the server's processor time for each."""
    path = folder / "load.lua"
    path.write_text(script)
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", "--latency", "-s", str(path), f"http://127.0.0.1:{port}/"]
    subprocess.run([*command[:1], "-d1s", *command[1:]], capture_output=True, check=True)
    before = cpu(pid)
    told = subprocess.run(
        [*command[:1], f"-d{seconds}s", *command[1:]], capture_output=True, text=True, check=True
    ).stdout
    spent = cpu(pid) - before
    if "Non-2xx" in told:
        raise SystemExit(told)
    n = int(re.search(r"(\d+) requests in", told)[1])  # type: ignore[index]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", told)[1])  # type: ignore[index]
    unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}
    tails = {q: float(v) * unit[u] for q, v, u in re.findall(r"(\d+)%\s+([\d.]+)(us|ms|s)\b", told)}
    return {
        "per_second": round(rate),
        "p50_ms": round(tails["50"], 2),
        "p99_ms": round(tails["99"], 2),
        "cpu_ms_per_request": round(1e3 * spent / n, 4),
    }


# ---------------------------------------------------------------------------- what is asked


def lua(path: str, key: str, setup: str, body: str, kind: str = "application/json") -> str:
    """A script of wrk: requests are made before the load begins, or cheaply on the way."""
    return f"""
local headers = {{["Content-Type"] = "{kind}", ["Authorization"] = "Bearer {key}"}}
local made, n = {{}}, 0
function init(args)
  math.randomseed(os.time())
  run = string.format("%x%x", os.time(), math.random(1, 2 ^ 30))
{setup}
end
function request()
  n = n + 1
  {body}
end
"""


def decisions(key: str) -> str:
    return lua(
        "", key,
        f"""  for k = 1, 500 do
    local names = {{}}
    for i = 1, {CANDIDATES} do names[i] = '"item-' .. ((i * 37 + k * 13) % {ITEMS}) .. '"' end
    local body = '{{"candidates":[' .. table.concat(names, ",") .. '],"show":{SHOW}}}'
    made[k] = wrk.format("POST", "/v1/loops/bench/decisions", headers, body)
  end""",
        "return made[n % 500 + 1]",
    )  # fmt: skip


def feedback(key: str, decided: list[tuple[str, list[str]]]) -> str:
    rows = ",".join(f'{{"{id}","{shown[1]}","{shown[4]}"}}' for id, shown in decided)
    return lua(
        "", key, f"  made = {{{rows}}}",
        """local d = made[n % #made + 1]
  return wrk.format("POST", "/v1/loops/bench/feedback", headers,
    string.format('{"decision":"%s","id":"%s-%d","clicks":["%s","%s"]}', d[1], run, n, d[2], d[3]))""",
    )  # fmt: skip


def numbers(key: str, features: int, folder: Path) -> str:
    raw = np.random.default_rng(2).standard_normal((CANDIDATES, features)).astype("<f4").tobytes()
    (folder / "raw.bin").write_bytes(raw)
    return lua(
        "", key,
        f"""  local file = io.open("{folder}/raw.bin", "rb")
  made[1] = wrk.format("POST", "/v1/loops/bench/decisions?show={SHOW}", headers, file:read("*a"))
  file:close()""",
        "return made[1]", "application/octet-stream",
    )  # fmt: skip


def bare(body: str) -> str:
    return f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [[{body}]]\n"


# ---------------------------------------------------------------------------- a steady rate

STEADY = """
import asyncio, json, sys, time
port, rate, seconds, key = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
names = [[f"item-{(i * 37 + k * 13) % 10000}" for i in range(100)] for k in range(500)]
bodies = [json.dumps({"candidates": each, "show": 10}).encode() for each in names]
head = f"POST /v1/loops/bench/decisions HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\nauthorization: Bearer {key}\\r\\n"
head += "content-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
async def main():
    free = asyncio.Queue()
    for _ in range(64):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    late = []
    async def one(k, due):
        reader, writer = await free.get()
        body = bodies[k % 500]
        writer.write((head % len(body)).encode() + body)
        answer = await reader.readuntil(b"\\r\\n\\r\\n")
        assert b" 200 " in answer[:20], answer
        n = int(answer.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0])
        await reader.readexactly(n)
        late.append(time.perf_counter() - due)
        free.put_nowait((reader, writer))
    start, tasks = time.perf_counter() + 0.1, []
    for k in range(rate * seconds):
        due = start + k / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(k, due)))
    await asyncio.gather(*tasks)
    late = sorted(late[rate:])
    at = lambda q: late[min(int(len(late) * q / 100), len(late) - 1)]
    print(json.dumps({f"p{q}_ms": round(1e3 * at(q), 2) for q in (50, 90, 99, 99.9)}))
try:
    import uvloop
    uvloop.run(main())
except ModuleNotFoundError:
    asyncio.run(main())
"""


def steady(pid: int, port: int, key: str, rate: int, seconds: int) -> dict[str, float]:
    """Latencies, from when a request was due to its whole answer, at `rate` requests a second, evenly spaced."""
    before = cpu(pid)
    command = [sys.executable, "-c", STEADY, str(port), str(rate), str(seconds), key]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"per_second": rate, **told, "cpu_ms_per_request": round(1e3 * (cpu(pid) - before) / (rate * seconds), 4)}


# ---------------------------------------------------------------------------- all of it


def new_loop(folder: Path, learner: str, features: int, **settings: Any) -> list[tuple[str, list[str]]]:
    """A loop named bench, with decisions to answer: (id, what was shown)."""
    X = np.random.default_rng(0).standard_normal((ITEMS, features)).round(4)
    rows = [{"id": f"item-{j}", **{f"f{k}": float(v) for k, v in enumerate(row)}} for j, row in enumerate(X)]
    kinds = {f"f{k}": "number" for k in range(features)}
    encoding, told = infer(rows, identifier="id", kinds=kinds), Settings(**settings)
    at = folder / "bench.heedful"
    with Loop.create(at, encoding=encoding, items=rows, learner=learner, settings=told) as loop:
        names = loop.items
        chosen = [[names[(i * 37 + k * 13) % ITEMS] for i in range(CANDIDATES)] for k in range(2000)]
        return [(d.id, list(d.shown)) for d in (loop.decide(each, show=SHOW, person=None) for each in chosen)]


def visible(folder: Path, key: str, port: int) -> bool:
    """Whether the request after a feedback is decided by the model that has it."""
    import httpx

    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {key}"}) as client:
        d = client.post(
            "/v1/loops/bench/decisions", json={"show": SHOW, "candidates": [f"item-{j}" for j in range(50)]}
        )
        given = {"decision": d.json()["id"], "clicks": [d.json()["shown"][3]]}
        a = client.post("/v1/loops/bench/feedback", json=given).json()
        again = client.post("/v1/loops/bench/decisions", json={"show": SHOW}).json()
        return bool(again["version"] == a["version"])


PARTS = {
    "commit to the log": r"loop/log/|storage/|loop/projection",
    "record: what is written of it": r"packing|loop/records|core/ids",
    "ranking, probability, how sure": r"learners/|interactions/|spaces/|jit/",
    "names to features": r"loop/request\.py|catalogue|features/",
    "the decision around these": r"heedful/loop/",
    "key, scope, rate": r"auth\.py|rate_limit|server/keys",
    "JSON": r"server/codecs|msgspec|json",
    "HTTP": r"protocol\.py|framing|uvicorn|httptools|starlette",
    "route, threads of loops": r"heedful/server/|concurrent/futures",
    "event loop": r"asyncio|uvloop|runners",
}
"""Parts of a decision, by the innermost function of ours that is at work: a pattern of its file."""
IDLE = re.compile(r"select|_work \(heedful/server/threads|wait \(threading|_worker \(concurrent")


def parts(pid: int, seconds: int, folder: Path) -> dict[str, float]:
    """The share of each part in what the server does in these seconds."""
    raw = folder / "stacks.txt"
    told = ["py-spy", "record", "-r", "200", "-f", "raw", "-o", str(raw), "-p", str(pid), "-d", str(seconds)]
    subprocess.run(told, capture_output=True, check=True)
    shares = dict.fromkeys([*PARTS, "the rest"], 0.0)
    for line in raw.read_text().splitlines():
        stack, _, n = line.rpartition(" ")
        frames = stack.split(";")[::-1]
        if not IDLE.search(frames[0]):
            parts_of = (name for frame in frames for name, files in PARTS.items() if re.search(files, frame))
            shares[next(parts_of, "the rest")] += int(n)
    return {name: round(share / sum(shares.values()), 3) for name, share in shares.items()}


DURABLE = ("decide_by_id", "decide_by_id_steady", "feedback")


def measured(
    folder: Path,
    learner: str,
    features: int,
    keep: bool,
    seconds: int,
    port: int,
    by_parts: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """All cases of one learner, with `by_parts` the parts of a decision; with the setting `durable` those that it is
    about."""
    folder.mkdir()
    decided = new_loop(folder, learner, features, keep_unshown=keep, **settings)
    keys = Keys(folder)
    _, key = keys.create("bench")
    keys.close()
    command = [str(Path(sys.executable).with_name("heedful")), "serve", str(folder), "--port", str(port)]
    found: dict[str, Any] = {"learner": learner, "features": features, "keep_unshown": keep, **settings}
    with running(command, port) as pid:
        cases = {
            "decide_by_id": lambda: wrk(pid, port, decisions(key), seconds, folder),
            "decide_by_id_steady": lambda: steady(pid, port, key, 1000, seconds),
            "feedback": lambda: wrk(pid, port, feedback(key, decided), seconds, folder),
            "decide_raw_float32": lambda: wrk(pid, port, numbers(key, features, folder), seconds, folder),
            # Once more: by now as many decisions are kept in memory as ever are, and it grows no further.
            "decide_raw_float32_later": lambda: wrk(pid, port, numbers(key, features, folder), seconds, folder),
        }
        if by_parts:
            with ThreadPoolExecutor() as pool:
                for name in ("decide_by_id_steady", "decide_by_id"):
                    load = pool.submit(cases[name])
                    time.sleep(1.5)  # wrk tries it for a second
                    found[name] = parts(pid, max(seconds - 1, 1), folder)
                    print(load.result(), *(f"{share:6.1%}  {part}" for part, share in found[name].items()), sep="\n")
            return found
        if settings.get("durable"):
            cases = {name: case for name, case in cases.items() if name in DURABLE}
        for name, case in cases.items():
            if keep or name.startswith("decide_raw_float32"):  # the others keep the same either way
                found[name] = case()
                print(learner, features, f"keep_unshown={keep}", settings, name, found[name], flush=True)
        found["visible_to_the_next_request"] = visible(folder, key, port)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="two seconds each, and nothing is recorded")
    parser.add_argument("--folder", help="where the logs are written: the disk that is measured")
    parser.add_argument(
        "--durable",
        action="store_true",
        help="both settings of `durable` in turns, three times, and nothing is recorded",
    )
    parser.add_argument("--parts", action="store_true", help="where a decision's time goes; nothing is recorded")
    parser.add_argument("--port", type=int, default=8719)
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("bench/server.py needs wrk: apt-get install wrk")
    seconds = 2 if given.quick else 10
    folder = Path(tempfile.mkdtemp(dir=given.folder or Path(__file__).parent, prefix="server-"))
    try:
        figures: dict[str, Any] = {"single_commits_per_second": round(single_commits(folder))}
        names = json.dumps({"candidates": [f"item-{i * 37 % ITEMS}" for i in range(CANDIDATES)], "show": SHOW})
        with running([sys.executable, "-c", BARE, str(given.port)], given.port) as pid:
            figures["bare_route"] = wrk(pid, given.port, bare(names), seconds, folder)
        if find_spec("granian") is None:
            print("granian, bare route: skipped: granian is not installed", flush=True)
        else:
            (folder / "peer.py").write_text(PEER)
            with running([sys.executable, str(folder / "peer.py"), str(given.port)], given.port) as pid:
                pid = worker_of(pid)
                figures["bare_route_granian"] = wrk(pid, given.port, bare(names), seconds, folder)
        print(figures, flush=True)
        if given.parts:
            measured(folder / "parts", "posterior", 20, True, seconds, given.port, by_parts=True)
            return
        if given.durable:
            for turn in range(6):
                durable = ("decision", "feedback")[turn % 2]
                measured(folder / str(turn), "posterior", 20, True, seconds, given.port, durable=durable)
            return
        figures["served"] = []
        cases = (
            ("posterior", 20, True),
            ("posterior", 136, True),
            ("posterior", 136, False),
            ("perceptron", 136, True),
        )
        for learner, features, keep in cases:
            at = folder / f"{learner}-{features}-{keep}"
            figures["served"].append(measured(at, learner, features, keep, seconds, given.port))
        if not given.quick:
            record("server", figures)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
