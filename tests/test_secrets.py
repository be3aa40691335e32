"""Credentials are masked in all that is written or printed, wherever they come again and however they are spelt."""

import base64
import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest

import chaoslab as lab
from chaoslab.base import secrets
from chaoslab.base.secrets import Masker, find_secrets_in_headers, is_secret_name, set_secret_names
from chaoslab.base.terminal import clean_text
from chaoslab.core.events import Event
from chaoslab.seams.services.app import AppRequest
from tests import warm
from tests.cli_parts import execute
from tests.gateway.parts import standing

HEADERS = (
    "Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Auth-Token", "X-Access-Token",
    "X-Amz-Security-Token", "X-Csrf-Token", "X-Session-Token", "X-Vault-Token", "Private-Token", "X-Functions-Key",
    "Ocp-Apim-Subscription-Key", "DD-Api-Key", "X-RapidAPI-Key", "X-Shopify-Access-Token", "X-Hub-Signature-256",
    "X-Client-Secret", "X-Auth",
)  # fmt: skip
QUERY = (
    "api_key", "apikey", "key", "access_token", "token", "signature", "sig", "client_secret", "X-Amz-Signature",
    "X-Amz-Credential", "X-Amz-Security-Token", "X-Goog-Signature", "refresh_token", "id_token", "password", "auth",
    "session", "sid", "subscription-key", "client_assertion",
)  # fmt: skip
BODY = (
    "password", "passwd", "passphrase", "new_password", "userPassword", "secret", "client_secret", "clientSecret",
    "api_key", "apiKey", "access_token", "accessToken", "refresh_token", "id_token", "private_key", "secret_access_key",
    "aws_secret_access_key", "connection_string", "otp", "credentials", "authorization", "jwt", "session_id", "pin",
    "webhook_secret", "signing_key", "encryption_key", "code_verifier", "csrfToken", "auth_token",
)  # fmt: skip
FORMS = (
    "sk-proj-{0}abcdefghijklmnop", "sk_live_{0}abcdefgh", "ghp_{0}abcdefghijklmnopqrstuv", "glpat-{0}abcdefghijklmnop",
    "github_pat_{0}abcdefghijklmnop", "AKIA{0}ABCDEFGHIJKLMNOP", "AIza{0}abcdefghijklmnopqrstuvwxyz1",
    "xoxb-{0}abcdefgh", "eyJhbGci{0}.eyJzdWIi{0}.sIgNaTuRe", "hf_{0}abcdefghijklmnopqrs", "npm_{0}abcdefghijklmnopqrs",
    "gsk_{0}abcdefghijklmnopqrst", "SG.{0}abcdefgh.abcdefghijkl", "ya29.{0}abcdefghijklmn",
)  # fmt: skip


def value(place: str, name: str) -> str:
    """A secret that is no other's, with signs that each spelling writes in its own way."""
    return f'{place}{abs(hash_of(name)) % 10**6:06d}/{name[:3]}+"Zä'


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode()[-6:], "big") * 7919


def plain(place: str, name: str) -> str:
    return f"{place}{abs(hash_of(name)) % 10**8:08d}.{name[:4]}~end"


PLANTED = {
    **{f"header {name}": plain("Hd", name) for name in HEADERS},
    **{f"query {name}": value("Qy", name) for name in QUERY},
    **{f"body {name}": value("By", name) for name in BODY},
    **{f"form {form}": form.format(f"{n:02d}XYZ") for n, form in enumerate(FORMS)},
    **{f"cookie {n}": f"CookieValue{n}{n * 7919}" for n in range(6)},
    **{f"set-cookie {n}": f"SetCookie{n}{n * 104729}" for n in range(3)},
    "basic": "Basic0password+/ü", "user": "Url0passw0rd", "list one": "ListOneSecret1", "list two": "ListTwoSecret2",
    "number": "4000123412341234", "in a reply": "ReplySecret77xyz", "pretty": "Pr3ttySecretInJson",
}  # fmt: skip


