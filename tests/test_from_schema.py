"""Fakes from an OpenAPI document and from the tools of an MCP server: their state, their scenarios, bad input."""

import ast
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.seams.services.app import AppRequest
from chaoslab.surfaces.projects import PersonalDataMasker, Project
from chaoslab.surfaces.schemas import mcp_tools
from chaoslab.surfaces.schemas._state import CallRefused
from chaoslab.surfaces.schemas.mcp_tools import make_api, request_tools
from chaoslab.surfaces.schemas.openapi import read_api
from chaoslab.surfaces.schemas.stand_ins import Service
from chaoslab.surfaces.schemas.writing import build_project
from tests.cli_parts import Typed

DOCUMENTS = Path(__file__).with_name("openapi")
WEAK = {
    "shop.yaml": ("over_http", '''
def AGENT(prompt):
    import httpx
    for _ in range(3):
        try:
            made = httpx.post("https://api.teashop.example/v1/orders", json={"productId": 7, "quantity": 1}, timeout=5)
            return f"Ordered: {made.json()['id']}"
        except httpx.TimeoutException:
            continue
'''),
    "tracker.json": ("repos", '''
def AGENT(prompt):
    for _ in range(3):
        try:
            return f"Opened {issues_create(repo='tea', title='The lid leaks')['number']}"
        except TimeoutError:
            continue
'''),
    "bank.yaml": ("transfers", '''
def AGENT(prompt):
    for _ in range(3):
        try:
            return f"Paid: {pay(from_='DE01', to='DE02', amount=5)['transfer']['id']}"
        except TimeoutError:
            continue
'''),
}  # fmt: skip
"""For each document a scenario, and an agent that asks again after a reply that was lost."""


def tool(name: str, hints: dict[str, bool] | None, *needed: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "required": [*needed], "properties": properties}
    return {"name": name, "inputSchema": schema, **({} if hints is None else {"annotations": hints})}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
PRICE = {"type": "object", "properties": {"result": {"type": "number", "minimum": 3, "maximum": 3}}}
TOOLS = [
    tool("create_note", {"destructiveHint": False}, "text", text=TEXT, tag={**TEXT, "default": "new"}),
    tool("listNotes", {"readOnlyHint": True}),
    tool("get-note", {"readOnlyHint": True}, "note_id", note_id=WHOLE),
    tool("delete_note", {"idempotentHint": True, "destructiveHint": True}, "note_id", note_id=WHOLE),
    tool("get_rich", {"readOnlyHint": False}),
    {**tool("price", None, of=TEXT), "outputSchema": PRICE},
]


def made_of(name: str, *, seed: int = 1, on: bool = True) -> Project:
    personal = PersonalDataMasker(on=on)
    return build_project(read_api(DOCUMENTS / name, personal=personal, seed=seed), most=20, personal=personal)


def service_of(name: str) -> Service:
    return Service(json.loads(made_of(name).files["service.json"]))


