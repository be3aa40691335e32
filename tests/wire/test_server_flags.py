"""`chaoslab toxiproxy` in the place of `toxiproxy-server`: the same flags, and one line for what is wrong with them."""

import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from chaoslab.cli import main
from tests.cli_parts import command
from tests.wire.wire_parts import embedded


def test_flags_with_one_dash_as_toxiproxy_server_has_them(tmp_path: Path) -> None:
    config = tmp_path / "toxiproxy.json"
    config.write_text('[{"name":"p","upstream":"127.0.0.1:9","listen":"127.0.0.1:0"}]')
    flags = ["-host", "127.0.0.1", "-port=0", "-config", str(config), "-seed", "7"]
    with subprocess.Popen(command("toxiproxy", *flags), stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            url = "http://" + served.stdout.readline().split()[3]
            assert list(httpx.get(f"{url}/proxies").json()) == ["p"]
        finally:
            served.terminate()
    assert served.returncode == 0


@pytest.mark.parametrize("flag", ["-version", "--version"])
def test_the_version_is_the_one_that_it_stands_for(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toxiproxy", flag]) == 0
    assert capsys.readouterr().out.startswith("toxiproxy-server version 2.12.0 (embedded in chaoslab ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ": Input data was truncated; it should be an array of proxies"),
        ('[{"name":"a"', ": Input data was truncated; it should be an array of proxies"),
        ('{"name":"a"}', ": Expected `array | null`, got `object`; it should be an array of proxies"),
        ('[{"name":"a"}]', ": missing required field: upstream at proxy 1; it should be an array of proxies"),
        ('[{"name":"a","upstream":"b:1","listen":"c"}]', ": listen tcp: address c: not host:port\n"),
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


@pytest.mark.parametrize("flag", ["-proxy-metrics", "--runtime-metrics"])
def test_metrics_of_its_own_are_refused_with_where_there_are_some(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["toxiproxy", flag])
    said = capsys.readouterr().err
    assert f"unrecognized arguments: {flag}: the embedded Toxiproxy has no /metrics; the manager's has" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Origin": "http://evil.com", "User-Agent": "x", "Content-Type": "text/plain"}, "Origin not allowed\n"),
        ({"Origin": "null"}, "Origin not allowed\n"),
        ({"Host": "evil.com:8474"}, "Host not allowed\n"),
        ({"Origin": "http://evil.com", "Host": "evil.com"}, "Host not allowed\n"),
    ],
)
def test_no_web_page_changes_anything(headers: dict[str, str], said: str) -> None:
    with embedded() as url:
        wish = '{"name": "a", "upstream": "b:1", "listen": "127.0.0.1:0"}'
        reply = httpx.post(f"{url}/proxies", content=wish, headers=headers)
        assert (reply.status_code, reply.text) == (403, said)
        assert httpx.get(f"{url}/proxies", headers={"Host": "toxiproxy:8474"}).json() == {}
