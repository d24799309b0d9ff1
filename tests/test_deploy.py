"""docs/deploy.md and deploy/: files for containers name what there is, and run where something here can run them."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import cache
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
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
LIBPQ = {"PGPASSWORD", "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT"}
"""Of https://www.postgresql.org/docs/current/libpq-envars.html: what the files and the page use."""


def options(name: str = "serve") -> set[str]:
    """The options of a command of heedful's."""
    return {option for each in command(name).params for option in each.opts if option.startswith("--")}


def read_by_the_code() -> set[str]:
    """The names of environment variables that the source reads."""
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", sources)) | LIBPQ


@cache
def manifests() -> dict[tuple[str, str], dict[str, Any]]:
    """The objects of deploy/kubernetes, by kind and name."""
    found = [each for path in KUBERNETES for each in yaml.safe_load_all(path.read_text())]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found)
    return named


def pods() -> dict[str, dict[str, Any]]:
    """The templates of pods in deploy/kubernetes, by the kind of what makes them."""
    return {
        kind: each["spec"]["template"] for (kind, _), each in manifests().items() if "template" in each.get("spec", {})
    }


SERVING = ("Deployment", "StatefulSet")


def containers(kind: str) -> list[dict[str, Any]]:
    """All containers of the pods that a `kind` makes."""
    spec = pods()[kind]["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def test_the_commands_have_options_that_there_are() -> None:
    served = {kind: pods()[kind]["spec"]["containers"][0]["args"] for kind in SERVING}
    for words in [*(COMPOSE["services"][name]["command"] for name in SERVERS), *served.values()]:
        assert words[0] == "serve"
        named = [word for word in words if word.startswith("--")]
        assert set(named) <= options(), named
        assert words[words.index("--host") + 1] == "0.0.0.0"
        if words != served["StatefulSet"]:
            assert words[words.index("--address") + 1].endswith(":8710")
    assert served["StatefulSet"][1] == "/loops"
    assert pods()["Job"]["spec"]["containers"][0]["args"] == ["keys", "create", "site"]
    [shell] = re.findall(r"\|\| heedful (.*)", pods()["StatefulSet"]["spec"]["initContainers"][0]["command"][2])
    page = re.findall(r"-- heedful (.*)$", PAGE, re.M)
    assert len(page) == 1
    for line in (shell, *page):
        assert line.startswith("keys create ")
        assert set(re.findall(r"--[\w-]+", line)) <= options("keys create"), line
    [last] = re.findall(r"^CMD (.*)$", CONTAINER, re.M)[-1:]
    assert {word for word in json.loads(last) if word.startswith("--")} <= options()


def test_environments_have_names_that_are_read() -> None:
    [pod] = pods()["Deployment"]["spec"]["containers"]
    [job] = pods()["Job"]["spec"]["containers"]
    address, *connection = pod["env"]
    assert (connection, pod["envFrom"]) == (job["env"], job["envFrom"])
    assert f"$({address['name']})" in " ".join(pod["args"])
    named = {each["name"] for each in connection} | manifests()["Secret", "heedful"]["stringData"].keys()
    assert named == {"HEEDFUL_DATABASE", "PGPASSWORD", "PGSSLMODE", "PGSSLROOTCERT"}
    for name in SERVERS:
        named |= COMPOSE["services"][name]["environment"].keys()
    table = PAGE[PAGE.index("| from the environment") : PAGE.index("## Compose")]
    unit = (DEPLOY / "heedful.service").read_text()
    named |= set(re.findall(r"\b(?:HEEDFUL|PG)[A-Z_]+\b", f"{table} {unit}"))
    there = {f"HEEDFUL_SERVE_{option[2:].replace('-', '_').upper()}" for option in options()}
    assert named <= read_by_the_code() | there
    values = [
        *manifests()["Secret", "heedful"]["stringData"].values(),
        *manifests()["ConfigMap", "heedful-ca"]["data"].values(),
    ]
    assert set(values) == {""}, "a template"
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


def test_what_pods_mount_and_read_is_there() -> None:
    there = manifests()
    for kind, pod in pods().items():
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        claims = there["StatefulSet", "heedful"]["spec"]["volumeClaimTemplates"] if kind == "StatefulSet" else []
        for container in containers(kind):
            assert container["image"] == "heedful"
            mounted = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
            assert set(mounted.values()) <= {*volumes, *(each["metadata"]["name"] for each in claims)}
            for source in container.get("envFrom", ()):
                assert ("Secret", source["secretRef"]["name"]) in there
            for variable in container.get("env", ()):
                if variable["name"] == "PGSSLROOTCERT":
                    folder, _, file = variable["value"].rpartition("/")
                    assert file in there["ConfigMap", volumes[mounted[folder]]["configMap"]["name"]]["data"]


def test_selectors_and_ports_are_those_of_the_pods() -> None:
    there = manifests()
    labels = pods()["Deployment"]["metadata"]["labels"]
    for kind in (*SERVING, "PodDisruptionBudget"):
        assert there[kind, "heedful"]["spec"]["selector"]["matchLabels"] == labels
    assert pods()["StatefulSet"]["metadata"]["labels"] == labels
    assert not labels.items() <= pods()["Job"]["metadata"]["labels"].items(), "the Service would send it requests"
    policy = there["NetworkPolicy", "heedful"]["spec"]
    assert policy["podSelector"]["matchLabels"] == there["Service", "heedful"]["spec"]["selector"] == labels
    [port] = there["Service", "heedful"]["spec"]["ports"]
    for kind in SERVING:
        [serving] = pods()[kind]["spec"]["containers"]
        assert serving["ports"] == [{"name": port["targetPort"], "containerPort": 8710}]
    [rule] = there["Ingress", "heedful"]["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "heedful", "port": {"name": port["name"]}}
    assert [rule["host"]] == there["Ingress", "heedful"]["spec"]["tls"][0]["hosts"]
    assert policy["ingress"][0]["ports"] == policy["egress"][0]["ports"] == [{"port": port["targetPort"]}]
    assert there["StatefulSet", "heedful"]["spec"]["serviceName"] == "heedful"
    assert {path.name for path in KUBERNETES} == set(re.findall(r"`([\w-]+\.yaml)`", PAGE[PAGE.index("| file |") :]))
    [scrape] = yaml.safe_load((DEPLOY / "prometheus" / "kubernetes.yaml").read_text())["scrape_configs"]
    [label] = [f"{name}={value}" for name, value in pods()["Deployment"]["metadata"]["labels"].items()]
    assert scrape["kubernetes_sd_configs"][0]["selectors"][0]["label"] == label
    assert scrape["relabel_configs"][0]["regex"] == port["targetPort"]


def test_pods_of_servers_are_probed_and_have_time_to_end() -> None:
    for kind in SERVING:
        spec = pods()[kind]["spec"]
        [container] = spec["containers"]
        for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
            assert container[probe]["httpGet"] == {"path": path, "port": "http"}
        wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        assert spec["terminationGracePeriodSeconds"] > wait + 10 + 5 + 10
    there = manifests()
    assert (
        there["PodDisruptionBudget", "heedful"]["spec"]["minAvailable"]
        < there["Deployment", "heedful"]["spec"]["replicas"]
    )
    assert there["StatefulSet", "heedful"]["spec"]["replicas"] == 1
    for kind in pods():
        assert pods()[kind]["spec"]["securityContext"]["runAsUser"] == 10001
        for container in containers(kind):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.slow  # reads the schemas
def test_the_files_fit_the_schemas_of_kubernetes() -> None:
    import kubernetes_validate

    version = kubernetes_validate.latest_version()
    for each in manifests().values():
        kubernetes_validate.validate(each, version, strict=True)  # raises where one does not
    [wrong] = [dict(each) for (kind, _), each in manifests().items() if kind == "StatefulSet"]
    wrong["spec"] = wrong["spec"] | {"replica": 1}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, version, strict=True)


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
