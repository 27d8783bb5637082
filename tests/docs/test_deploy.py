"""The files in docs/deploy fit together and fit this program: its commands, settings, paths and metrics."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from dispatch.nats_broker import SERVER, Broker
from navigator_kernel.gateway.access import OPEN
from navigator_kernel.gateway.gateway import Metrics
from navigator_nats.commands import cluster, worker_for

pytestmark = [pytest.mark.requirement("X-6"), pytest.mark.wide]

TOP = Path(__file__).resolve().parents[2]
DEPLOY = TOP / "docs" / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yml").read_text())
KUBERNETES: list[Any] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yml").read_text()))
OWN = "navigator:1"  # the image of docs/deploy/Containerfile
KEYS = {"nats.conf", "gateway.nk", "worker.nk"}  # what `navigator cluster init` writes for them
VERSIONS = {
    "Service": "v1",
    "PersistentVolumeClaim": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}


def pods() -> Iterator[tuple[str, Any]]:
    """Each workload with its pod's specification."""
    for body in KUBERNETES:
        if body["kind"] in {"Deployment", "StatefulSet"}:
            yield body["metadata"]["name"], body["spec"]["template"]["spec"]


def orders() -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """The words and the environment of each program of ours, by its place."""
    for name, service in COMPOSE["services"].items():
        if service["image"] == OWN:
            yield f"compose {name}", service["command"], service.get("environment", {})
    for name, pod in pods():
        for container in pod["containers"]:
            if container["image"] == OWN:
                named = {entry["name"]: entry.get("value", "") for entry in container["env"]}
                yield f"kubernetes {name}", container["args"], named


