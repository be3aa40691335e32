"""The protocols of requests: the tool, its arguments, and the tool's own part of the answer."""

from typing import Any

import pytest

from chaoslab.seams.protocols import graphql, json_rpc, mcp, parse_message, schema

CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "refund", "arguments": {"order": 17}},
}


def graph(query: str, **more: Any) -> Any:
    return graphql.read_message({"query": query, **more})


@pytest.mark.parametrize(
    ("query", "more", "kind", "tool", "arguments"),
    [
        ("{ order(id: 17) { total } }", {}, "query", "order", {"id": 17}),
        ("query Q($id: ID!) { order(id: $id) { total } }", {"variables": {"id": "17"}}, "query", "order", {"id": "17"}),
        (
            'mutation { mine: refund(order: 17, why: "late \\" {", all: true, at: [1, 2.5], to: {x: EUR}) { ok } }',
            {}, "mutation", "refund",
            {"order": 17, "why": 'late " {', "all": True, "at": [1, 2.5], "to": {"x": "EUR"}},
        ),
        ("{ a: order(id: 1) { n } b: cup(id: 2) { n } }", {}, "query", "order, cup", {"a": {"id": 1}, "b": {"id": 2}}),
        ("query A { a } query B { b }", {"operationName": "B"}, "query", "b", {}),
        ("# a comment\nquery @live { ... on Query @x(if: true) { a(x: null) } ...F } fragment F on Query { b }", {},
         "query", "a", {"x": None}),
        ('{ note(text: """two\nlines""") }', {}, "query", "note", {"text": "two\nlines"}),
        ("{ ... { a { b } } ... @include(if: true) { c } ...F @x d }", {}, "query", "a, c, d", {"a": {}, "c": {},
         "d": {}}),
        ("query ($id: ID) { a(id: $id, n: $n) }", {"variables": '{"id": 7}'}, "query", "a", {"id": 7, "n": None}),
        ("mutation { refund(order: 17) @x(a: 1) { ok } note @y { ok } }", {}, "mutation", "refund, note",
         {"refund": {"order": 17}, "note": {}}),
        ("query A { a } query B { b }", {"operationName": "C", "variables": [1]}, "query", "a", {}),
    ],
)  # fmt: skip
def test_the_tool_of_an_operation_is_its_field(
    query: str, more: dict[str, Any], kind: str, tool: str, arguments: dict[str, Any]
) -> None:
    found = graph(query, **more)
    assert (found.kind, found.tool, found.arguments) == (kind, tool, arguments)


@pytest.mark.parametrize(
    "query",
    ["weather in Oslo", "query the weather", "{", "{}", "{ a", "mutation {rate} in DNA", "{ a(b: ) }", 7, None,
     "query a", "{ a(b 1) }", "{ a(b: {c 1}) }", "fragment { a }", "{ a { b }", "{ ... on }", "{ b ... on Query a } }",
     "{ a(1: 2) }", "{ a(x: ]) }", "{ a } fetch { b }",
     "#" * 5000, "{ a(x: " + "[" * 5000 + " }", 'query { a(x: "open) }', "fragment F on Query { b }"],
)  # fmt: skip
def test_other_texts_are_no_operation(query: Any) -> None:
    assert graph(query) is None


@pytest.mark.parametrize(
    ("answer", "value", "ok", "effects"),
    [
        ({"data": {"refund": {"ok": True}}}, {"ok": True}, True, [("refund", {"order": 17})]),
        ({"data": {"refund": None}, "errors": [{"message": "no such order"}]}, None, False, []),
        ({"errors": [{"message": "no such field"}]}, None, False, []),
        ({"data": {"refund": {"ok": True}}, "errors": [{"message": "late"}]}, {"ok": True}, True,
         [("refund", {"order": 17})]),
    ],
)  # fmt: skip
def test_the_answer_of_an_operation_is_its_field(answer: Any, value: Any, ok: bool, effects: list[Any]) -> None:
    message = graph("mutation { refund(order: 17) { ok } }")
    found = message.extract_tool_answer(answer)
    assert (found.value, found.ok) == (value, ok)
    assert message.list_effects(message.arguments, answer) == effects
    assert found.put({"ok": False})["data"] == {"refund": {"ok": False}}