def asked(app: Callable[[Any], Any], method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and value of an application's reply."""
    path, _, query = path.partition("?")
    data = json.dumps(body).encode() if body is not None else b""
    fields = dict(each.split("=") for each in query.split("&") if each)
    status, said, _ = app(AppRequest(method, path, fields, headers, data))
    return status, None if said is None else json.loads(said)


@pytest.mark.parametrize("name", WEAK)
def test_a_document_becomes_scenarios_that_pass_and_find_a_weak_agent(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "chaos"
    assert main(["from-openapi", str(DOCUMENTS / name), "--out", str(out)]) == 0
    assert main(["test", str(out), "--no-logs", "-q"]) == 0, capsys.readouterr().out
    scenario, agent = WEAK[name]
    weak = out.rename(tmp_path / "weak")  # modules of a folder are imported once
    module = (weak / "stand_ins.py").read_text()
    (weak / "stand_ins.py").write_text(module.replace("\nAGENT = None\n", agent))
    assert main(["test", str(weak / f"{scenario}.chaos.yaml"), "--no-logs"]) == 1
    assert "twice" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"summary": "Pay now.", "description": "Pays the\ninvoice."}, "Pay now."),
        ({"description": "Pays the\ninvoice."}, "Pays the invoice."),
        ({}, "POST /pay"),
    ],
)
def test_a_function_says_what_its_operation_does(words: dict[str, str], says: str, tmp_path: Path) -> None:
    operation = {"operationId": "pay", "responses": {"200": {"description": "ok"}}, **words}
    document = {"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {"/pay": {"post": operation}}}
    (tmp_path / "api.json").write_text(json.dumps(document))
    personal = PersonalDataMasker(on=True)
    project = build_project(read_api(tmp_path / "api.json", personal=personal, seed=1), most=1, personal=personal)
    assert f'def pay():\n    "{says}"\n' in project.files["stand_ins.py"]


def test_personal_data_is_masked_alike_everywhere() -> None:
    personal = PersonalDataMasker()
    assert personal.mask_text("Refund Ann@shop.test, card 4111111111111111") == "Refund <e-mail 1>, card <card 1>"
    private = {"email": "ann@shop.test", "card": "4111 1111 1111 1111", "phone": "+49 170 1234567"}
    assert personal.mask_value(private) == {"email": "<e-mail 1>", "card": "<card 1>", "phone": "<phone 1>"}
    public = {"at": "2026-06-01T09:00:00Z", "order": 17, "id": "1234567890123456", "ip": "10.0.0.1"}
    assert personal.mask_value(public) == public
    assert personal.masked_counts == {"e-mail": 1, "card": 1, "phone": 1}
    assert PersonalDataMasker(on=False).mask_text("ann@shop.test") == "ann@shop.test"


def test_what_is_created_is_kept_changed_and_removed() -> None:
    service = service_of("shop.yaml")
    first = service.call("listOrders", {})
    assert first["total"] == len(first["data"]) == 2
    made = service.call("createOrder", {"productId": 7, "quantity": 3})
    assert (made["id"], made["quantity"], made["status"]) == ("ord_102", 3, "open")
    assert service.call("getOrder", {"orderId": "ord_102"}) == made
    assert service.call("changeOrder", {"orderId": "ord_102", "quantity": 4, "productId": 7})["quantity"] == 4
    assert service.call("listOrders", {})["total"] == 3
    assert service.call("listOrders", {"status": "sent"})["data"] == []
    assert service.call("refundOrder", {"orderId": "ord_102", "amount": 2.5})["amount"] == 2.5
    assert [*service.state()] == ["/orders"]
    assert service.call("cancelOrder", {"orderId": "ord_102"}) is None
    for gone in ("getOrder", "cancelOrder"):
        with pytest.raises(CallRefused, match="404 there is no 'ord_102'"):
            service.call(gone, {"orderId": "ord_102"})
    with pytest.raises(CallRefused, match="404"):
        service.call("refundOrder", {"orderId": "ord_102", "amount": 1})
    for wrong in ("many", True, None, 1.5):
        with pytest.raises(CallRefused, match=r"400 quantity (should be of type integer|is missing)"):
            service.call("createOrder", {"productId": 7, "quantity": wrong})
    assert service.state() == {}
    assert service.call("createOrder", {"productId": 7, "quantity": 1})["id"] == "ord_103"  # no id is given twice
    service.fresh()
    assert service.call("listOrders", {})["total"] == 2


def test_things_within_a_thing_are_its_own() -> None:
    service = service_of("tracker.json")
    made = service.call("issues_create", {"repo": "tea", "title": "It leaks"})
    assert made["number"] == 43
    own = {"repo": "tea", "issue_number": made["number"]}
    assert service.call("issues_list_comments", own) == []
    service.call("issues_create_comment", {**own, "body": "Same here"})
    assert [each["body"] for each in service.call("issues_list_comments", own)] == ["Same here"]
    assert len(service.call("issues_list_comments", {**own, "issue_number": 41})) == 2  # those that are there at first
    assert len(service.call("issues_list", {"repo": "pot"})) == 2
    assert service.call("issues_list", {"repo": "tea", "page": 2}) == []
    assert service.call("search_issues", {"q": "lid"})["q"] == "lid"


def test_a_bank_wants_a_credential_and_pays_once_for_one_key() -> None:
    app = service_of("bank.yaml").fresh()
    body, auth = {"from": "DE01", "to": "DE02", "amount": 5.5}, {"authorization": "Bearer x"}
    assert asked(app, "POST", "/transfers", body)[0] == 401
    assert asked(app, "GET", "/health") == (200, {"status": "up"})
    assert asked(app, "GET", "/accounts/DE02", **auth) == (200, {"iban": "DE02", "owner": "Bob", "balance": 20})
    status, made = asked(app, "POST", "/transfers", body, **auth, **{"idempotency-key": "1"})
    assert (status, made["transfer"]["amount"]) == (201, 5.5)
    assert asked(app, "POST", "/transfers", body, **auth, **{"idempotency-key": "1"}) == (201, made)
    other = asked(app, "POST", "/transfers", body, **auth, **{"idempotency-key": "2"})[1]
    assert other["transfer"]["id"] != made["transfer"]["id"]
    assert asked(app, "GET", f"/transfers/{made['transfer']['id']}", **auth) == (200, made)
    assert asked(app, "PUT", "/me", {"name": "Bo"}, **auth)[1]["name"] == "Bo"
    assert asked(app, "GET", "/me", **auth)[1]["name"] == "Bo"
    for wrong in ({**body, "amount": "5"}, {"from": "DE01"}, [1]):
        assert asked(app, "POST", "/transfers", wrong, **auth)[0] == 400
    for status, method, path in ((404, "GET", "/nothing"), (405, "DELETE", "/me"), (404, "GET", "/transfers/9")):
        assert asked(app, method, path, **auth)[0] == status


def test_a_project_depends_on_the_document_and_the_seed_alone_and_holds_no_secret() -> None:
    assert made_of("bank.yaml").files == made_of("bank.yaml").files != made_of("bank.yaml", seed=2).files
    made, plain = made_of("bank.yaml"), made_of("bank.yaml", on=False)
    assert made.masked == {"secret": 1}
    assert "sk-abc" not in "".join(made.files.values())
    assert "sk-abc" in plain.files["service.json"]
    lacking = "\n".join(made.lacking)
    for word in ("auth: token (http)", "oneOf", "links", "callbacks", "the cookie lang is no parameter of the tool"):
        assert word in lacking
    functions = [each for each in ast.parse(made.files["stand_ins.py"]).body if isinstance(each, ast.FunctionDef)]
    assert {"pay", "get_health"} <= {each.name for each in functions}


PATHS = '{"openapi": "3.0.0", "paths": {"/a": '
BAD: dict[str, tuple[Any, str]] = {
    "a.yaml": ("openapi: 3.1.0\ninfo: {title: x}\n", "it has no paths"),
    "b.json": (PATHS + '{"get": {"parameters": [{"$ref": "x.yaml#/A"}]}}}}', "$ref 'x.yaml#/A' leads out"),
    "c.json": (PATHS + '{"$ref": "#/paths/~1a"}}}', "round in a circle"),
    "d.json": (PATHS + '{"get": {"parameters": [{"$ref": "#/b"}]}}}}', "leads to nothing"),
    "e.json": ('{"openapi": "3.0.0", "paths": ', "is not JSON"),
    "f.yaml": ("a: [1\nb: 2", "this is no YAML"),
    "g.json": (PATHS + '{"get": {"security": 6}}}}', "GET /a: not as OpenAPI has it"),
    "h.yaml": ("hello: 1", "it is no OpenAPI document"),
    "i.json": (PATHS + '{"summary": "x"}}}', "its paths have no operations"),
    "j.yaml": (None, "named pipe"),
    "k.yaml": (2**30, "larger than 16 MiB"),
    "l.yaml": ("", "No such file"),
}


def test_a_document_that_is_none_is_refused_in_one_line(tmp_path: Path, typed: Typed) -> None:
    for name, (content, said) in BAD.items():
        path = tmp_path / name
        if content is None:
            os.mkfifo(path)
        elif isinstance(content, int):
            with path.open("wb") as file:
                file.truncate(content)
        elif content:
            path.write_text(content)
        error = typed.refused("from-openapi", path, "--out", tmp_path / "out")
        assert said in error
        assert str(path) in error
    assert not (tmp_path / "out").exists()


def test_a_schema_that_holds_itself_ends() -> None:
    issue = service_of("tracker.json").call("issues_get", {"repo": "tea", "issue_number": 41})
    assert issue["author"] == {"login": "ann", "friends": [None]}


def test_a_thing_alone_is_kept_if_it_can_be_changed_and_a_parameter_may_have_content(tmp_path: Path) -> None:
    fine = {"200": {"content": {"application/json": {"schema": {"type": "object", "properties": {"a": WHOLE}}}}}}
    exact = {"content": {"application/json": {"schema": {**WHOLE, "minimum": 7, "maximum": 7}}}}
    asks = [{"in": "query", "name": "size", **exact}]
    paths = {
        "/me": {"get": {"responses": fine}, "put": {"responses": fine}},
        "/health": {"get": {"responses": fine, "parameters": asks}},
    }
    head = {"openapi": "3.1.0", "info": {"title": "Me", "version": "1"}, "servers": [{"url": "https://me.test"}]}
    (tmp_path / "me.json").write_text(json.dumps({**head, "paths": paths}))
    api = read_api(tmp_path / "me.json", personal=PersonalDataMasker(), seed=1)
    found = [(each.method, each.path, each.does, each.arguments) for each in api.operations]
    assert found == [("GET", "/me", "read", {}), ("PUT", "/me", "replace", {}), ("GET", "/health", "do", {"size": 7})]


def test_what_a_fake_lacks_is_told(tmp_path: Path) -> None:
    answers = {"200": {"content": {"application/xml": {"schema": {"type": "string"}}}}}
    scan = {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}
    about = {"in": "query", "name": "of", "schema": TEXT, "description": "Ask ann@shop.test first."}
    number = {"in": "path", "name": "number", "required": True, "schema": {**TEXT, "pattern": "^x{9}$"}}
    order = {"type": "object", "required": ["number"], "properties": {"number": {**TEXT, "pattern": "^[0-9]{9}$"}}}
    ask = {"operationId": "ask", "parameters": [about], "responses": answers}
    paths = {
        "/orders": {
            "post": {
                "operationId": "ask",
                "requestBody": {"content": {"application/json": {"schema": order}}},
                "responses": {"201": {"content": {"application/json": {"schema": {"type": "object"}}}}},
            },
            "get": ask,
        },
        "/orders/{number}": {"get": {"operationId": "one", "parameters": [number], "responses": answers}},
        "/scans": {"post": {"operationId": "scan", "requestBody": scan, "responses": answers}},
    }
    document = {
        "openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": paths, "webhooks": {"paid": {}},
        "servers": [{"url": "http://[shop"}, {"url": "http://shop.test"}],
        "components": {"securitySchemes": {"tls": {"type": "mutualTLS"}}},
    }  # fmt: skip
    (tmp_path / "shop.json").write_text(json.dumps(document))
    personal = PersonalDataMasker()
    api = read_api(tmp_path / "shop.json", personal=personal, seed=1)
    project = build_project(api, most=1, personal=personal)
    for lack in (
        "webhooks: the fake calls nobody",
        "servers: no address is in it: the service answers at ",
        "servers: of 2 the first is taken",
        "auth: tls: certificates of clients are not asked for",
        "POST /scans: its body is image/png, which the fake does not read",
        "its reply is application/xml; the fake gives JSON",
        "no example keeps to its pattern",
        "1 more operations are in no scenario: --most 1 are written",
    ):
        assert any(lack in line for line in project.lacking), (lack, project.lacking)
    service = Service(json.loads(project.files["service.json"]))
    tools = {entry["name"]: entry for entry in service.tools()}
    assert {"ask", "ask_2", "one", "scan"} == tools.keys()  # two of one name are told apart
    assert "ann@shop.test" not in str(tools)
    assert "Ask <e-mail 1> first." in str(tools)


@pytest.mark.parametrize("text", ["{", "[]", '{"operations": {}}'])
def test_a_fake_s_file_that_was_changed_wrongly_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text(text)
    with pytest.raises(ValueError, match=r"service\.json is not as chaoslab from-openapi writes it \("):
        Service.read(tmp_path / "service.json")


# MCP.


def notes() -> Service:
    api = make_api("Notes", TOOLS, "tools.json", personal=PersonalDataMasker(), seed=1)
    return Service(json.loads(build_project(api, most=20, personal=PersonalDataMasker()).files["service.json"]))


YES_NO = {"type": "boolean"}


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        (YES_NO, True),
        ({**WHOLE, "minimum": 3, "maximum": 3}, 3),
        ({**WHOLE, "exclusiveMinimum": 3, "exclusiveMaximum": 5}, 4),
        ({**WHOLE, "minimum": -2, "maximum": -2}, -2),
        ({"type": "number", "minimum": 2.504, "maximum": 2.504}, 2.5),
        ({**TEXT, "format": "date"}, "2026-01-01"),
        ({**TEXT, "minLength": 5}, "valxx"),
        ({**TEXT, "maxLength": 2}, "va"),
        ({**TEXT, "maxLength": 0}, ""),
        ({"type": "array", "items": YES_NO}, [True]),
        ({"type": "array", "items": YES_NO, "minItems": 2}, [True, True]),
        ({"type": "object", "properties": {"a": {**YES_NO, "readOnly": True}, "b": YES_NO}}, {"b": True}),
        ({"anyOf": [{"type": "null"}, YES_NO]}, True),
        ({"allOf": [{"properties": {"a": YES_NO}}, {"properties": {"b": YES_NO}}]}, {"a": True, "b": True}),
        ({**WHOLE, "enum": [4]}, 4),
        ({**WHOLE, "const": 4}, 4),
        ({**WHOLE, "example": 4}, 4),
        ({}, "val"),
    ],
)
def test_a_sample_keeps_to_its_schema(schema: dict[str, Any], sample: Any) -> None:
    api = make_api("Notes", [tool("set", None, "val", val=schema)], "tools.json", personal=PersonalDataMasker(), seed=1)
    assert api.operations[0].arguments == {"val": sample}


