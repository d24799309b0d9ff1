"""docs/operations.md and deploy/: what can be run of them runs, and what they name is there."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from heedful import Loop, Settings, infer
from heedful.cli import app, command
from heedful.loop.log.schema import SCHEMA
from heedful.loop.retraction import Unerased
from heedful.server.keys import Keys
from heedful.server.main import served
from loops import bits, rows, small_loop
from processes import free_port

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "operations.md").read_text()
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "heedful.service"
BACKUP = (DEPLOY / "heedful-backup.service", DEPLOY / "heedful-backup.timer")
CONTAINER = DEPLOY / "Containerfile"
RULES = DEPLOY / "prometheus" / "rules.yaml"
DASHBOARD = DEPLOY / "grafana" / "dashboard.json"


def blocks(language: str, page: str = PAGE) -> list[str]:
    """The fenced blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def doctor(folder: Path) -> tuple[int, str]:
    """What `heedful doctor` says of a loop."""
    result = CliRunner().invoke(app, ["doctor", str(folder)], env={"COLUMNS": "200", "TERM": "dumb"})
    return result.exit_code, result.output


# ---------------------------------------------------------------------------- every block is typed

NOT_TYPED = {
    "pip": "it would change the packages that the tests run with",
    "podman": "it builds an image from what it downloads",
    "docker": "it needs a daemon and images",
    "kubectl": "it needs a cluster",
}
"""What cannot be typed where tests run, by the first word of its line, and why."""
STOP = 'if [ -n "$SERVER" ]; then kill $SERVER; wait $SERVER || true; SERVER=; fi'
READY = """until python - 2>/dev/null <<'EOF'
import os, urllib.request
urllib.request.urlopen(f"http://127.0.0.1:{os.environ['HEEDFUL_SERVE_PORT']}/readyz")
EOF
do kill -0 $SERVER; sleep .1; done"""


def typed(block: str, values: dict[str, str]) -> Iterator[str]:
    """The lines of a block, to be typed one after the other: variables get these values of the tests' own, and a server
    takes the place of the one before."""
    for line in block.splitlines():
        first, *words = shlex.split(line, comments=True)
        if first in NOT_TYPED:
            continue
        if first == "export":
            for name, _, value in (word.partition("=") for word in words):
                yield shlex.join(["export", f"{name}={values.get(name, value)}"])
        elif words[:1] == ["serve"]:
            yield from (STOP, f"{line} & SERVER=$!", READY)
        else:
            yield line


def type_all(lines: Iterable[str], folder: Path) -> str:
    """Type lines in a shell in a folder; what the commands said."""
    script = "\n".join(["set -eu -o pipefail", "SERVER=", f"trap '{STOP}' EXIT", *lines])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = {name: value for name, value in os.environ.items() if name != "HEEDFUL_DATABASE"}
    found |= {"PATH": path, "HEEDFUL_SERVE_PORT": str(free_port()), "COLUMNS": "200", "TERM": "dumb"}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=found, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
def test_the_blocks_of_the_page_can_be_typed(tmp_path: Path, postgres: str) -> None:
    loops, copies = tmp_path / "loops", tmp_path / "copies"
    (tmp_path / "cars.csv").write_text("name,size\n" + "".join(f"c{i},{i * 7 % 50}\n" for i in range(50)))
    values = {"LOOPS": f"{loops}", "BACKUPS": f"{copies}", "HEEDFUL_DATABASE": postgres, "ADDRESS": "127.0.0.1"}
    lines = []
    for block in blocks("sh"):
        if "heedful restore" in block:  # the text above it
            lines += [STOP, 'mv "$LOOPS" "$LOOPS-damaged"']
        lines += typed(block, values)
        if "mkdir" in block:
            lines += [f"heedful init $LOOPS/{name}.heedful cars.csv" for name in ("cars", "vans")]
    said = type_all(lines, tmp_path)
    assert re.search(r"hk[_-]\w{8} \(site\) may now decide\n", said)
    assert re.search(r"hk[_-]\w{8} \(site\) is revoked", said)
    assert f"{loops} to {copies}: 2 loops, 2 copied; keys copied" in said
    assert f"{copies} to {loops}: 2 loops, 2 copied; keys copied" in said
    assert "2 loops: all is well." in said
    for place in (loops / "cars.heedful", loops / "vans.heedful", f"{postgres}#cars"):
        with Loop.open(place) as loop:
            assert len(loop.items) == 50