def test_a_message_in_another_protocol_is_none_of_graphql() -> None:
    assert parse_message({"query": "tea", "page": 2}, (), body=True) is None
    assert parse_message({"order": 17}, (), body=True) is None
    assert parse_message({}, [(b"Mcp-Session-Id", b"1")], body=True) is None
    ends = parse_message({}, [(b"Accept", b"*/*"), (b"Mcp-Session-Id", b"1")], body=False)
    assert ends is not None
    assert ends.part == "session"


def test_what_is_no_list_of_tools_is_an_answer_as_any_other() -> None:
    asked = parse_message({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, (), body=True)
    assert asked is not None
    assert asked.part == "listing"
    assert asked.extract_tool_answer("no list") is None
    found = asked.extract_tool_answer({"jsonrpc": "2.0", "id": 1, "result": {"tools": "none"}})
    assert found is not None
    assert found.value == {"tools": "none"}


def text(told: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": told, **more}


RESULT = {
    "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "x"}, {"type": "text", "text": '{"b": 1}'}]
}


@pytest.mark.parametrize(
    ("data", "meaning", "changed", "told"),
    [
        ({"content": [{"type": "text", "text": "paid", "annotations": {}}]}, "paid", "back",
         {"content": [{"type": "text", "text": "back", "annotations": {}}]}),
        (RESULT, ["a", {"b": 1}], ["c", {"b": 2}],
         {"content": [{"type": "text", "text": "c"}, RESULT["content"][1], {"type": "text", "text": '{"b": 2}'}]}),
        (RESULT, ["a", {"b": 1}], ["a"], {"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "x"}]}),
        ({"content": [{"type": "text", "text": "7"}], "structuredContent": {"result": 7}, "_meta": {"v": 1}}, 7, 14,
         {"content": [{"type": "text", "text": "14"}], "structuredContent": {"result": 14}, "_meta": {"v": 1}}),
        ({"content": [text("a"), text("b", n=2)]}, ["a", "b"], ["a", "b", "c"],
         {"content": [text("a"), text("b", n=2), text("c", n=2)]}),
        ({"content": [text("[1, 2]")]}, [1, 2], [3], {"content": [text("[3]")]}),
    ],
)  # fmt: skip
def test_a_result_of_mcp_keeps_all_but_its_value(data: Any, meaning: Any, changed: Any, told: Any) -> None:
    assert mcp.get_result_value(data) == meaning
    assert mcp.replace_result_value(data, changed) == told
    assert mcp.replace_result_value(data, meaning) == data


def test_the_data_of_an_event_is_replaced_and_its_other_fields_stay() -> None:
    body = b'id: 1\ndata:\n\nevent: message\nid: 2\ndata: {"result": 1}\n\n: ping\n\n'
    assert list(json_rpc.iterate_json_values(body)) == [{"result": 1}]
    now = json_rpc.replace_matching_event(body, lambda said: isinstance(said, dict), '{"result": 2}')
    assert now == body.replace(b'{"result": 1}', b'{"result": 2}')
    assert list(json_rpc.iterate_json_values(now)) == [{"result": 2}]


ORDER = {
    "type": "object",
    "required": ["total", "state", "lines", "to"],
    "properties": {
        "total": {"type": "number", "minimum": 1},
        "state": {"enum": ["paid", "open"]},
        "lines": {"type": "array", "items": {"type": "string"}},
        "to": {"$ref": "#/$defs/To"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "additionalProperties": False,
    "$defs": {"To": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}
TRUE = {"total": 30.0, "state": "paid", "lines": ["tea", "cup"], "to": {"city": "Oslo"}, "note": "x"}


@pytest.mark.parametrize(
    ("value", "fitted"),
    [
        (TRUE, TRUE),
        ({**TRUE, "total": 60}, {**TRUE, "total": 60}),
        ({**TRUE, "total": "60"}, TRUE),
        ({**TRUE, "total": 0}, TRUE),
        ({**TRUE, "state": "diap"}, TRUE),
        ({**TRUE, "state": "open", "extra": 1}, {**TRUE, "state": "open"}),
        ({**TRUE, "lines": ["cup", 7]}, {**TRUE, "lines": ["cup", "cup"]}),
        ({**TRUE, "to": {}}, {**TRUE, "to": {"city": ""}}),
        ({**TRUE, "note": None}, {**TRUE, "note": ""}),
        ({}, {"total": 30.0, "state": "paid", "lines": [], "to": {"city": ""}}),
        (None, {"total": 30.0, "state": "paid", "lines": [], "to": {"city": ""}}),
        ("gone", TRUE),
    ],
)
def test_a_changed_value_keeps_to_its_schema(value: Any, fitted: Any) -> None:
    assert schema.fit_to_schema(value, TRUE, ORDER) == fitted


def test_a_call_of_a_tool_has_its_values_fitted() -> None:
    call = mcp.read_message(CALL)
    assert call is not None
    assert call.fit_value({**TRUE, "total": 0}, TRUE, ORDER) == TRUE
    assert call.fit_value({"n": "7"}, {"n": 3}) == {"n": 3}
    assert call.fit_value("another", "a text") == "another"


def test_without_a_schema_a_value_keeps_to_the_form_of_the_true_one() -> None:
    form = schema.build_schema_of_value({"a": [{"b": 1, "c": None}], "d": 2.5})
    assert schema.fit_to_schema({"a": [{"b": 2}]}, {"a": [{"b": 1, "c": None}], "d": 2.5}, form) == {
        "a": [{"b": 2, "c": None}], "d": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [{"$ref": "#"}, {"$ref": "#/a", "a": {"$ref": "#/a"}}, {"$ref": "#/$defs/no"}, {"anyOf": [{"$ref": "#"}]},
     {"type": 7}, True, None],
)  # fmt: skip
def test_a_schema_that_cannot_be_followed_asks_for_nothing(bad: Any) -> None:
    assert schema.fit_to_schema({"a": 1}, {"a": 2}, bad) == {"a": 1}


def rpc(method: Any = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 3, **({} if method is None else {"method": method}), **more}


@pytest.mark.parametrize(
    ("value", "kind", "tool", "arguments"),
    [
        (CALL, mcp.McpToolCall, "refund", {"order": 17}),
        (rpc("tools/call", params={"name": "a", "arguments": 7}), mcp.McpToolCall, "a", {}),
        (rpc("tools/call", params={"name": 7}), mcp.SessionMessage, "tools/call", None),
        (rpc("tools/list"), mcp.ToolListRequest, "tools/list", {}),
        (rpc("prompts/get", params={"name": "a"}), mcp.ContentRequest, "prompts/get", {"name": "a"}),
        (rpc("resources/read", params={"uri": "a"}), mcp.ContentRequest, "resources/read", {"uri": "a"}),
        (rpc("initialize"), mcp.SessionMessage, "initialize", None),
        (rpc("notifications/cancelled"), mcp.SessionMessage, "notifications/cancelled", None),
        (rpc(result={}), mcp.SessionMessage, "answer", None), (rpc(error={}), mcp.SessionMessage, "answer", None),
        (rpc(), None, "", None), (rpc("refund"), None, "", None), (rpc(7), None, "", None),
        ({**CALL, "jsonrpc": "1.0"}, None, "", None),
    ],
)  # fmt: skip
def test_a_message_of_mcp_is_told_by_its_method(value: Any, kind: Any, tool: str, arguments: Any) -> None:
    found: Any = mcp.read_message(value)
    if kind is None:
        assert found is None
        return
    assert type(found) is kind
    assert found.tool == tool
    assert found.arguments == (value if kind is mcp.SessionMessage else arguments)
    if kind is mcp.SessionMessage:
        assert (found.part, found.build_body_with_arguments({"a": 1}), found.extract_tool_answer(value)) == (
            "session",
            {"a": 1},
            None,
        )
    if kind is not mcp.McpToolCall:
        assert found.list_effects(found.arguments, rpc(result={})) == []


@pytest.mark.parametrize(
    ("method", "result", "value", "now"),
    [
        ("prompts/get", {"messages": [{"role": "user", "content": text("a")}], "_meta": 1}, "a",
         {"messages": [{"role": "user", "content": text("b")}], "_meta": 1}),
        ("resources/read", {"contents": [{"uri": "u", "text": "a\nb"}]}, "a\nb",
         {"contents": [{"uri": "u", "text": "b"}]}),
        ("resources/read", {"contents": [{"uri": "u", "text": '{\n"n": 1}'}]}, {"n": 1},
         {"contents": [{"uri": "u", "text": "b"}]}),
        ("resources/read", {"contents": [{"type": "blob"}, 7]}, ["blob"],
         {"contents": [{"type": "blob"}, {"type": "text", "text": "b"}]}),
        ("resources/read", {"contents": "a"}, {"contents": "a"}, "b"),
        ("resources/read", ["a"], ["a"], "b"),
        ("tools/list", {"tools": [{"name": "a"}], "_meta": 1}, [{"name": "a"}], {"tools": "b", "_meta": 1}),
    ],
)  # fmt: skip
def test_a_part_of_an_answer_of_mcp_is_read_and_replaced(method: str, result: Any, value: Any, now: Any) -> None:
    asked = mcp.read_message(rpc(method))
    assert asked is not None
    found = asked.extract_tool_answer(rpc(result=result))
    assert found is not None
    assert found.value == value
    assert found.put("b") == rpc(result=now)
    assert (
        asked.extract_tool_answer("nothing")
        is asked.extract_tool_answer(rpc("ping", result=result))
        is asked.extract_tool_answer(rpc())
        is None
    )


def test_a_changed_structure_in_a_text_keeps_its_lines() -> None:
    asked = mcp.read_message(rpc("resources/read"))
    assert asked is not None
    for told, now in (('{\n"n": 1}', '{\n  "n": 2\n}'), ('{"n": 1}', '{"n": 2}')):
        found = asked.extract_tool_answer(rpc(result={"contents": [{"uri": "u", "text": told}]}))
        assert found is not None
        assert found.put({"n": 2})["result"]["contents"] == [{"uri": "u", "text": now}]


def test_a_call_of_a_tool_is_asked_answered_and_refused_in_its_own_form() -> None:
    call = mcp.read_message(CALL)
    newer = mcp.read_message({**CALL, "params": {**CALL["params"], "_meta": {mcp.VERSION: "2026-07-28"}}})
    assert call is not None
    assert newer is not None
    assert call.build_body_with_arguments({"order": 18})["params"] == {"name": "refund", "arguments": {"order": 18}}
    assert call.build_error_reply("503")["result"] == {
        **mcp.make_text_result("Error executing tool refund: 503"),
        "isError": True,
    }
    assert newer.build_result_reply("a")["result"] == {"resultType": "complete", **mcp.make_text_result("a")}
    assert call.build_result_reply("a")["result"] == mcp.make_text_result("a")
    for result, value, ok in (
        (mcp.make_text_result("a"), "a", True),
        ({"structuredContent": {"result": 7}}, 7, True),
        ({**mcp.make_text_result("a"), "isError": True}, "a", False),
        ({"other": 1}, None, True),
    ):
        found = call.extract_tool_answer(rpc(result=result))
        assert found is not None
        assert (found.value, found.ok, found.words) == (value, ok, "" if ok else "a")
    refused = call.extract_tool_answer(rpc(error={"message": "no"}))
    assert refused is not None
    assert (refused.value, refused.ok, refused.words) == (None, False, "no")


OF_RESULT = {"type": "object", "properties": {"result": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("value", "was", "schema", "found"),
    [
        (7, "a", None, 7), (7, 3, None, 7), ("7", 3, None, 3), (7, 3, OF_RESULT, 7), ("7", 3, OF_RESULT, 3),
        ({"result": 7}, {"result": 3}, OF_RESULT, {"result": 7}),
        ({"result": "7"}, {"result": 3}, OF_RESULT, {"result": 3}),
        ({"n": 7}, {"n": 3}, {"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 7}),
    ],
)  # fmt: skip
def test_a_changed_value_of_a_tool_keeps_to_what_the_tool_promises(
    value: Any, was: Any, schema: Any, found: Any
) -> None:
    assert mcp.fit_value_to_schema(value, was, schema) == found


def test_an_operation_of_several_fields_is_asked_answered_and_refused_by_field() -> None:
    one, two = graph("{ order { total } }"), graph("{ mine: order { total } cup { size } }")
    assert two.build_body_with_arguments({"x": 1}) == two.body
    assert (one.build_result_reply(7), two.build_result_reply(7)) == (
        {"data": {"order": 7}},
        {"data": {"mine": 7, "cup": 7}},
    )
    assert [each["path"] for each in two.build_error_reply("no")["errors"]] == [["mine"], ["cup"]]
    assert two.build_error_reply("no")["data"] == {"mine": None, "cup": None}
    nothing: list[Any] = [7, [], {}, {"date": 1}]
    assert [two.extract_tool_answer(none) for none in nothing] == [None] * 4
    answer = two.extract_tool_answer({"data": {"mine": {"total": 3}, "cup": None, "more": 1}, "id": 2})
    assert (answer.value, answer.ok, answer.words) == ({"mine": {"total": 3}, "cup": None}, True, "")
    assert answer.put({"mine": 1}) == {"data": {"mine": 1}, "id": 2}
    assert one.extract_tool_answer({"data": {"order": 3, "more": 1}}).put(4) == {"data": {"order": 4, "more": 1}}
    for errors, words in (([{"message": "busy"}], "busy"), (["busy"], "")):
        answer = two.extract_tool_answer({"data": None, "errors": errors})
        assert (answer.value, answer.ok, answer.words) == (None, False, words)
    assert two.extract_tool_answer({"data": {"cup": 1}, "errors": [{"message": "half"}]}).ok
    assert two.extract_tool_answer({"data": {}, "errors": []}).ok


@pytest.mark.parametrize(
    ("params", "arguments", "asked"),
    [
        ({"a": 1}, {"a": 1}, {"a": 2}), ([1], {"params": [1]}, [2]), (None, {}, None),
    ],
)  # fmt: skip
def test_the_arguments_of_json_rpc_go_back_in_their_form(params: Any, arguments: Any, asked: Any) -> None:
    found = json_rpc.read_message({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params})
    assert found is not None
    assert found.arguments == arguments
    changed = {"a": 2} if isinstance(params, dict) else {"params": [2]} if params else {}
    assert found.build_body_with_arguments(changed) == {"jsonrpc": "2.0", "id": 1, "method": "m", "params": asked}


@pytest.mark.parametrize(
    ("value", "was", "of", "fitted"),
    [
        (True, False, {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "boolean"}]}, True),
        (3, True, {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}, True),
        (3, 4, {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 4}]}, 4),
        (3, 4, {"oneOf": [{"type": "string"}, {"maximum": 2}]}, 4), (3, 4, {"oneOf": [{"type": "string"}]}, 3),
        (3, 4, {"const": 4}, 4), (4, 3, {"const": 4}, 4), (3, 4, {"anyOf": []}, 3),
        ("x", "y", {"pattern": "y"}, "y"), ("x", "yy", {"minLength": 2}, "yy"), ("xx", "yy", {"minLength": 2}, "xx"),
        ("xxx", "yy", {"maxLength": 2}, "yy"), (2, 3, {"exclusiveMinimum": 2}, 3), (2, 1, {"exclusiveMaximum": 2}, 1),
        (2, 3, {"minimum": 2}, 2), (2, 1, {"maximum": 2}, 2), ([], [1], {"type": "array", "minItems": 1}, [1]),
        ([1, 2], [1], {"type": "array", "maxItems": 1}, [1]), (0, "a", {"type": "string"}, "a"),
        ("", 7, {"type": "integer"}, 0),
        (None, 7, {"type": ["integer", "null"]}, None), ("", 7, {"type": ["integer", "null"]}, None),
        ([1, "x"], [3, 4], {"items": {"type": "integer"}}, [1, 4]),
        ([1, "x"], [3], {"items": {"type": "integer"}}, [1, 3]),
        ({"a": 1, "b": 2}, {}, {"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}),
        ({"b": 2}, {"a": 3}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"b": 2, "a": 0}),
        ({"b": 2}, {"a": 3}, {"properties": {"a": {"minimum": 1, "type": "integer"}}, "required": ["a"]}, {"b": 2,
         "a": 3}),
        ({"b": 2}, {}, {"required": ["a"]}, {"b": 2, "a": None}), ({"b": 2}, {}, {"required": 7}, {"b": 2}),
        ({"b": 2}, {"b": 1}, {"properties": {"b": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": {"maximum": 1}}},
         {"b": 1}),
        (1.5, 2, {"type": "integer"}, 2), (2, 1.5, {"type": "number"}, 2), (2.5, 1, {"$ref": "#/nowhere"}, 2.5),
    ],
)  # fmt: skip
def test_a_value_keeps_to_the_kinds_and_the_bounds_of_its_schema(value: Any, was: Any, of: Any, fitted: Any) -> None:
    found = schema.fit_to_schema(value, was, of)
    assert (found, type(found)) == (fitted, type(fitted))