def test_a_list_of_tools_becomes_scenarios_that_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tools.json").write_text(json.dumps({"result": {"tools": TOOLS}}))
    out = tmp_path / "chaos"
    assert main(["from-mcp", str(tmp_path / "tools.json"), "--out", str(out)]) == 0
    assert "not derived: price: it has no annotations: by its name it changes something" in capsys.readouterr().out
    scenario = (out / "note.chaos.yaml").read_text()
    assert "tools: ['stand_ins:create_note', 'stand_ins:delete_note']" in scenario
    assert "reads: ['stand_ins:get_note', 'stand_ins:listNotes']" in scenario
    assert "idempotent: [delete_note]" in scenario
    assert main(["test", str(out), "--no-logs", "-q"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(("list_tool", "lost"), [("list_notes", True), ("list_tags", False)])
def test_a_reply_is_lost_only_where_a_client_can_find_out_what_was_done(list_tool: str, *, lost: bool) -> None:
    create = tool("create_note", {"destructiveHint": False}, "text", text=TEXT)
    tools = [create, tool(list_tool, {"readOnlyHint": True})]
    api = make_api("Notes", tools, "tools.json", personal=PersonalDataMasker(), seed=1)
    assert (
        "fault: lost_reply" in "".join(build_project(api, most=20, personal=PersonalDataMasker()).files.values())
    ) is lost


def test_an_mcp_client_meets_the_stand_in_and_its_state() -> None:
    from mcp import Client

    async def agent(_: str) -> str:
        async with Client("http://notes.test/mcp") as client:
            tools = (await client.list_tools()).tools
            await client.call_tool("create_note", {"text": "tea"})
            price = (await client.call_tool("price", {"of": "tea"})).structured_content
            kept = await client.call_tool("get-note", {"note_id": first[-1]["id"] + 1})
            gone = await client.call_tool("get-note", {"note_id": 99})
            return json.dumps([len(tools), price, kept.content[0].model_dump()["text"], gone.is_error])

    service = notes()
    first = service.call("listNotes", {})
    trial = lab.run(agent, "Note tea", services={"notes.test": lab.fresh(service.fresh)})
    number, price, kept, gone = json.loads(trial.answer)
    assert (number, price, gone) == (len(TOOLS), {"result": 3}, True)
    assert len(first) == 2
    assert json.loads(kept)["text"] == "tea"
    assert [each["effect"] for each in trial.effects] == ["create_note", "price"]


SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if asked["method"] == "initialize":
        about = {"serverInfo": {"name": "desk", "version": "1"}, "capabilities": {"tools": {}}}
        answer = {"result": {**about, "protocolVersion": "2025-06-18"}}
    elif asked["method"] == "tools/list":
        at = int((asked.get("params") or {}).get("cursor", 0))
        tools = [{"name": f"get_{at}", "inputSchema": {"type": "object"}}]
        answer = {"result": {"tools": tools, **({"nextCursor": str(at + 1)} if at < 2 else {})}}
    if "id" in asked:
        print(json.dumps({"method": "notifications/tools/list_changed", "jsonrpc": "2.0"}))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def test_a_server_is_asked_for_all_pages_of_its_list() -> None:
    name, tools = request_tools([sys.executable, "-c", SERVER], {})
    assert (name, [each["name"] for each in tools]) == ("desk", ["get_0", "get_1", "get_2"])
    for server, says in (
        (SERVER.replace('"tools/list"', '"no/list"'), "it refuses the list of its tools: Method not found"),
        (SERVER.replace('"inputSchema": {', '"outputSchema": {'), "its list of tools is none of MCP"),
    ):
        with pytest.raises(ValueError, match=says):
            request_tools([sys.executable, "-c", server], {})


@pytest.mark.parametrize("grouped", [False, True])
def test_an_error_of_the_sdk_may_come_in_a_group(grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import MCPError  # here, since the SDK takes half a second

    errors: list[tuple[Exception, type[Exception], str]] = [
        (MCPError(-32601, "Method not found"), ValueError, "it refuses the list of its tools: Method not found"),
        (TimeoutError(), ValueError, "it gave no list of its tools within 20 s"),
        (ConnectionRefusedError("nobody is there"), OSError, "nobody is there"),
    ]
    for error, kind, said in errors:

        class Client:
            def __init__(self, _: object, error: Exception = error) -> None:
                raise ExceptionGroup("in a task group", [ExceptionGroup("", [error])]) if grouped else error

        monkeypatch.setattr("mcp.Client", Client)
        with pytest.raises(kind, match=f"^{said}$"):
            request_tools([sys.executable], {})


def test_a_tool_that_destroys_and_does_not_say_what_is_told() -> None:
    api = make_api("Desk", [tool("purge", {"destructiveHint": True})], "x", personal=PersonalDataMasker(), seed=1)
    assert "purge: it is destructive, and its name does not say what it changes" in api.lacking


def test_what_is_no_server_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: Typed
) -> None:
    with capsys.disabled():  # a server's errors go to what was stderr when the SDK was loaded, which must be a file
        import mcp.client.stdio  # noqa: F401
    (tmp_path / "none.json").write_text('{"tools": 3}')
    (tmp_path / "bare.json").write_text('{"tools": []}')
    (tmp_path / "odd.json").write_text('{"tools": [{"name": "x", "inputSchema": {"properties": {"a": {"allOf": 3}}}}]}')
    cases = {
        (str(tmp_path / "none.json"),): "it is no list of tools",
        (str(tmp_path / "odd.json"),): "the schema of 'x' is none",
        (str(tmp_path / "not.json"),): "No such file",
        ("http://127.0.0.1:9/mcp",): "127.0.0.1:9",
        ("--", "no-such-program"): "no-such-program",
        (str(tmp_path / "bare.json"),): "there are no tools in its list",
        ("--", "sleep", "60"): "it gave no list of its tools within 0.05 s",
    }
    for source, said in cases.items():
        if "0.05 s" in said:  # where nobody refuses sooner: the SDK itself takes longer to load
            monkeypatch.setattr(mcp_tools, "ANSWER_S", 0.05)
        assert said in typed.refused("from-mcp", "--out", tmp_path / "out", *source)


@pytest.mark.parametrize(
    "title",
    [
        "Shop: Orders & Payments API",
        "50% off / [beta]?",
        "-1.5",
        "{'a': 1}",
        "...",
        "Größe é 東京",
        "x" * 300,
    ],
)
def test_what_is_written_for_any_title_is_a_right_scenario(title: str, tmp_path: Path, typed: Typed) -> None:
    paths = {"/orders/{id}": {"get": {"operationId": "one", "responses": {"200": {"description": "ok"}}}}}
    document = {"openapi": "3.0.0", "info": {"title": title, "version": "1"}, "paths": paths}
    (tmp_path / "api.json").write_text(json.dumps(document))
    assert typed("from-openapi", tmp_path / "api.json", "--out", tmp_path / "chaos").code == 0
    assert typed("test", tmp_path / "chaos", "--no-logs", "-q").code == 0


def test_a_call_that_is_too_long_for_a_prompt_is_in_no_scenario(tmp_path: Path, typed: Typed) -> None:
    long = {"type": "array", "minItems": 20, "items": {"type": "string", "minLength": 1000}}
    ok: dict[str, Any] = {"responses": {"200": {"description": "ok"}}}
    many = {"operationId": "many", "requestBody": {"content": {"application/json": {"schema": long}}}, **ok}
    document = {
        "openapi": "3.0.0", "info": {"title": "x", "version": "1"},
        "paths": {"/a": {"get": {"operationId": "one", **ok}, "post": many}},
    }  # fmt: skip
    (tmp_path / "api.json").write_text(json.dumps(document))
    told = typed("from-openapi", tmp_path / "api.json", "--out", tmp_path / "chaos")
    assert "POST /a: its example is too long for a scenario; it has a fake" in told.out + told.err
    assert typed("test", tmp_path / "chaos", "--no-logs", "-q").code == 0


def test_a_document_of_which_no_scenario_can_be_made_names_no_next_command(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "api.json").write_text(json.dumps({
        "openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {"/a": {"post": {
            "operationId": "many", "responses": {"200": {"description": "ok"}}, "requestBody": {"content": {
                "application/json": {"schema": {"type": "array", "minItems": 20, "items": {
                    "type": "string", "minLength": 1000}}}}}}}},
    }))  # fmt: skip
    told = typed("from-openapi", tmp_path / "api.json", "--out", tmp_path / "chaos")
    assert "too long for a scenario" in told.out
    assert "next:" not in told.out


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 10**9},
        {"type": "array", "minItems": 10**9, "items": {"type": "string"}},
        {"type": "array", "minItems": 9, "items": {"type": "array", "minItems": 99, "items": {
            "type": "array", "minItems": 99, "items": {"type": "array", "minItems": 99, "items": {
                "type": "array", "minItems": 99, "items": {"type": "integer"}}}}}},
        {"type": "string", "maxLength": -1},
    ],
)  # fmt: skip
def test_a_documents_sizes_do_not_set_those_of_what_is_written(schema: Any, tmp_path: Path, typed: Typed) -> None:
    replies = {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}
    document = {
        "openapi": "3.0.0", "info": {"title": "x", "version": "1"},
        "paths": {"/a": {"get": {"operationId": "a", "responses": replies}}},
    }  # fmt: skip
    (tmp_path / "api.json").write_text(json.dumps(document))
    assert typed("from-openapi", tmp_path / "api.json", "--out", tmp_path / "chaos").code == 0
    assert sum(path.stat().st_size for path in (tmp_path / "chaos").iterdir()) < 1_000_000
