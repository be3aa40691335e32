"""Reads the operations of a service from its OpenAPI document: 3.0, 3.1 or Swagger 2, as JSON or YAML."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chaoslab.base.dice import Dice
from chaoslab.base.files import Unreadable, json_in, text_of
from chaoslab.scenarios import located
from chaoslab.scenarios.agent_tools import READS
from chaoslab.surfaces.projects import Personal
from chaoslab.surfaces.schemas._operations import Api, Operation, by_verbs
from chaoslab.surfaces.schemas._samples import NONE, Schemas, example_of

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
VALUES_MAX = 500_000
"""The most values of a document in YAML."""
LEFT_OUT = ("accept", "content-type", "authorization")
"""Headers that OpenAPI itself says are no parameters."""
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def document_in(path: Path) -> dict[str, Any]:
    """The document of a file. Raises ValueError: it is none; the line names the file."""
    try:
        text = text_of(path)
        data = json_in(text) if text.lstrip()[:1] == "{" else None
    except Unreadable as error:
        raise ValueError(f"{path} {error}") from None
    if data is None:
        data = located.parse(text, str(path), values_max=VALUES_MAX).data
    if not isinstance(data, dict) or not str(data.get("openapi") or data.get("swagger")).startswith(("2", "3")):
        raise ValueError(f"{path}: it is no OpenAPI document: `openapi: 3.x` or `swagger: '2.0'` is not in it")
    if not isinstance(data.get("paths"), dict) or not data["paths"]:
        raise ValueError(f"{path}: it has no paths, so there is nothing to call")
    return data


def api_in(path: Path, *, personal: Personal, seed: int) -> Api:
    """The service of a document. `seed`: of the values that are drawn. Raises ValueError: it cannot be used; the line
    names the file."""
    data = document_in(path)
    schemas = Schemas(data, str(path), personal, Dice(seed))
    info = _mapping(data.get("info"))
    api = Api(personal.text(str(info.get("title") or path.stem)), "service.test", "http", lacking=schemas.lacking)
    _address(api, data)
    open_ = _authorised(api, data, schemas)
    where = "paths"
    try:
        for template, item in data["paths"].items():
            item = _mapping(schemas.at(item))
            for method in METHODS:
                where = f"{method.upper()} {template}"
                if isinstance(of := item.get(method), dict):
                    made = _operation(schemas, str(template), method, of, item.get("parameters") or [])
                    made.open = open_ if "security" not in of else not of["security"] or {} in of["security"]
                    api.operations.append(made)
        where = "its collections"
        by_verbs(api.operations)
        api.add_state()
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{path}: {where}: not as OpenAPI has it ({error})") from None
    if not api.operations:
        raise ValueError(f"{path}: its paths have no operations, such as get or post")
    for what in ("webhooks", "x-webhooks"):
        if data.get(what):
            api.lacking.append(f"{what}: the stand-in calls nobody")
    return api


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _address(api: Api, data: dict[str, Any]) -> None:
    servers = data.get("servers")
    first = _mapping(servers[0]) if isinstance(servers, list) and servers else {}
    url = str(first.get("url") or f"//{data.get('host') or ''}{data.get('basePath') or ''}")
    for name, of in _mapping(first.get("variables")).items():
        url = url.replace(f"{{{name}}}", str(_mapping(of).get("default")))
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", host):
        api.host = f"{host}:{port}" if port else host
        api.scheme = "http" if parts.scheme == "http" else "https"
    else:
        api.lacking.append(f"servers: no address is in it: the service answers at {api.host}")
    api.base = parts.path.rstrip("/")
    if isinstance(servers, list) and len(servers) > 1:
        api.lacking.append(f"servers: of {len(servers)} the first is taken")


def _authorised(api: Api, data: dict[str, Any], schemas: Schemas) -> bool:
    """Notes where credentials stand. Returns True if an operation needs none unless it says so."""
    known = _mapping(_mapping(data.get("components")).get("securitySchemes"))
    for name, of in (_mapping(data.get("securityDefinitions")) | known).items():
        scheme = _mapping(schemas.at(of))
        kind, key = str(scheme.get("type")), str(scheme.get("name"))
        if kind == "mutualTLS":
            api.lacking.append(f"auth: {name}: certificates of clients are not asked for")
            continue
        own = {"query": ("query", key), "cookie": ("header", "cookie"), "header": ("header", key.lower())}
        place = own.get(str(scheme.get("in"))) if kind == "apiKey" else None
        api.auth.append(place or ("header", "authorization"))
        said = f"auth: {name} ({kind}): any credential passes over HTTP, and none is 401; rights are not known"
        api.lacking.append(said)
    needs = data.get("security")
    return not needs or {} in needs


def _operation(schemas: Schemas, template: str, method: str, of: dict[str, Any], shared: list[Any]) -> Operation:
    where = f"{method.upper()} {template}"
    words = re.sub(r"\W+", "_", re.sub(r"\{([^}]*)\}", r"by_\1", template)).strip("_")
    tool = schemas.personal.text(str(of.get("operationId") or f"{method}_{words}"))
    says = str(of.get("summary") or of.get("description") or where)
    made = Operation(tool, schemas.personal.text(" ".join(says.split())), template, method.upper())
    snake = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", tool)).lower()
    made.writes = method not in ("get", "head", "options") and not (method == "post" and READS.match(snake))
    made.idempotent = made.writes and method in ("put", "delete")
    if method == "post" and not made.writes:
        schemas.lacking.append(f"{where}: by its name it only reads: that is guessed")
    parameters = {}
    for each in [*shared, *(of.get("parameters") or ())]:
        each = _mapping(schemas.at(each))
        parameters[str(each.get("in")), str(each.get("name"))] = each
    for name in re.findall(r"\{([^}]*)\}", template):
        parameters.setdefault(("path", name), {"in": "path", "name": name})
    for (place, name), each in parameters.items():
        _parameter(schemas, made, place, name, each)
    if isinstance(body := schemas.at(of.get("requestBody")), dict):
        _body(schemas, made, body)
    _reply(schemas, made, _mapping(of.get("responses")), where)
    if of.get("callbacks"):
        schemas.lacking.append(f"{where}: its callbacks are not made")
    return made


def _parameter(schemas: Schemas, made: Operation, place: str, name: str, of: dict[str, Any]) -> None:
    where = f"{made.method} {made.path}"
    content: list[Any] = [*_mapping(of.get("content")).values(), None]
    given = of.get("schema") or _mapping(content[0]).get("schema")  # Swagger 2 has the schema's keys beside the name
    plain = {k: v for k, v in of.items() if k not in ("in", "name", "required")}
    schema = schemas.whole(given if given is not None else plain, where)
    if "description" in of:
        schema["description"] = schemas.personal.text(str(of["description"]))
    sample = example_of(of)
    shown = sample is not NONE
    sample = schemas.masked(sample, name) if shown else schemas.sample(schema, name, reply=False)
    required = bool(of.get("required")) or place == "path"
    if place == "body":
        _fields(made, schema, sample, required=required, shown=shown)
    elif place in ("path", "query", "formData") or (place == "header" and name.lower() not in LEFT_OUT):
        made.add("body" if place == "formData" else place, name, schema, sample, required=required)
    elif place == "cookie":
        schemas.lacking.append(f"{where}: the cookie {name} is no parameter of the tool")


def _medium(content: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The JSON of several media, else a form, else the first."""
    json_ = [each for each in content if re.match(r"application/(.*\+)?json|\*/\*", each)]
    kind = next(iter([*json_, *(each for each in content if each.startswith(FORMS)), *content]), "")
    return kind, _mapping(content.get(kind))


