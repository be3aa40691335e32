"""The JSON Schema as editors use it: in draft-07 alone, and by the server that editors ask about YAML."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from chaoslab.scenarios.schema import build_schema

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [ROOT / "examples" / "lab_agent.chaos.yaml", *sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))]
DRAFT_07 = {
    "$id", "$ref", "$schema", "additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains",
    "default", "definitions", "dependencies", "description", "else", "enum", "examples", "exclusiveMaximum",
    "exclusiveMinimum", "format", "if", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
    "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties", "properties",
    "propertyNames", "required", "then", "title", "type", "uniqueItems",
}  # fmt: skip
BY_NAME = ("definitions", "properties", "patternProperties")
"""Keywords whose keys are names."""
SERVER = shutil.which("yaml-language-server")


def keywords(value: Any) -> Iterator[tuple[str, Any]]:
    """The keywords of a schema, each with its value."""
    if isinstance(value, list):
        for each in value:
            yield from keywords(each)
    if not isinstance(value, dict):
        return
    for key, each in value.items():
        yield key, each
        if key in BY_NAME:
            for inner in each.values():
                yield from keywords(inner)
        elif key not in ("const", "default", "enum", "examples"):
            yield from keywords(each)


def test_the_schema_keeps_to_draft_07_and_to_references_within_itself() -> None:
    made = build_schema()
    found = list(keywords(made))
    assert {key for key, _ in found} - DRAFT_07 == set()
    references = {value for key, value in found if key == "$ref"}
    assert references
    assert {each.removeprefix("#/definitions/") for each in references} <= set(made["definitions"])


class Server:
    """A language server at the other end of a pipe."""

    def __init__(self, out: IO[bytes], back: IO[bytes], settings: dict[str, Any]) -> None:
        self._out, self._back, self._settings = out, back, settings
        self.said: dict[str, list[str]] = {}
        """Its findings on each file, by the place of the file."""

    def tell(self, **message: Any) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._out.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._out.flush()

    def hear(self) -> dict[str, Any]:
        """Its next message; its own questions are answered."""
        length = 0
        while line := self._back.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(self._back.read(length))
        if message.get("method") == "workspace/configuration":
            items = message["params"]["items"]
            result = [self._settings if each.get("section") == "yaml" else {} for each in items]
            self.tell(id=message["id"], result=result)
        elif "method" in message and "id" in message:
            self.tell(id=message["id"], result=None)
        elif message.get("method") == "textDocument/publishDiagnostics":
            given = message["params"]["diagnostics"]
            self.said[message["params"]["uri"]] = [
                f"{each['range']['start']['line'] + 1}: {each['message']}" for each in given
            ]
        return message


@pytest.mark.skipif(SERVER is None, reason="no yaml-language-server on PATH: npm install -g yaml-language-server")
def test_the_server_of_editors_finds_nothing_in_the_examples_and_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(build_schema()))
    wrong = tmp_path / "wrong.chaos.yaml"
    wrong.write_text(
        "name: a\nagent: lab\nprompt: hi\nfaults:\n  - {fault: lost, target: weather}\ntrails: 5\ntrials: x\n"
    )
    place = f"file://{tmp_path / 'schema.json'}"
    settings = {"schemas": {place: ["*.chaos.yaml"]}, "validate": True, "schemaStore": {"enable": False}}
    with subprocess.Popen([str(SERVER), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        server = Server(process.stdin, process.stdout, settings)
        ready = {"processId": None, "rootUri": None, "capabilities": {"workspace": {"configuration": True}}}
        server.tell(id=1, method="initialize", params=ready)
        while server.hear().get("id") != 1:
            pass
        server.tell(method="initialized", params={})
        while server.hear().get("method") != "workspace/configuration":
            pass
        files = [*EXAMPLES, wrong]
        for path in files:
            document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text()}
            server.tell(method="textDocument/didOpen", params={"textDocument": document})
        while len(server.said) < len(files):
            server.hear()
        process.kill()
    told = {path.name: server.said[path.as_uri()] for path in files}
    assert {name: said for name, said in told.items() if said and name != wrong.name} == {}
    assert [said.partition(" ")[0] for said in sorted(told[wrong.name])] == ["5:", "6:", "7:"]