@pytest.mark.slow
def test_the_blocks_about_containers_can_be_typed_as_far_as_tests_can(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "clone" / "deploy")
    lines = [line for block in blocks("sh", (ROOT / "docs" / "deploy.md").read_text()) for line in typed(block, {})]
    assert [line.split()[0] for line in lines] == ["export", "cp", "cd"]
    type_all(lines, tmp_path / "clone")
    assert (tmp_path / "secret.yaml").exists()


# ---------------------------------------------------------------------------- back up, restore


def events(folder: Path) -> list[Any]:
    """Every row of a log."""
    with closing(sqlite3.connect(folder / "log.db")) as db:
        return db.execute("SELECT * FROM event ORDER BY seq").fetchall()


def run(*words: object) -> list[dict[str, Any]]:
    """What a command with --json says that has to go well."""
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    said: list[dict[str, Any]] = json.loads(result.stdout)
    return said


class Traffic:
    """Decisions and clicks from a few threads, and what was acknowledged of them."""

    def __init__(self, url: str, keys: dict[str, str], loops: list[tuple[str, str]]) -> None:
        self.url, self.said = url, list[tuple[str, str, str]]()
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(keys[tenant], tenant, name, i), daemon=True)
            for i, (tenant, name) in enumerate(loops)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _run(self, key: str, tenant: str, name: str, i: int) -> None:
        with httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {key}"}, timeout=30) as http:
            n = 0
            while not self._ending.is_set():
                n += 1
                decision = http.post(f"/v1/loops/{name}/decisions", json={"id": f"d{i}-{n}", "person": f"p{n % 7}"})
                told = {"decision": f"d{i}-{n}", "id": f"e{i}-{n}", "clicks": [decision.json()["shown"][1]]}
                answer = http.post(f"/v1/loops/{name}/feedback", json=told).json()
                assert answer["status"] == "applied", answer
                self.said.append((tenant, name, f"d{i}-{n}"))

    def wait_for(self, n: int) -> None:
        """Until so many more were acknowledged."""
        wanted = len(self.said) + n
        while len(self.said) < wanted:
            assert any(thread.is_alive() for thread in self._threads)
            threading.Event().wait(0.01)


