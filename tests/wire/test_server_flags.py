"""`chaoslab toxiproxy` in the place of `toxiproxy-server`: the same flags, and one line for what is wrong with them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from chaoslab.cli import main
from tests.cli_parts import command
from tests.seams.lab_parts import eventually
from tests.wire.wire_parts import dial, embedded, read_exactly, upstream


def test_flags_with_one_dash_as_toxiproxy_server_has_them(tmp_path: Path) -> None:
    config = tmp_path / "toxiproxy.json"
    config.write_text('[{"name":"p","upstream":"127.0.0.1:9","listen":"127.0.0.1:0"}]')
    flags = [
        "-host",
        "127.0.0.1",
        "-port=0",
        "-config",
        str(config),
        *str.split("-seed 7 -proxy-metrics -runtime-metrics"),
    ]
    with subprocess.Popen(command("toxiproxy", *flags), stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            url = "http://" + served.stdout.readline().split()[3]
            assert list(httpx.get(f"{url}/proxies").json()) == ["p"]
            shown = httpx.get(f"{url}/metrics").text
        finally:
            served.terminate()
    assert served.returncode == 0
    assert "# TYPE process_cpu_seconds_total counter\n" in shown
    assert 'python_info{implementation="CPython"' in shown


@pytest.mark.parametrize("flag", ["-version", "--version"])
def test_the_version_is_the_one_that_it_stands_for(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toxiproxy", flag]) == 0
    assert capsys.readouterr().out.startswith("toxiproxy-server version 2.12.0 (embedded in chaoslab ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ": EOF; it should be an array of proxies"),
        ('[{"name":"a"', ": no JSON: Expecting ',' delimiter: line 1 column 13 (char 12); it should be an array"),
        ('{"name":"a"}', ": json: cannot unmarshal object into Go value of type []struct"),
        ('[{"name":"a"}]', ": missing required field: upstream at proxy 1; it should be an array of proxies"),
        ('[{"name":"a","upstream":"b:1","listen":"c"}]', ": listen tcp: address c: missing port in address\n"),
        (None, " cannot be read: No such file or directory; it should be a JSON file of proxies"),
    ],
)
def test_a_config_file_that_is_wrong_gets_one_line(
    tmp_path: Path, text: str | None, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "toxiproxy.json"
    if text is not None:
        config.write_text(text)
    assert main(["toxiproxy", "-port", "0", "-config", str(config)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"{config}{reason}")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_an_address_that_cannot_be_had_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["toxiproxy", "--port", str(port)]) == 2
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # a closed loop would hear it in vain
    with pytest.raises(SystemExit, match="2"):
        main(["toxiproxy", "--port", "99999"])
    assert capsys.readouterr().err == (
        f"nobody can listen on 127.0.0.1:{port}: address already in use; give another host or port\n"
        "chaoslab toxiproxy: argument --port/-port: 99999 should be a whole number from 0 to 65535; see chaoslab "
        "toxiproxy --help\n"
    )


def test_this_processs_metrics_are_python_ones_and_add_up() -> None:
    """Each has its help and type, values are numbers, and nothing claims to be Go's."""
    before = os.times()
    with embedded(metrics=["runtime"]) as url:
        lines = httpx.get(f"{url}/metrics").text.splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert names == sorted(names)
    assert names == [line.split()[2] for line in lines if line.startswith("# HELP ")]
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert {name.partition("{")[0] for name in samples} == set(names)
    assert not any(name.startswith("go_") for name in names)
    assert float(samples["process_start_time_seconds"]) > 1.7e9
    used = os.times()  # of the same process
    assert 0 < float(samples["process_cpu_seconds_total"]) <= used.user + used.system
    assert float(samples["process_cpu_seconds_total"]) >= before.user + before.system
    if "process_resident_memory_bytes" in samples:  # Linux
        held, mapped = (float(samples[f"process_{kind}_memory_bytes"]) for kind in ("resident", "virtual"))
        assert 1e6 < held < mapped < 1e13
        assert 0 < float(samples["process_open_fds"]) < 1e5
    assert json.loads(samples['promhttp_metric_handler_errors_total{cause="encoding"}']) == 0


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Origin": "http://evil.com", "User-Agent": "x", "Content-Type": "text/plain"}, "Origin not allowed\n"),
        ({"Origin": "null"}, "Origin not allowed\n"),
        ({"Host": "evil.com:8474"}, "Host not allowed\n"),
        ({"Origin": "http://evil.com", "Host": "evil.com"}, "Host not allowed\n"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"Expect": "100-continue"}], ids=["plain", "read by h11"])
def test_no_web_page_changes_anything(headers: dict[str, str], said: str, more: dict[str, str]) -> None:
    with embedded() as url:
        wish = '{"name": "a", "upstream": "b:1", "listen": "127.0.0.1:0"}'
        reply = httpx.post(f"{url}/proxies", content=wish, headers=headers | more)
        assert (reply.status_code, reply.text) == (403, said)
        assert httpx.get(f"{url}/proxies", headers={"Host": "toxiproxy:8474"}).json() == {}


def test_the_bytes_of_a_proxy_are_counted_in_both_directions_when_a_connection_ends() -> None:
    with (
        upstream(lambda line: line.sendall(line.recv(100) * 3)) as there,
        embedded(metrics=["proxy"]) as url,
        httpx.Client(base_url=url) as api,
    ):
        listen = api.post("/proxies", json={"name": "p", "upstream": there}).json()["listen"]
        api.post("/proxies", json={"name": "down", "upstream": "127.0.0.1:9"})
        with dial(listen) as line, dial(api.get("/proxies/down").json()["listen"]) as other:
            line.sendall(b"12345")
            assert read_exactly(line, 15) == b"12345" * 3
            with contextlib.suppress(ConnectionResetError):
                assert other.recv(1) == b""
        named = f'listener="{listen}",proxy="p",upstream="{there}"'
        wanted = {
            f'toxiproxy_proxy_{way}_bytes_total{{direction="{direction}",{named}}} {count}'
            for way in ("received", "sent") for direction, count in (("upstream", 5), ("downstream", 15))
        }  # fmt: skip
        eventually(lambda: wanted <= {*api.get("/metrics").text.splitlines()})
        counted = [line for line in api.get("/metrics").text.splitlines() if line.startswith("toxiproxy_proxy_")]
    assert sorted(counted) == sorted(wanted)