def test_a_hundred_are_planted_and_none_is_another() -> None:
    assert len(PLANTED) >= 100
    assert len({*PLANTED.values()}) == len(PLANTED)


def spellings(secret: str) -> list[str]:
    data = secret.encode()
    found = [secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1]]
    found += [json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(json.dumps(secret))[3:-3]]
    found += [
        base64.b64encode(data).decode().rstrip("="),
        base64.urlsafe_b64encode(b"id:" + data + b"!").decode()[4:-8],
    ]
    return [*dict.fromkeys(found)]


def leaks(text: str) -> list[str]:
    """The planted secrets that a text shows, in any spelling."""
    return [name for name, secret in PLANTED.items() if any(one in text for one in spellings(secret))]


def written(folder: Path) -> str:
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


def headers() -> dict[str, str]:
    found = {name: PLANTED[f"header {name}"] for name in HEADERS}
    found["Authorization"] = f"Bearer {found['Authorization']}"
    found["Proxy-Authorization"] = "Basic " + base64.b64encode(f"me:{PLANTED['basic']}".encode()).decode()
    found["Cookie"] = "; ".join(f"c{n}={PLANTED[f'cookie {n}']}" for n in range(6))
    return found


def query() -> str:
    return urlencode([(name, PLANTED[f"query {name}"]) for name in QUERY])


def body() -> dict[str, Any]:
    found: dict[str, Any] = {name: PLANTED[f"body {name}"] for name in BODY}
    found["tokens_of"] = [PLANTED[f"form {form}"] for form in FORMS]
    found["nested"] = {"db": f"postgres://app:{PLANTED['user']}@db/x", "backup_token": int(PLANTED["number"])}
    found["secret_list"] = {"cookies": [PLANTED["list one"], PLANTED["list two"]]}
    found["pretty"] = json.dumps({"password": PLANTED["pretty"]}, indent=1)
    return found


def echo(turn: int) -> bytes:
    """A piece of all secrets, spelt in another way each time: a log keeps the beginning of a reply only."""
    names = [*PLANTED][turn * 2 : turn * 2 + 2]
    return json.dumps({"said": [spellings(PLANTED[name])[turn % 2 * -1] for name in names]}).encode()


class Echo(BaseHTTPRequestHandler):
    """Answers with cookies of its own, and with pieces of what it was sent."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.turn += 1
        data = json.dumps({"access_token": PLANTED["in a reply"]}).encode() if self.server.turn == 1 else None
        data = data or echo(self.server.turn % 60)
        self.send_response(200 if self.server.turn % 3 else 500)
        for n in range(3):
            self.send_header("Set-Cookie", f"s{n}={PLANTED[f'set-cookie {n}']}; Path=/; HttpOnly")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer


@pytest.fixture
def service() -> Iterator[str]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.turn = 0
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("faults", [(), ({"fault": "latency", "target": "crm", "delay_s": 0.01, "chance": 0.3},)])
def test_none_of_them_is_written_at_the_gateway(service: str, tmp_path: Path, faults: Any) -> None:
    with (
        standing(tmp_path, [f"crm={service}"], *faults) as running,
        httpx.Client(base_url=running.make_route_url("crm")) as client,
    ):
        client.post(f"/a?{query()}", headers=headers(), json=body())
        client.post("/form", headers=headers(), data={name: PLANTED[f"body {name}"] for name in BODY})
        for _ in range(60):
            client.get("/again", headers=headers())
    assert leaks(written(tmp_path)) == []
    assert "again" in written(tmp_path)


class Login(Echo):
    """Answers with a credential behind what a log keeps of a reply, and with the path of what was asked."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = json.dumps({"path": self.path, "notes": "x" * 400, "session_token": "OpaqueFromTheReply"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer


