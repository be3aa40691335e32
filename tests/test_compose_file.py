"""The compose file and the code say the same: settings, services, ports, and who gets the key."""

import json
import os
import re
import runpy
import subprocess
import sysconfig
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chaoslab.config.settings import COMPOSES_OWN, OF_SERVICES, Settings
from chaoslab.config.topology import MODEL, SERVICES, Ports
from chaoslab.proxy_manager.figures import ABOUT, PREFIX, RunMetrics
from chaoslab.wire.lanes import LOST_S
from tests.cli_parts import execute

ROOT = Path(__file__).parent.parent
SERVICE_PARTS: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
LOCK = (ROOT / "containers" / "lock.txt").read_text()
INSTALL = runpy.run_path(str(ROOT / "containers" / "install.py"))
PLACES = {"TOXIPROXY_URL", "TOXIPROXY_METRICS", "BASE_PORT"}
"""Settings of places, which the compose file sets by itself."""
TRIALS_RUN_IN = {"settings", "agent", "charts", "sweep", "ui"}
FOREIGN = {"toxiproxy", "prometheus", "grafana"}


def test_each_part_gets_every_setting_that_reaches_it() -> None:
    """A part that runs trials gets all but the keys; a service gets those that a service reads."""
    secret = {f.name.upper() for f in fields(Settings) if f.metadata["secret"]}
    whole = set(Settings().to_environment()) - PLACES - secret
    own = {"CHAOSLAB_PROGRAM", "MPLCONFIGDIR", "STOPPER", *secret, "TOXIPROXY_URL"}
    for name, part in SERVICE_PARTS.items():
        if name in FOREIGN:
            continue
        given = part["environment"]
        assert set(given) - own == (whole if name in TRIALS_RUN_IN else {*OF_SERVICES}), name
        # a value in the file would win over .env and the shell
        assert {each for each, text in given.items() if text is not None} <= {*own, "WORLD"}, name
    worlds = {name: SERVICE_PARTS[name]["environment"]["WORLD"] for name in TRIALS_RUN_IN}
    assert worlds == {"settings": None, "agent": "compose", **dict.fromkeys(("charts", "sweep", "ui"), "virtual")}


def test_the_settings_are_checked_before_any_part_starts() -> None:
    waits = {name for name, part in SERVICE_PARTS.items() if "settings" in part.get("depends_on", ())}
    assert waits == set(SERVICE_PARTS) - {"settings", "agent", "prometheus", "grafana"}, "the agent waits for those"
    assert SERVICE_PARTS["settings"]["network_mode"] == "none"