@pytest.mark.slow
def test_a_back_up_under_load_is_whole_and_can_be_restored(tmp_path: Path) -> None:
    folder, copy = tmp_path / "served", tmp_path / "copy"
    (folder / "acme").mkdir(parents=True)
    places = {("main", "cars"): "cars.heedful", ("acme", "vans"): "acme/vans.heedful"}
    for path in places.values():
        small_loop(folder / path).close()
    with closing(Keys(folder)) as held:
        keys = {tenant: held.create(tenant, tenant=tenant)[1] for tenant in ("main", "acme")}

    with served(folder) as url:
        with Traffic(url, keys, [*places, *places]) as traffic:
            traffic.wait_for(60)
            run("backup", folder, copy)
            traffic.wait_for(20)
            before = list(traffic.said)
            made = run("backup", folder, copy)  # over the first one
            with closing(sqlite3.connect(folder / "cars.heedful" / "log.db")) as source:
                source.execute("VACUUM INTO ?", [str(tmp_path / "vacuumed.db")])
            traffic.wait_for(20)
        asked = f"{url}/v1/loops/cars/events?follow=false"
        lines = httpx.get(asked, headers={"authorization": f"Bearer {keys['main']}"}).text.splitlines()
    assert [(part["name"], part["status"]) for part in made] == [
        ("acme/vans", "copied"), ("cars", "copied"), ("keys", "unchanged")
    ]  # fmt: skip
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert {path.relative_to(copy).as_posix() for path in files} == {
        "server.db", "cars.heedful/log.db", "acme/vans.heedful/log.db"
    }  # fmt: skip
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (copy, *copy.rglob("*")) if path.is_dir()} == {0o700}
    assert doctor(copy)[0] == 0

    # Every copy is a beginning of its log, with all that was acknowledged before it was taken.
    for (tenant, name), path in places.items():
        code, told = doctor(copy / path)
        assert code == 0, told
        with Loop.open(copy / path) as loop:
            whole, kept = events(folder / path), events(copy / path)
            assert kept == whole[: len(kept)]
            assert len(kept) < len(whole)
            assert loop.verify() == []
            there = {row[2] for row in kept}
            assert {id for t, n, id in before if (t, n) == (tenant, name)} <= there
    (tmp_path / "vacuumed.heedful").mkdir(mode=0o700)
    (tmp_path / "vacuumed.db").rename(tmp_path / "vacuumed.heedful" / "log.db")
    assert doctor(tmp_path / "vacuumed.heedful")[0] == 0

    # Restored into another folder it is served, keys and all; what came since is imported from the stream of events.
    restored = tmp_path / "restored"
    run("restore", copy, restored)
    file = tmp_path / "since.jsonl"
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    file.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "seq"}) + "\n" for line in told))
    result = CliRunner().invoke(app, ["import", str(restored / "cars.heedful"), str(file)])
    assert result.exit_code == 0, result.output
    with Loop.open(restored / "cars.heedful") as loop, Loop.open(folder / "cars.heedful") as was:
        assert loop.projection.log.counts() == was.projection.log.counts()
        assert loop.weights == was.weights
        assert bits(loop).keys() == bits(was).keys()
    with served(restored) as url:
        for (tenant, name), _ in places.items():
            headers = {"authorization": f"Bearer {keys[tenant]}"}
            _, _, id = next(each for each in before if each[:2] == (tenant, name))
            person = f"p{int(id.partition('-')[2]) % 7}"
            again = httpx.post(f"{url}/v1/loops/{name}/decisions", json={"id": id, "person": person}, headers=headers)
            assert again.status_code == 200, again.text
            event = {"decision": id, "id": f"e{id[1:]}", "clicks": [again.json()["shown"][1]]}
            said = httpx.post(f"{url}/v1/loops/{name}/feedback", json=event, headers=headers).json()
            assert said["status"] == "duplicate"
        assert httpx.get(f"{url}/v1/loops").status_code == 401


# ---------------------------------------------------------------------------- upgrade


def test_what_litestream_keeps_is_named_by_forget(tmp_path: Path) -> None:
    with small_loop(tmp_path / "l.heedful", control=0.0) as loop:
        for person in ("ann", "bob"):
            loop.feedback(loop.decide(person=person).id, none=True)
        assert loop.forget("ann").unreached == ()
        (tmp_path / "l.heedful" / ".log.db-litestream").mkdir()
        [told] = loop.forget("bob").unreached
        assert told.startswith(".log.db-litestream next to the log")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("litestream") is None, reason="there is no litestream in PATH")