@pytest.mark.parametrize("faults", [(), ({"fault": "wrong_value", "target": "crm", "chance": 0.5},)])
def test_one_in_the_cut_off_part_of_a_body_is_masked_where_it_comes_again(tmp_path: Path, faults: Any) -> None:
    long = "left at the door\n" * 1200 + "password=OpaqueFromTheUpload"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Login)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    with (
        standing(tmp_path, [f"crm=http://127.0.0.1:{server.server_address[1]}"], *faults) as running,
        httpx.Client(base_url=running.make_route_url("crm")) as client,
    ):
        client.post("/logs", content=long, headers={"Content-Type": "text/plain"})
        client.get("/orders/OpaqueFromTheUpload")
        client.get("/orders/OpaqueFromTheReply")
    server.shutdown()
    server.server_close()
    thread.join()
    assert "Opaque" not in written(tmp_path)
    assert written(tmp_path).count("GET /orders/***") >= 4


def shop(request: AppRequest) -> Any:
    turn = int(request.query.get("turn", 0))
    said = json.loads(echo(turn)) | {"access_token": PLANTED["in a reply"]}
    return 200 if turn % 3 else 402, said, {"Set-Cookie": f"s0={PLANTED[f'set-cookie {turn % 3}']}; Path=/"}


def agent(_: str) -> str:
    for turn in range((len(PLANTED) + 1) // 2):
        asked = urllib.request.Request(
            f"http://shop/a?turn={turn}&{query()}", json.dumps(body()).encode(), headers(), method="POST"
        )
        try:
            with urllib.request.urlopen(asked) as reply:
                said = reply.read().decode()
        except OSError as error:
            said = str(error)
    secret = PLANTED["header X-Api-Key"]
    return f"I used {secret}, {PLANTED['query token']} and {base64.b64encode(secret.encode()).decode()}: {said}"


def test_none_of_them_is_written_of_services_and_the_same_trial_is_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        faults = [lab.inject("server_error", "shop", chance=0.2)]
        for _ in lab.run_many(
            agent, "go", trials=2, services={"shop": shop}, faults=faults, seed=3, logs=tmp_path / folder
        ):
            pass
    assert leaks(written(tmp_path)) == []
    assert "I used ***, *** and ***" in written(tmp_path)
    one, two = (sorted((tmp_path / folder).glob("[0-9]*/info.log"))[0].read_bytes() for folder in ("one", "two"))
    assert one == two


def ran(*words: str, folder: Path, **more: str) -> str:
    """All that a command prints and writes."""
    done = execute([warm.python(), "-m", "chaoslab", *words], cwd=folder, env={**os.environ, **more})
    return done.stdout + done.stderr + written(folder)


ADDRESS = "http://me:N0tForYourEyes@127.0.0.1:9"


@pytest.mark.parametrize(
    "words",
    [
        ("exec", "--route", f"crm={ADDRESS}", "--", "true"),
        ("gateway", "--route", f"crm={ADDRESS}/{'x' * 90}"),
        ("run", "--world", "local", f"TOXIPROXY_URL={ADDRESS}"),
        ("run", "--world", "local", f"MODEL_URL={ADDRESS}"),
        ("run", "--world", "virtual", "--trials", "1", "-q", f"MODEL_URL={ADDRESS}"),
        ("run", "--world", "virtual", f"MODEL_URL=ftp://me:N0tForYourEyes@{'x' * 90}"),
        ("run", "--world", "virtual", f"--model-url={ADDRESS}"),
        ("settings", f"MODEL_URL={ADDRESS}"),
        ("run", "--world", "virtual", "--trials", "1", f"TOXIPROXY_URL={ADDRESS}", "-q"),
    ],
)
def test_no_password_of_an_address_is_printed_or_written(words: tuple[str, ...], tmp_path: Path) -> None:
    assert "N0tForYour" not in ran(*words, folder=tmp_path)


def test_what_a_command_prints_is_masked_and_no_process_shows_a_key(tmp_path: Path) -> None:
    shows = "import os; print(os.environ['SHOP_TOKEN']); print(*open(f'/proc/{os.getppid()}/cmdline'))"
    said = ran(
        "exec", "--route", "crm=http://127.0.0.1:9", "--", sys.executable, "-c", shows, folder=tmp_path,
        SHOP_TOKEN="Sh0pT0kenOfAUser",
    )  # fmt: skip
    log = written(tmp_path)
    assert "Sh0pT0kenOfAUser" not in log
    assert "***" in log
    assert said.count("Sh0pT0kenOfAUser") == 1  # the command's own output passes as it is


@pytest.mark.parametrize(
    "name", ["max_tokens", "prompt_tokens", "monkey", "keyboard", "idempotency-key", "primary_key", "next_page_token"]
)
def test_a_name_that_only_looks_like_one_is_none(name: str) -> None:
    assert not is_secret_name(name)
    assert Masker().mask(f'{{"{name}": "visible-1"}}') == f'{{"{name}": "visible-1"}}'


def test_no_field_of_an_event_has_the_name_of_a_secret() -> None:
    names = {field.name for kind in Event.kinds.values() for field in fields(kind)}  # type: ignore[arg-type]
    assert [name for name in sorted(names) if is_secret_name(name, body=True)] == []


def test_names_are_added_and_spared() -> None:
    assert secrets.has_no_secret([{"x-shop-badge": "abc"}])
    try:
        set_secret_names(["x-shop-pass2go", "x-shop-badge", "-token"])
        assert not secrets.has_no_secret([{"x-shop-badge": "abc"}])
        assert (
            Masker().mask('{"X-Shop-Pass2Go": "abc", "token": "seen"}') == '{"X-Shop-Pass2Go": "***", "token": "seen"}'
        )
        assert Masker().mask("token: seen1234") == "token: seen1234"
    finally:
        set_secret_names([])


@pytest.mark.parametrize(
    "text",
    ["x-shop-badge: {}", "X_SHOP_BADGE={}", '{{"x_shop_badge": "{}"}}', '{{"shopBadge": "{}"}}', "shop_badge={}&a=1"],
)
def test_an_added_name_is_found_however_it_is_spelled(text: str) -> None:
    try:
        set_secret_names(["x-shop-badge"])
        assert Masker().mask(text.format("Badge55abc")) == text.format("***")
    finally:
        set_secret_names([])
    assert Masker().mask(text.format("Badge55abc")) == text.format("Badge55abc")


def badge(_: str) -> str:
    body = json.dumps({"x_shop_badge": "Badge55abc", "csrf_token": "Seen77abcd"}).encode()
    with urllib.request.urlopen(urllib.request.Request("http://shop/in", body, method="POST")) as reply:
        return f"{reply.read().decode()} with Badge55abc"


def test_a_run_has_names_of_its_own_in_each_process_and_the_next_has_not(tmp_path: Path) -> None:
    services = {"shop": lambda request: {"got": request.json}}
    names = ["X-Shop-Badge", "-csrf_token"]
    for jobs in (1, 2):
        logs = tmp_path / str(jobs)
        list(lab.run_many(badge, "go", trials=3, jobs=jobs, services=services, logs=logs, secret_names=names))
        assert "Badge55abc" not in written(logs)
        assert "Seen77abcd" in written(logs)
    lab.run(badge, "go", services=services, logs=tmp_path / "next")
    assert "Badge55abc" in written(tmp_path / "next")
    assert "Seen77abcd" not in written(tmp_path / "next")


@pytest.mark.parametrize("names", ["x-shop-badge", ["-"], [7], {"x": 1}])
def test_names_of_secrets_are_a_list_of_names(names: Any) -> None:
    with pytest.raises(TypeError, match=r"^secret_names is .*: it should be a list of names such as"):
        lab.run(badge, "go", secret_names=names)


def test_a_short_value_is_masked_in_its_place_alone() -> None:
    assert Masker().mask('{"pin": "1234", "room": "1234"}') == '{"pin": "***", "room": "1234"}'


def test_a_log_stays_json_whatever_is_masked() -> None:
    masker = Masker(["prompt_index", 'quo"te\\s and more'])
    text = json.dumps({"prompt_index": 1, "said": 'x quo"te\\s and more y', "token": 123456789})
    assert json.loads(masker.mask(text)) == {"prompt_index": 1, "said": "x *** y", "token": "***"}


def test_a_basic_password_is_known_decoded() -> None:
    assert "open:sesame" in find_secrets_in_headers(
        [("Authorization", "Basic " + base64.b64encode(b"open:sesame").decode())]
    )


def test_a_terminal_gets_no_sign_that_steers_it() -> None:
    assert clean_text("a\x1b]0;title\x07 b\u202ec\x9b31m\r\tü\n") == "a?]0;title? b?c?31m?\tü\n"
    assert clean_text("key sk-abcdefghijklmnop1234") == "key ***"


def test_neither_a_story_nor_a_command_prints_foreign_signs_that_steer(tmp_path: Path) -> None:
    def fails(_: str) -> str:
        raise RuntimeError("\x1b]0;title\x07 \u202etxt.exe")

    (trial,) = lab.run_many(fails, "go", trials=1, logs=tmp_path / "logs", anyway=True)
    said = trial.story() + ran("show", folder=tmp_path) + ran("summary", folder=tmp_path)
    printed = said.replace(written(tmp_path), "")
    assert "]0;title" in printed
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)