def test_the_names_that_make_refuses_are_those_that_the_lab_refuses(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOXC_PROB=0.9\nexport SEED=2\n# NO=1\nCOMPOSE_X=1\n")
    own = " ".join(f"{name}X" if name.endswith("_") else name for name in COMPOSES_OWN)
    known = ("-v", f"given=TRIALS toxic_probs {own}", "-f", ROOT / "containers" / "names.awk")
    ended = execute(["awk", *known, ROOT / ".env.example", tmp_path / ".env"])
    assert (ended.returncode, ended.stderr.splitlines()) == (
        2,
        [
            "TOXC_PROB is not a setting (.env, line 1); did you mean TOXIC_PROB?",
            "toxic_probs is not a setting (command line); did you mean TOXIC_PROB?",
        ],
    )


def test_a_key_goes_to_the_part_that_needs_it_and_no_other() -> None:
    given = [name for name, part in SERVICE_PARTS.items() if "GROQ_API_KEY" in str(part.get("environment"))]
    assert given == ["agent"]


def test_every_service_of_the_table_is_there_and_listens_where_the_agent_looks() -> None:
    for target in (*SERVICES, MODEL):
        assert SERVICE_PARTS[target]["healthcheck"]["test"][3] == str(Ports().get_service_port(target)), target
    assert SERVICE_PARTS["proxy_manager"]["healthcheck"]["test"][3:] == [str(Ports().manager_port), "/status"]


def test_the_agent_waits_for_everything_that_it_uses() -> None:
    awaited = SERVICE_PARTS["agent"]["depends_on"]
    assert set(awaited) == {*SERVICES, MODEL, "proxy_manager"}
    assert {wait["condition"] for wait in awaited.values()} == {"service_healthy"}


@pytest.mark.parametrize("name", SERVICE_PARTS)
def test_each_part_is_shut_in(name: str) -> None:
    part = SERVICE_PARTS[name]
    assert part["read_only"] is True
    assert part["cap_drop"] == ["ALL"]
    assert part["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in part
    assert all(port.startswith("127.0.0.1:") for port in part.get("ports", ()))


def test_nothing_sleeps_to_be_in_time() -> None:
    texts = [
        (ROOT / "docker-compose.yaml"),
        ROOT / "Dockerfile",
        *filter(Path.is_file, sorted((ROOT / "containers").rglob("*"))),
    ]
    assert [path.name for path in texts if "sleep" in path.read_text()] == []


def test_toxiproxy_gives_up_a_host_that_is_gone_before_the_agent_gives_up_the_manager() -> None:
    """It deletes a lane only when its dial is over, and answers nobody meanwhile. Linux doubles the wait each time."""
    tries = 1 + SERVICE_PARTS["toxiproxy"]["sysctls"]["net.ipv4.tcp_syn_retries"]
    assert sum(2**n for n in range(tries)) < LOST_S


def test_the_lock_has_a_version_of_all_that_the_images_install_in_the_ranges_of_the_project() -> None:
    lines = [Requirement(line) for line in LOCK.splitlines() if not line.startswith("#")]
    locked = {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: set[str] = {*INSTALL["LOCKED"]}
    arguments = [part["build"]["args"] for part in SERVICE_PARTS.values() if "build" in part]
    assert extras == {extra for given in arguments for extra in given.get("EXTRA", "").split()}
    wanted = [*project["dependencies"], *(d for extra in extras for d in project["optional-dependencies"][extra])]
    for each in map(Requirement, wanted):
        assert each.specifier.contains(locked[canonicalize_name(each.name)]), f"{each} is locked otherwise: write anew"


def test_the_lock_is_that_of_the_images_python_and_is_used() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    tag = re.findall(r"^ARG PYTHON_IMAGE=(python:(\S+)-slim)$", recipe, re.MULTILINE)[0]
    assert LOCK.startswith(INSTALL["HEAD"].format(tag[1]))
    assert "containers/lock.txt" in recipe
    given = {part["build"]["args"]["PYTHON_IMAGE"] for part in SERVICE_PARTS.values() if "build" in part}
    assert given == {f"${{PYTHON_IMAGE:-{tag[0]}}}"}


def test_the_foreign_images_are_pinned_by_digests_of_the_tags_that_compose_names() -> None:
    named = dict(re.findall(r"\$\{(\w+_IMAGE):-([^}]+)\}", (ROOT / "docker-compose.yaml").read_text()))
    pins = (ROOT / "containers" / "images.env").read_text().splitlines()[1:]
    assert [re.sub("@sha256:[0-9a-f]{64}$", "@", line) for line in pins] == [f"{name}={named[name]}@" for name in named]


def test_an_image_is_taken_by_its_digest_unless_another_is_asked_for_or_here(tmp_path: Path) -> None:
    """The engine is the foreign part: one that has Toxiproxy's tag and not its digest, and both of Prometheus."""
    (tmp_path / "docker").write_text(
        "#!/bin/sh\ncase $3 in *toxiproxy*@*) exit 1 ;; *toxiproxy*|prom*) ;; *) exit 1 ;; esac\n"
    )
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / ".env").write_text("# PROMETHEUS_IMAGE=x\nexport GRAFANA_IMAGE = mine:1\n")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    program = ["bash", str(ROOT / "containers" / "pinned")]
    ended = subprocess.run(program, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert [line.partition("@")[0] for line in ended.stdout.splitlines()] == [
        "PYTHON_IMAGE=python:3.13-slim",
        "PROMETHEUS_IMAGE=prom/prometheus:v3.5.0",
    ]
    assert ended.stderr.startswith("ghcr.io/shopify/toxiproxy:2.12.0: the image that is here is taken, which is not")
    given = {**env, "PYTHON_IMAGE": "mine:2"}
    ended = subprocess.run(program, cwd=tmp_path, env=given, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("PROMETHEUS_IMAGE=")


def test_what_the_lock_lacks_is_not_installed_in_silence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The installer is the foreign part: what it leaves in the folder of packages is given."""
    (tmp_path / "install.py").write_text((ROOT / "containers" / "install.py").read_text())
    (tmp_path / "lock.txt").write_text("# for Python 3.13\nflask==3.1.3\n")
    program = runpy.run_path(str(tmp_path / "install.py"))
    given: list[list[str]] = []

    def packaged(name: str) -> None:
        (folder := tmp_path / f"{name}-3.1.3.dist-info").mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.1.3\n")

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        given.append(command)
        packaged("Flask")
        packaged("soup_Sieve")
        return subprocess.CompletedProcess(command, 0)

    packaged("theirs")  # what the image of Python has
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit, match=r"lock\.txt lacks soup-sieve==3\.1\.3: write it anew"):
        program["main"](["tools"])
    assert given[0][given[0].index("--constraint") + 1] == str(tmp_path / "lock.txt")


def test_the_dashboard_shows_metrics_that_there_are(tmp_path: Path) -> None:
    there = {f"{PREFIX}{name}" for name in ABOUT} | {
        f"toxiproxy_proxy_{way}_bytes_total" for way in ("received", "sent")
    }
    dashboard = json.loads((ROOT / "containers/metrics/dashboard.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"[a-z]+_[a-z_]+", re.sub(r"\{[^}]*\}", "", target["expr"]))
    }
    assert asked <= there
    assert len(asked) >= 8
    told = RunMetrics(tmp_path).render_text([], lanes=0)
    assert {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")} == {
        f"{PREFIX}{n}" for n in ABOUT
    }


def test_prometheus_asks_the_parts_at_their_ports() -> None:
    config = yaml.safe_load((ROOT / "containers/metrics/prometheus.yml").read_text())
    asked = {
        target for job in config["scrape_configs"] for group in job["static_configs"] for target in group["targets"]
    }
    assert asked == {f"proxy_manager:{Ports().manager_port}", f"toxiproxy:{Ports().toxiproxy_port}"}