def _body(schemas: Schemas, made: Operation, body: dict[str, Any]) -> None:
    kind, medium = _medium(_mapping(body.get("content")))
    where = f"{made.method} {made.path}"
    if kind and "json" not in kind and not kind.startswith((*FORMS, "*/*")):
        schemas.lacking.append(f"{where}: its body is {kind[:60]}, which the stand-in does not read")
        return
    schema = schemas.whole(medium.get("schema"), where)
    sample = example_of(medium)
    shown = sample is not NONE
    sample = schemas.masked(sample, "body") if shown else schemas.sample(schema, "body", reply=False)
    _fields(made, schema, sample, required=bool(body.get("required")), shown=shown)


def _fields(made: Operation, schema: dict[str, Any], sample: Any, *, required: bool, shown: bool) -> None:
    """Adds the fields of a body, or the body if it is no object. `shown`: the sample is an example of the document's;
    of another one, what is optional is left out."""
    known = schema.get("properties")
    if not isinstance(known, dict) or not known:
        if schema or sample is not None:
            made.add("body", "", schema, sample, required=required)
        return
    needs, given = set(schema.get("required") or ()), _mapping(sample)
    said = {name for name, of in known.items() if name in needs or example_of(of) is not NONE} or {*known}
    for name, of in known.items():
        if not of.get("readOnly"):
            value = given.get(name) if name in said or shown else None
            made.add("body", name, of, value, required=name in needs)


def _reply(schemas: Schemas, made: Operation, responses: dict[str, Any], where: str) -> None:
    codes = sorted(str(each) for each in responses if re.fullmatch(r"2\d\d|2XX", str(each), re.IGNORECASE))
    code = next(iter([*codes, *(["default"] if "default" in responses else [])]), "")
    of = _mapping(schemas.at(responses.get(code)))
    made.status = int(code) if code.isdigit() else 200
    if of.get("links"):
        schemas.lacking.append(f"{where}: the links of its reply are not followed")
    if not code:
        schemas.lacking.append(f"{where}: no response that is a success is described")
    kind, medium = _medium(_mapping(of.get("content")))
    examples = _mapping(of.get("examples"))
    if "schema" in of:  # Swagger 2
        kind, medium = "application/json", {"schema": of["schema"]}
        if examples:
            medium["example"] = _medium(examples)[1] or next(iter(examples.values()))
    if kind and not re.match(r"application/(.*\+)?json|\*/\*", kind):
        schemas.lacking.append(f"{where}: its reply is {kind[:60]}; the stand-in gives JSON")
    if (given := example_of(medium)) is not NONE:
        made.reply = schemas.masked(given, _drawn(made))
    elif medium:
        made.reply = schemas.sample(schemas.whole(medium.get("schema"), where), _drawn(made), reply=True)


def _drawn(made: Operation) -> str:
    """The name under which the values of an operation's reply are drawn."""
    return made.path.replace(".", "_")
