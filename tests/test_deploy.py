"""docs/deploy.md and deploy/: files for containers name what there is, and run where something here can run them."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from heedful.cli import command
from processes import free_port

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "deploy.md").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVERS = ("first", "second")
LIBPQ = {"PGPASSWORD", "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT"}
"""Of https://www.postgresql.org/docs/current/libpq-envars.html: what the files and the page use."""


def options() -> set[str]:
    """The options of `heedful serve`."""
    return {option for each in command("serve").params for option in each.opts if option.startswith("--")}


def read_by_the_code() -> set[str]:
    """The names of environment variables that the source reads."""
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", sources)) | LIBPQ


def manifests() -> list[dict[str, Any]]:
    """The objects of the page's manifest for Kubernetes."""
    [block] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    return list(yaml.safe_load_all(block))


def test_the_commands_have_options_that_there_are() -> None:
    [pod] = manifests()[0]["spec"]["template"]["spec"]["containers"]
    for words in [*(COMPOSE["services"][name]["command"] for name in SERVERS), pod["args"]]:
        assert words[0] == "serve"
        named = [word for word in words if word.startswith("--")]
        assert set(named) <= options(), named
        assert words[words.index("--host") + 1] == "0.0.0.0"
        assert words[words.index("--address") + 1].endswith(":8710")
    [last] = re.findall(r"^CMD (.*)$", CONTAINER, re.M)[-1:]
    assert {word for word in json.loads(last) if word.startswith("--")} <= options()


def test_environments_have_names_that_are_read() -> None:
    [pod] = manifests()[0]["spec"]["template"]["spec"]["containers"]
    named = {each["name"] for each in pod["env"]} - {"POD_IP"}
    for name in SERVERS:
        named |= COMPOSE["services"][name]["environment"].keys()
    assert named == {"HEEDFUL_DATABASE", "PGPASSWORD"}
    assert named <= read_by_the_code()
    table = PAGE[PAGE.index("| from the environment") : PAGE.index("## Compose")]
    assert set(re.findall(r"\b(?:HEEDFUL|PG)[A-Z_]+\b", table)) <= read_by_the_code()
    assert "$(POD_IP)" in " ".join(pod["args"])
    text = (DEPLOY / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == {"HEEDFUL_PASSWORD"}
    assert "export HEEDFUL_PASSWORD=" in text
    assert not re.search(r"PASSWORD: (?!\$\{)", text), "a password is in no file"


def test_compose_names_files_services_and_volumes_that_there_are() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in COMPOSE["volumes"], volume
        assert set(service.get("depends_on", ())) <= services.keys()
        assert service["healthcheck"]["test"][0] == "CMD", name
        if "build" in service:
            context = DEPLOY / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).read_text() == CONTAINER
    for name in SERVERS:
        assert services[name]["depends_on"]["database"]["condition"] == "service_healthy"
        assert services[name]["stop_grace_period"] == "60s"
        assert f"http://{name}:8710" in services[name]["command"]
        check = json.loads(re.findall(r"^HEALTHCHECK.*\\\n +CMD (\[.*\])$", CONTAINER, re.M)[0])
        assert services[name]["healthcheck"]["test"] == ["CMD", *check]
    assert set(re.findall(r"server (\w+):8710", (DEPLOY / "nginx.conf").read_text())) == set(SERVERS)


def test_the_image_has_what_a_server_of_a_database_needs() -> None:
    [extras] = re.findall(r"'heedful\[([\w,]+)\]'", CONTAINER)
    assert set(extras.split(",")) == {"serve", "postgres"}
    [line] = re.findall(r"^RUN pip download (.*)$", CONTAINER, re.M)
    assert "--require-hashes" in line
    [lock] = re.findall(r"-r (\S+\.lock)", line)
    assert (ROOT / lock).is_file()
    assert f"COPY {lock} " in CONTAINER
    assert re.search(r"^USER 10001$", CONTAINER, re.M)
    assert {"10001", "8710", "/loops", lock} <= set(re.findall(r"[\w./-]+", PAGE))


def test_the_manifest_hangs_together() -> None:
    deployment, budget = manifests()
    spec = deployment["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert labels == spec["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    [port] = container["ports"]
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["containerPort"]}
    wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > wait + 10 + 5 + 10
    assert pod["securityContext"]["runAsUser"] == 10001
    assert budget["spec"]["minAvailable"] < spec["replicas"]