def test_litestream_copies_a_folder_as_the_page_says(tmp_path: Path) -> None:
    """Loops that are there and new ones; a copy that is restored is the loop; forgetting leaves nothing, in the order
    of the page."""
    folder, copies = tmp_path / "served", tmp_path / "copies"
    [config] = [block for block in blocks("yaml") if block.startswith("dbs:")]
    for name, place in (("/var/lib/heedful", folder), ("/backup/heedful", copies)):
        assert name in config
        config = config.replace(name, str(place))
    (tmp_path / "litestream.yml").write_text(config)
    folder.mkdir()
    small_loop(folder / "cars.heedful", control=0.0).close()

    def start() -> subprocess.Popen[bytes]:
        command = ["litestream", "replicate", "-config", tmp_path / "litestream.yml"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def restored(name: str, n: int) -> dict[str, bytes]:
        """The model of a copy, once it has that many decisions."""
        end = time.monotonic() + 60
        while True:
            again = tmp_path / f"restored-{time.monotonic_ns()}.heedful"
            command = ["litestream", "restore", "-o", again / "log.db", f"file://{copies / name / 'log.db'}"]
            if subprocess.run(command, capture_output=True).returncode == 0:
                with Loop.open(again) as loop:
                    if loop.projection.log.counts().get("decision") == n:
                        assert loop.verify() == []
                        return bits(loop)
            assert time.monotonic() < end
            time.sleep(0.5)

    def teach(loop: Loop, rounds: range) -> None:
        for i in rounds:
            d = loop.decide(id=f"d{i}", person="annemarie" if i % 2 else "bob")
            loop.feedback(d.id, id=f"e{i}", clicks=[d.shown[3]])

    def holding() -> list[Path]:
        found = [path for place in (folder, copies) for path in place.rglob("*") if path.is_file()]
        return [path for path in found if b"annemarie" in path.read_bytes()]

    running = start()
    try:
        with Loop.open(folder / "cars.heedful") as loop, small_loop(folder / "new.heedful", control=0.0) as new:
            teach(loop, range(40))
            teach(new, range(10))
            assert (restored("cars.heedful", 40), restored("new.heedful", 10)) == (bits(loop), bits(new))
            new.close()
            with pytest.raises(Unerased) as told:
                loop.forget("annemarie")
            assert told.value.forgotten.unreached
            running.terminate()
            running.wait(30)
            loop.finish_forgetting()
            assert {path.relative_to(folder).parts[:2] for path in holding() if folder in path.parents} <= {
                ("cars.heedful", ".log.db-litestream"), ("new.heedful", "log.db"), ("new.heedful", "log.db-wal"),
                ("new.heedful", ".log.db-litestream"),
            }  # fmt: skip
            shutil.rmtree(folder / "new.heedful")
            shutil.rmtree(folder / "cars.heedful" / ".log.db-litestream")
            for copy in ("cars.heedful", "new.heedful"):
                shutil.rmtree(copies / copy)
            assert holding() == []
            running = start()
            teach(loop, range(100, 101))
            assert restored("cars.heedful", 21) == bits(loop)
            assert holding() == []
    finally:
        running.kill()
        running.wait(30)


def test_an_older_version_refuses_a_newer_log_and_leaves_it_alone(tmp_path: Path) -> None:
    small_loop(tmp_path / "cars.heedful").close()
    log, newer = tmp_path / "cars.heedful" / "log.db", SCHEMA.version + 1
    with closing(sqlite3.connect(log)) as db:
        db.execute(f"PRAGMA user_version = {newer}")
    before = log.read_bytes()
    with served(tmp_path) as url:
        answer = httpx.get(f"{url}/v1/loops/cars")
    assert answer.status_code == 503
    code, told = doctor(tmp_path / "cars.heedful")
    page = " ".join(PAGE.split())
    quoted = f"expected a log of schema {newer - 1}, got {newer}: a newer heedful wrote it"
    assert code == 1
    assert quoted in " ".join(told.split())
    assert quoted in page
    assert log.read_bytes() == before


# ---------------------------------------------------------------------------- what to watch


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What /metrics shows once there was something of everything."""
    folder = tmp_path_factory.mktemp("watched")
    small_loop(folder / "cars.heedful").close()
    with served(folder) as url:
        shown = httpx.post(f"{url}/v1/loops/cars/decisions", json={"id": "d1"}).json()["shown"]
        httpx.post(f"{url}/v1/loops/cars/feedback", json={"decision": "d1", "clicks": [shown[1]]})
        return httpx.get(f"{url}/metrics").text


def test_every_series_is_on_the_page_and_every_series_of_the_page_is_there(metrics: str) -> None:
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", metrics, re.M))
    table = set(re.findall(r"^\| `(heedful_\w+)` \|", PAGE, re.M))
    assert table == {name for name in kinds if name.startswith("heedful_")}
    histograms = {f"{name}{end}" for name, kind in kinds.items() if kind == "histogram" for end in ("_bucket", "_sum")}
    for name in re.findall(r"\b(?:heedful|process)_[a-z_]+\b", f"{PAGE} {asked()}"):
        assert name in kinds or name in histograms, name


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def asked() -> str:
    """All that the alert rules and the dashboard ask Prometheus."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    targets = [target["expr"] for panel in panels for target in panel["targets"]]
    return "\n".join([*(rule["expr"] for rule in rules()), *targets])


def test_rules_and_dashboard_ask_for_labels_and_values_that_there_are(metrics: str) -> None:
    labels = set(re.findall(r'[{,](\w+)="', metrics)) | {"job"}
    for name in re.findall(r'(\w+)=~?"', asked()):
        assert name in labels, name
    for group in re.findall(r"by \(([^)]*)\)", asked()):
        assert set(group.split(", ")) <= labels, group
    routes = set(re.findall(r'heedful_requests_total{route="([^"]*)"', metrics))
    wanted = set(re.findall(r'route=~"([^"]*)"', asked()))
    assert len(wanted) == 2
    for route in wanted:
        assert [each for each in routes if re.fullmatch(route, each)] != []
    for kind in re.findall(r'kind="(\w+)"', asked()):
        assert f'kind="{kind}"' in metrics, kind


def test_every_alert_is_on_the_page() -> None:
    assert re.findall(r"^\| `(Heedful\w+)` \|", PAGE, re.M) == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule.keys() <= {"alert", "expr", "for", "labels"}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["expr"].count("(") == rule["expr"].count(")")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here")
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_panels_of_the_dashboard_are_apart() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len({panel["id"] for panel in dashboard["panels"]}) == len(places)
    [variable] = dashboard["templating"]["list"]
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {f"${{{variable['name']}}}"}


def test_the_yaml_is_yaml() -> None:
    copied, scraped = (yaml.safe_load(block) for block in blocks("yaml"))
    assert copied["dbs"][0]["dir"] == "/var/lib/heedful"
    assert scraped["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:8710"]
    [pods] = yaml.safe_load((DEPLOY / "prometheus" / "kubernetes.yaml").read_text())["scrape_configs"]
    [machine] = scraped["scrape_configs"]
    for name in ("job_name", "authorization"):
        assert pods[name] == machine[name]
    assert f'job="{pods["job_name"]}"' in asked()


LEVELS = ("debug", "info", "warning", "error", "exception", "critical")


def test_every_message_of_the_log_is_on_the_page() -> None:
    found = 0
    for file in sorted((ROOT / "src" / "heedful" / "server").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            text = node.args[0]
            if ast.unparse(node.func.value) != "log" or node.func.attr not in LEVELS:
                continue  # a loop's own log is called so, too
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found += 1
                for part in re.split(r"%\w", text.value):
                    assert part.strip(":; ") in PAGE, f"{file.name}: {part}"
    assert found >= 6


# ---------------------------------------------------------------------------- limits, sizes


KEYS = ("create", "list", "revoke", "scopes")


def option_defaults(*names: str) -> dict[str, Any]:
    """The options of a command, with their defaults."""
    return {option: p.default for p in command(" ".join(names)).params for option in p.opts if option.startswith("--")}


def test_every_option_of_serve_can_be_set_in_the_environment(tmp_path: Path) -> None:
    help = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    for option in option_defaults("serve"):
        assert f"HEEDFUL_SERVE_{option[2:].replace('-', '_').upper()}" in help
    [file] = blocks("ini")
    for name in re.findall(r"^(HEEDFUL_SERVE_\w+)=", file, re.M):
        assert name in help
    wrong = {"HEEDFUL_SERVE_LOG": "csv", "HEEDFUL_SERVE_MOST_OPNE": "5"}
    for words, got in (([], "csv"), (["--log", "xml"], "xml")):
        result = CliRunner().invoke(app, ["serve", str(tmp_path), *words], env=wrong)
        assert result.exit_code == 2
        assert re.findall(r"HEEDFUL_SERVE_\w+", result.output) == ["HEEDFUL_SERVE_MOST_OPNE"]
        assert f"--log: expected text or json, got '{got}'" in result.output


def settled(loop: Loop) -> int:
    """Bytes of a log with nothing left beside it."""
    with closing(sqlite3.connect(loop.path / "log.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        return int(db.execute("PRAGMA page_count").fetchone()[0]) * 4096


@pytest.mark.slow
def test_what_things_take_on_the_disk_is_what_the_page_says(tmp_path: Path) -> None:
    said = {name: float(n.replace(",", "")) for name, n in re.findall(r"^\| ([^|]*) \| ([\d,]+) \|$", PAGE, re.M)}
    items = [row | {"id": f"item-{row['id'][1:]:>05}"} for row in rows(4_000, 50)]
    encoding = infer(items)
    rng = np.random.default_rng(1)
    took: dict[str, float] = {}
    told: dict[str, Any]

    def measure(name: str, loop: Loop, ask: Callable[[str], Any], n: int = 150) -> None:
        start = settled(loop)
        shown = [(f"search-{i:08d}", ask(f"search-{i:08d}").shown[1]) for i in range(n)]
        middle = settled(loop)
        for id, first in shown:
            loop.feedback(id, id=f"click-{id[7:]}", clicks=[first])
        took[name] = (middle - start) / n
        took["feedback, a click"] = (settled(loop) - middle) / n

    def some(m: int) -> list[str]:
        return [items[j]["id"] for j in rng.choice(4_000, m, replace=False)]

    by_name = [("a decision among 20 items by name", 20, None), ("... among 100 by name", 100, None)]
    for name, m, show in [*by_name, ("... among 100 by name, `show` 10", 100, 10)]:
        with Loop.create(tmp_path / f"{m}-{show}.heedful", encoding=encoding, items=items) as loop:
            took["an item with 50 numbers"] = settled(loop) / 4_000
            told = {"person": "p123", "show": show}
            measure(name, loop, lambda id, m=m, told=told, loop=loop: loop.decide(some(m), id=id, **told))
    wide, X = rows(2, 136), rng.standard_normal((100, 136)).astype(np.float32)
    few = "... the same, `show` 10, with the setting `keep_unshown` off"
    for name, every, show in (("... among 100 rows of 136 raw numbers", True, None), (few, False, 10)):
        kept = Settings(keep_unshown=every)
        with Loop.create(tmp_path / f"{every}.heedful", encoding=infer(wide), items=wide, settings=kept) as loop:
            told = {"person": "p123", "show": show}
            measure(name, loop, lambda id, told=told, loop=loop: loop.decide(X, id=id, **told))
    assert said.keys() == took.keys()
    for name, n in took.items():
        assert n == pytest.approx(said[name], rel=0.2), name


# ---------------------------------------------------------------------------- deploy/

# Of systemd.exec(5), systemd.service(5), systemd.resource-control(5), systemd.unit(5): what the unit uses.
_FLAG, _PATH = "yes|no", r"/[\w./-]+"
OPTIONS = {
    "Unit": {"Description": ".+", "After": r"[\w.-]+", "Wants": r"[\w.-]+", "StartLimitIntervalSec": r"\d+"},
    "Install": {"WantedBy": r"[\w.-]+\.target"},
    "Timer": {"OnCalendar": r"\*-\*-\* \d\d:\d\d", "RandomizedDelaySec": r"\d+min", "Persistent": "true|false"},
    "Service": {
        "Type": "oneshot",
        "EnvironmentFile": "-?" + _PATH,
        "Nice": r"\d+",
        "ExecStart": _PATH + " .*",
        "User": r"[a-z_][a-z0-9_-]*",
        "StateDirectory": r"[\w-]+( [\w-]+)*",
        "StateDirectoryMode": "0[0-7]{3}",
        "WorkingDirectory": _PATH,
        "UMask": "0[0-7]{3}",
        "Restart": "no|on-success|on-failure|on-abnormal|on-watchdog|on-abort|always",
        "RestartSec": r"\d+",
        "TimeoutStopSec": r"\d+",
        "LimitNOFILE": r"\d+",
        "CapabilityBoundingSet": "",
        "ProtectSystem": "yes|no|full|strict",
        "ProtectHome": "yes|no|read-only|tmpfs",
        "ProtectProc": "noaccess|invisible|ptraceable|default",
        "RestrictAddressFamilies": "(AF_(UNIX|INET6?) ?)+",
        "SystemCallArchitectures": "native",
        "SystemCallFilter": "@[a-z-]+",
        "SystemCallErrorNumber": "E[A-Z]+",
        **dict.fromkeys(
            ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectClock", "ProtectControlGroups",
             "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "LockPersonality",
             "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID"),
            _FLAG,
        ),
    },
}  # fmt: skip


def unit(path: Path = UNIT) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(path.read_text())
    return found


def test_the_unit_is_started_again_however_long_the_database_is_away() -> None:
    found = unit()
    assert (found["Service"]["Restart"], found["Unit"]["StartLimitIntervalSec"]) == ("on-failure", "0")


def test_the_unit_has_options_that_there_are() -> None:
    for path in (UNIT, *BACKUP):
        for section, there in unit(path).items():
            for name, value in there.items():
                assert name in OPTIONS[section], name
                assert re.fullmatch(OPTIONS[section][name], value), f"{name}={value}"
    found = unit()
    assert found.sections() == ["Unit", "Service", "Install"]
    wanted = {"NoNewPrivileges": "yes", "ProtectSystem": "strict", "UMask": "0077", "Restart": "on-failure"}
    assert wanted.items() <= dict(found["Service"]).items()
    folder = f"/var/lib/{found['Service']['StateDirectory']}"
    assert found["Service"]["WorkingDirectory"] == folder


def test_the_back_up_is_of_what_the_server_serves() -> None:
    served, backup = (unit(path)["Service"] for path in (UNIT, BACKUP[0]))
    for name in ("User", "WorkingDirectory", "UMask", "StateDirectoryMode", "EnvironmentFile"):
        assert backup[name] == served[name], name
    assert shlex.split(served["ExecStart"])[1:] == ["serve"]
    _, command, source, target = shlex.split(backup["ExecStart"])
    assert (command, source) == ("backup", ".")  # the working directory, or the database of the environment
    assert [f"/var/lib/{name}" for name in backup["StateDirectory"].split()] == [served["WorkingDirectory"], target]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    places = {path: tmp_path / path.name for path in (UNIT, *BACKUP)}
    for path, place in places.items():
        place.write_text(
            path.read_text().replace("=/opt/heedful/bin/heedful ", f"={Path(sys.executable).with_name('heedful')} ")
        )
    command = ["systemd-analyze", "verify", "--man=no", *map(str, places.values())]
    found = {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}  # with those of the system
    done = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def instructions() -> list[tuple[str, str]]:
    """(instruction, what follows it) of the Containerfile."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", CONTAINER.read_text(), flags=re.M))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in text.splitlines() if line.strip()]


def last(name: str) -> str:
    return [value for key, value in instructions() if key == name][-1]


def test_the_container_is_what_the_page_says() -> None:
    assert {key for key, _ in instructions()} <= {
        "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"
    }  # fmt: skip
    assert last("USER") == "10001"  # a number: Kubernetes sees that it is not root
    assert "--uid 10001 " in CONTAINER.read_text()
    assert last("VOLUME") == "/loops"
    assert last("EXPOSE") == str(option_defaults("serve")["--port"])
    assert any("pip download" in value and "--require-hashes" in value for key, value in instructions() if key == "RUN")
    for key, value in instructions():
        if key == "COPY" and "--from" not in value:
            assert all((ROOT / name).exists() for name in value.split()[:-1]), value


@pytest.mark.slow
def test_the_health_check_of_the_container_tells_well_from_ill(tmp_path: Path) -> None:
    words = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert words[0] == "python"
    with served(tmp_path) as url:
        command = [sys.executable, *words[1:-1], words[-1].replace("http://127.0.0.1:8710", url)]
        assert subprocess.run(command, check=False).returncode == 0
    assert subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 1


def test_without_a_key_nothing_beyond_this_machine_is_served(tmp_path: Path) -> None:
    words = json.loads(last("CMD"))
    words.insert(1, str(tmp_path))
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    [quoted] = re.findall(r"`(--host: [^`]*)`", PAGE)
    assert quoted in result.output


def commands() -> list[list[str]]:
    """Every command of heedful's in the page and in deploy/, as words."""
    units = [path.read_text() for path in (UNIT, *BACKUP)]
    texts = [*blocks("sh"), CONTAINER.read_text(), *units]
    found = []
    for text in texts:
        for line in text.splitlines():
            for match in re.findall(
                r"(?:^|[ /=])heedful ((?:serve|keys|doctor|init|export|import|forget|backup|restore)\b.*)", line
            ):
                found.append(shlex.split(match.split("&&")[0], comments=True))
    found.append([*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))][1:])
    inline = re.findall(r"`heedful ((?:serve|keys|doctor|init|export|import|forget|backup|restore)[^`]*)`", PAGE)
    return found + [shlex.split(line) for line in inline]


def test_the_commands_are_there_with_their_options() -> None:
    assert len(commands()) > 10
    for words in commands():
        name = words[:2] if words[0] == "keys" else words[:1]
        if name == ["keys"]:
            continue
        there = option_defaults(*name)
        for option in words:
            if option.startswith("--"):
                assert option in there, words