@pytest.mark.parametrize(
    ("words", "environment"), [order[1:] for order in orders()], ids=[order[0] for order in orders()]
)
def test_its_commands_and_settings_are_this_programs(
    words: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    from navigator_kernel.cli.commands.serve import command as serving

    commands: dict[str, click.Command] = {"serve": serving, "worker": worker_for(tmp_path), "cluster": cluster()}
    done = CliRunner().invoke(commands[words[0]], [*words[1:], "--help"])
    assert done.exit_code == 0, done.output
    known = "\n".join(path.read_text() for path in (TOP / "kernel").rglob("*.py"))
    assert [name for name in environment if f'"{name}"' not in known] == []
    assert ("NAVIGATOR_DATABASE_URL" in environment) is (words[0] == "serve")  # a worker has no way to the database


def test_what_a_compose_file_names_is_there() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        assert re.fullmatch(r"[\w./-]+:[\w.-]+", service["image"]) and not service["image"].endswith(":latest"), name
        assert set(service.get("depends_on", ())) <= set(services), name
        mounted = [volume.partition(":")[0] for volume in service.get("volumes", ())]
        assert set(mounted) <= set(COMPOSE["volumes"]), name
    build = services["gateway-1"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    assert len([name for name in services if name.startswith("gateway")]) == 2
    assert services["worker"]["deploy"]["replicas"] == 3


def test_every_manifest_is_of_a_known_kind_and_selects_what_is_there() -> None:
    labels = [body["spec"]["template"]["metadata"]["labels"] for body in KUBERNETES if "template" in body["spec"]]
    for body in KUBERNETES:
        kind, spec = body["kind"], body["spec"]
        assert body["apiVersion"] == VERSIONS[kind]
        assert body["metadata"]["namespace"] == "navigator"
        if kind == "Service":
            assert spec["selector"] in labels
        if "template" in spec:
            assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        if kind == "NetworkPolicy":
            assert spec["podSelector"]["matchLabels"] in labels
    names = {body["metadata"]["name"] for body in KUBERNETES if body["kind"] == "Service"}
    hosts = [environment["NAVIGATOR_NATS_URL"] for _, _, environment in orders() if "NAVIGATOR_NATS_URL" in environment]
    assert {host.removeprefix("nats://").partition(":")[0] for host in hosts} <= names


@pytest.mark.parametrize(("name", "pod"), list(pods()), ids=[name for name, _ in pods()])
def test_a_pod_mounts_what_it_has_and_is_asked_at_paths_that_need_no_token(name: str, pod: Any) -> None:
    claims = {body["metadata"]["name"] for body in KUBERNETES if body["kind"] == "PersistentVolumeClaim"}
    templates = [
        one
        for body in KUBERNETES
        if body["metadata"]["name"] == name
        for one in body["spec"].get("volumeClaimTemplates", ())
    ]
    volumes = {volume["name"] for volume in (*pod["volumes"], *(one["metadata"] for one in templates))}
    for volume in pod["volumes"]:
        if "persistentVolumeClaim" in volume:
            assert volume["persistentVolumeClaim"]["claimName"] in claims
        if "secret" in volume:
            assert {item["key"] for item in volume["secret"]["items"]} <= KEYS
    for container in pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert "memory" in container["resources"]["limits"] and not container["image"].endswith(":latest")
        ports = {port["name"] for port in container.get("ports", ())}
        for probe in (container[kind]["httpGet"] for kind in ("readinessProbe", "livenessProbe") if kind in container):
            assert probe["port"] in ports and probe["path"] in OPEN
        if container["image"] == OWN:
            assert pod["securityContext"]["runAsNonRoot"]
            seed = next(entry["value"] for entry in container["env"] if entry["name"] == "NAVIGATOR_NATS_SEED")
            assert seed.removeprefix("/keys/") in {item["key"] for item in pod["volumes"][-1]["secret"]["items"]}
            named = [
                word
                for before, word in zip(container["args"], container["args"][1:], strict=False)
                if before == "--name"
            ]
            probes = [container[kind]["httpGet"] for kind in ("readinessProbe", "livenessProbe") if kind in container]
            assert {header["value"] for probe in probes for header in probe["httpHeaders"]} <= set(named)


@pytest.mark.ci
def test_a_broker_starts_as_the_files_say_and_keeps_its_streams_in_its_volume(tmp_path: Path) -> None:
    (words,) = (words for place, words, _ in orders() if place == "compose keys")
    folder, store = words[2], words[words.index("--store") + 1]
    first = (DEPLOY / "kubernetes.yml").read_text().splitlines()
    assert any(line.endswith(f"--store {store}") for line in first)
    told = [str(tmp_path / word[1:]) if word in {folder, store} else word for word in words[1:]]
    assert CliRunner().invoke(cluster(), told).exit_code == 0
    (broker,) = (pod["containers"][0] for name, pod in pods() if name == "broker")
    service = COMPOSE["services"]["broker"]
    assert f"broker:{store}" in service["volumes"] and store in {each["mountPath"] for each in broker["volumeMounts"]}
    for command, keys in ((service["command"], folder), (broker["args"], "/keys")):
        argv = [word.replace(f"{keys}/nats.conf", str(tmp_path / folder[1:] / "nats.conf")) for word in command]
        assert argv[:2] == ["-c", str(tmp_path / "keys/broker/nats.conf")]
        running = Broker(tmp_path, Path(argv[1])).start()
        running.kill()
        assert subprocess.run([SERVER, *argv, "-t"], capture_output=True).returncode == 0
        assert (tmp_path / store[1:] / "jetstream").is_dir()


def test_the_board_asks_for_metrics_that_a_gateway_exposes() -> None:
    metrics = Metrics()
    metrics.note("GET", "/healthz", 200, 0.01)
    exposed = metrics.text({"success": 1}, 0)
    board = json.loads((DEPLOY / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"\bnavigator_\w+", query)}
    series = set(re.findall(r"^(navigator_\w+)", exposed, re.MULTILINE))
    assert asked <= series
    whole = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in series}
    assert {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in asked} == whole  # nothing is left out
    by = {label for query in queries for found in re.findall(r"by \((\w+)\)", query) for label in [found]}
    assert all(re.search(rf'{{(?:[^}}]*,)?{label}="', exposed) for label in by)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