KEY_BODY = "\n".join(f"MIIEow{n:02}IBAAKCAQEAx7Jd/Zk+9vQ2hW4sYp0LrT8nBfMu3eGiXcOaVtK6m1RqEyH" for n in range(12))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "prompt",
    [
        PEM, PEM.replace("\n", "\r\n"), PEM.replace("\n", "\\n"), PEM.replace("\n", "\n    "), PEM[:500],
        PEM.replace("KEY-", "KEY BLOCK-").replace("RSA", "PGP"),
    ],
    ids=["lines", "crlf", "escaped", "indented", "cut", "pgp"],
)  # fmt: skip
def test_a_key_of_many_lines_is_in_no_log(prompt: str, tmp_path: Path) -> None:
    def sign(key: str) -> str:
        return f"signed with {key.splitlines()[1]}" if "\n" in key else "signed"

    lab.run(lambda given: sign(given), f"Sign with\n{prompt}\nand say so", tools=[sign], logs=tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    text = "".join(path.read_text() for path in files)
    assert [line for line in KEY_BODY.splitlines() if line[:30] in text] == []
    lines = [json.loads(line) for path in files if path.suffix == ".log" for line in path.read_text().splitlines()]
    assert any(event["kind"] == "prompt_finished" for event in lines)


@pytest.mark.parametrize(
    "secret",
    [
        "xapp-1-A0123456789-1234567890123-abcdef0123456789", "whsec_" + "aB3dE5fG7hI9" * 3,
        "SK" + "0123456789abcdef" * 2,
        "123456789:AAE" + "x9Yz_-Ab1" * 4, "bot123456789:AAE" + "x9Yz_-Ab1" * 4, "xoxe.xoxp-1-Mi0yLTEyMzQ1Njc4OTA",
    ],
)  # fmt: skip
def test_a_token_of_a_known_form_is_masked(secret: str) -> None:
    assert Masker().mask(f"use {secret} now") == "use *** now"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY!", "***!"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = ***"),
        ("TWILIO_AUTH_TOKEN: 0123456789abcdef", "TWILIO_AUTH_TOKEN: ***"),
        ("the password: is in the safe", "the password: is in the safe"),
        ("Authorization: Basic b3BlbjpzZXNhbWU= of open:sesame", "Authorization: Basic *** of ***"),
        ("Authorization: Basic 123456 of hunter22", "Authorization: Basic *** of hunter22"),
        ('{"password": "hunter22', '{"password": "***'),
        ('{"password": "hunt\\x22"} hunt\\x22', '{"password": "***"} ***'),
        ("commit 0123456789abcdef0123456789abcdef01234567", "commit 0123456789abcdef0123456789abcdef01234567"),
    ],
)
def test_a_secret_without_a_form_is_known_by_what_stands_before_it(text: str, masked: str) -> None:
    assert Masker().mask(text) == masked