# ---------------------------------------------------------------------------- where something can run them


def output(*words: str, seconds: float = 60.0) -> tuple[int, str]:
    """(The exit code of a command, what it said); 124 if it took longer."""
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    except (subprocess.TimeoutExpired, OSError) as error:
        return 124, str(error)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def image() -> Iterator[tuple[str, str]]:
    """(The program of containers that answers here, the image that it built).

    Skip, with what is missing, where none answers or where the base image cannot be had: under CI, too, as neither is
    heedful's to bring."""
    told = []
    for program in ("docker", "podman"):
        if shutil.which(program) is None:
            told.append(f"no {program}")
            continue
        code, said = output(program, "info", seconds=20)
        if code:
            told.append(f"{program} does not answer ({said.strip().splitlines()[-1] if said.strip() else code})")
            continue
        [base] = set(re.findall(r"^FROM (\S+)", CONTAINER, re.M))
        code, said = output(program, "pull", base, seconds=180)
        if code and output(program, "image", "inspect", base)[0]:
            told.append(f"{program} cannot get {base} ({said.strip().splitlines()[-1] if said.strip() else code})")
            continue
        name = f"heedful-test-{secrets.token_hex(4)}"
        format_ = ["--format", "docker"] if program == "podman" else []
        code, said = output(program, "build", *format_, "-f", "deploy/Containerfile", "-t", name, ".", seconds=900)
        assert code == 0, said[-5000:]
        try:
            yield program, name
        finally:
            output(program, "rmi", "-f", name)
        return
    pytest.skip(f"the container file was not built: {'; '.join(told)}")


@pytest.mark.slow
def test_the_image_is_built_and_serves(image: tuple[str, str]) -> None:
    program, name = image
    volume, box, port = f"{name}-loops", f"{name}-box", free_port()
    assert output(program, "volume", "create", volume)[0] == 0
    try:
        code, said = output(program, "run", "--rm", "-v", f"{volume}:/loops", name, "keys", "create", "site")
        assert code == 0, said
        key = re.findall(r"hk_\S+", said)[-1]
        shared = ["-v", f"{volume}:/loops", "-p", f"127.0.0.1:{port}:8710"]
        code, said = output(program, "run", "-d", "--name", box, *shared, name)
        assert code == 0, said
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + 60
        headers = {"authorization": f"Bearer {key}"}
        with httpx.Client(base_url=url, headers=headers) as client:
            while True:
                try:
                    if client.get("/healthz").status_code == 200:
                        break
                except httpx.TransportError:
                    assert time.monotonic() < end, output(program, "logs", box)
                    time.sleep(0.2)
            items = [{"id": "a", "x": 1.0}, {"id": "b", "x": 2.0}]
            assert client.post("/v1/loops", json={"name": "cars", "items": items}).status_code == 201
            decision = client.post("/v1/loops/cars/decisions", json={"id": "d"}).json()
            given = {"decision": "d", "id": "e", "clicks": [decision["shown"][1]]}
            assert client.post("/v1/loops/cars/feedback", json=given).json()["status"] == "applied"
        assert output(program, "exec", box, "id", "-u")[1].strip() == "10001"
        assert output(program, "exec", box, "python", "-c", "import psycopg")[0] == 0
        assert output(program, "stop", "-t", "60", box)[0] == 0
        ended = output(program, "inspect", "--format", "{{.State.ExitCode}}", box)[1].strip()
        assert ended != "137", "it did not end by itself, and was killed"
    finally:
        output(program, "rm", "-f", box)
        output(program, "volume", "rm", "-f", volume)


@pytest.mark.slow
def test_compose_takes_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = [("docker", "compose"), ("podman", "compose"), ("docker-compose",)]
    way = next((way for way in ways if shutil.which(way[0]) and output(*way, "version")[0] == 0), None)
    if way is None:
        pytest.skip("there is no docker compose here, nor another one")
    monkeypatch.setenv("HEEDFUL_PASSWORD", "secret")
    code, said = output(*way, "-f", "deploy/compose.yaml", "config", "--quiet")
    assert code == 0, said
    monkeypatch.delenv("HEEDFUL_PASSWORD")
    code, said = output(*way, "-f", "deploy/compose.yaml", "config", "--quiet")
    assert code
    assert "HEEDFUL_PASSWORD" in said
