"""Reads the operations of a service from its OpenAPI document: 3.0, 3.1 or Swagger 2, as JSON or YAML."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chaoslab.base.dice import Dice
from chaoslab.base.files import Unreadable, load_text, parse_json
from chaoslab.scenarios import located
from chaoslab.scenarios.agent_tools import READS
from chaoslab.surfaces.projects import PersonalDataMasker
from chaoslab.surfaces.schemas._operations import Api, Operation, classify_http_operations
from chaoslab.surfaces.schemas._samples import NONE, Schemas, find_example

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
VALUES_MAX = 500_000
"""The most values of a document in YAML."""
LEFT_OUT = ("accept", "content-type", "authorization")
"""Headers that OpenAPI itself says are no parameters."""
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def read_document(path: Path) -> dict[str, Any]:
    """The document of a file. Raises ValueError: it is none; the line names the file."""
    try:
        text = load_text(path)
        # JSON is YAML too, and its own parser is far faster.
        data = parse_json(text) if text.lstrip()[:1] == "{" else None
    except Unreadable as error:
        raise ValueError(f"{path} {error}") from None
    if data is None:
        # A YAML of few bytes may unfold into any number of values.
        data = located.parse_located_data(text, str(path), values_max=VALUES_MAX).data
    if not isinstance(data, dict) or not str(data.get("openapi") or data.get("swagger")).startswith(("2", "3")):
        raise ValueError(f"{path}: it is no OpenAPI document: `openapi: 3.x` or `swagger: '2.0'` is not in it")
    if not isinstance(data.get("paths"), dict) or not data["paths"]:
        raise ValueError(f"{path}: it has no paths, so there is nothing to call")
    return data


def read_api(path: Path, *, personal: PersonalDataMasker, seed: int) -> Api:
    """The service of a document. `seed`: of the values that are drawn. Raises ValueError: it cannot be used; the line
    names the file."""
    data = read_document(path)
    schemas = Schemas(data, str(path), personal, Dice(seed))
    info = _mapping_or_empty(data.get("info"))
    api = Api(personal.mask_text(str(info.get("title") or path.stem)), "service.test", "http", lacking=schemas.lacking)
    _read_address(api, data)
    open_ = _read_auth(api, data, schemas)
    location = "paths"
    try:
        for template, item in data["paths"].items():
            item = _mapping_or_empty(schemas.resolve_reference(item))
            for method in METHODS:
                location = f"{method.upper()} {template}"
                if isinstance(operation_data := item.get(method), dict):
                    operation = _read_operation(
                        schemas, str(template), method, operation_data, item.get("parameters") or []
                    )
                    operation.open = (
                        open_
                        if "security" not in operation_data
                        else not operation_data["security"] or {} in operation_data["security"]
                    )
                    api.operations.append(operation)
        location = "its collections"
        classify_http_operations(api.operations)
        api.add_collections()
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{path}: {location}: not as OpenAPI has it ({error})") from None
    if not api.operations:
        raise ValueError(f"{path}: its paths have no operations, such as get or post")
    for key in ("webhooks", "x-webhooks"):
        if data.get(key):
            api.lacking.append(f"{key}: the fake calls nobody")
    return api


def _mapping_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_address(api: Api, data: dict[str, Any]) -> None:
    servers = data.get("servers")
    first = _mapping_or_empty(servers[0]) if isinstance(servers, list) and servers else {}
    url = str(first.get("url") or f"//{data.get('host') or ''}{data.get('basePath') or ''}")
    for name, variable in _mapping_or_empty(first.get("variables")).items():
        url = url.replace(f"{{{name}}}", str(_mapping_or_empty(variable).get("default")))
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


def _read_auth(api: Api, data: dict[str, Any], schemas: Schemas) -> bool:
    """Notes where credentials stand. Returns True if an operation needs none unless it says so."""
    schemes = _mapping_or_empty(_mapping_or_empty(data.get("components")).get("securitySchemes"))
    for name, scheme_data in (_mapping_or_empty(data.get("securityDefinitions")) | schemes).items():
        scheme = _mapping_or_empty(schemas.resolve_reference(scheme_data))
        kind, key = str(scheme.get("type")), str(scheme.get("name"))
        if kind == "mutualTLS":
            api.lacking.append(f"auth: {name}: certificates of clients are not asked for")
            continue
        places = {"query": ("query", key), "cookie": ("header", "cookie"), "header": ("header", key.lower())}
        location = places.get(str(scheme.get("in"))) if kind == "apiKey" else None
        api.auth.append(location or ("header", "authorization"))
        note = f"auth: {name} ({kind}): any credential passes over HTTP, and none is 401; rights are not known"
        api.lacking.append(note)
    needs = data.get("security")
    return not needs or {} in needs


def _read_operation(
    schemas: Schemas, template: str, method: str, operation_data: dict[str, Any], shared: list[Any]
) -> Operation:
    location = f"{method.upper()} {template}"
    path_words = re.sub(r"\W+", "_", re.sub(r"\{([^}]*)\}", r"by_\1", template)).strip("_")
    tool = schemas.personal.mask_text(str(operation_data.get("operationId") or f"{method}_{path_words}"))
    description = str(operation_data.get("summary") or operation_data.get("description") or location)
    operation = Operation(tool, schemas.personal.mask_text(" ".join(description.split())), template, method.upper())
    snake = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", tool)).lower()
    operation.writes = method not in ("get", "head", "options") and not (method == "post" and READS.match(snake))
    operation.idempotent = operation.writes and method in ("put", "delete")
    if method == "post" and not operation.writes:
        schemas.lacking.append(f"{location}: by its name it only reads: that is guessed")
    parameters = {}
    for parameter in [*shared, *(operation_data.get("parameters") or ())]:
        parameter = _mapping_or_empty(schemas.resolve_reference(parameter))
        # By place and name: an operation's own parameter replaces the shared one.
        parameters[str(parameter.get("in")), str(parameter.get("name"))] = parameter
    # Some documents name a parameter in the path alone.
    for name in re.findall(r"\{([^}]*)\}", template):
        parameters.setdefault(("path", name), {"in": "path", "name": name})
    for (parameter_in, name), parameter in parameters.items():
        _add_parameter(schemas, operation, parameter_in, name, parameter)
    if isinstance(body := schemas.resolve_reference(operation_data.get("requestBody")), dict):
        _add_body_parameters(schemas, operation, body)
    _add_reply(schemas, operation, _mapping_or_empty(operation_data.get("responses")), location)
    if operation_data.get("callbacks"):
        schemas.lacking.append(f"{location}: its callbacks are not made")
    return operation


def _add_parameter(
    schemas: Schemas, operation: Operation, parameter_in: str, name: str, parameter: dict[str, Any]
) -> None:
    location = f"{operation.method} {operation.path}"
    content: list[Any] = [*_mapping_or_empty(parameter.get("content")).values(), None]
    given_schema = parameter.get("schema") or _mapping_or_empty(content[0]).get(
        "schema"
    )  # Swagger 2 has the schema's keys beside the name
    plain = {k: v for k, v in parameter.items() if k not in ("in", "name", "required")}
    schema = schemas.flatten_schema(given_schema if given_schema is not None else plain, location)
    if "description" in parameter:
        schema["description"] = schemas.personal.mask_text(str(parameter["description"]))
    sample = find_example(parameter)
    is_example = sample is not NONE
    sample = schemas.mask_example(sample, name) if is_example else schemas.make_sample(schema, name, reply=False)
    required = bool(parameter.get("required")) or parameter_in == "path"
    if parameter_in == "body":
        _add_body_fields(operation, schema, sample, required=required, shown=is_example)
    elif parameter_in in ("path", "query", "formData") or (parameter_in == "header" and name.lower() not in LEFT_OUT):
        operation.add_parameter(
            "body" if parameter_in == "formData" else parameter_in, name, schema, sample, required=required
        )
    elif parameter_in == "cookie":
        schemas.lacking.append(f"{location}: the cookie {name} is no parameter of the tool")


def _choose_media_type(content: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The JSON of several media, else a form, else the first."""
    json_ = [medium_type for medium_type in content if re.match(r"application/(.*\+)?json|\*/\*", medium_type)]
    kind = next(
        iter([*json_, *(medium_type for medium_type in content if medium_type.startswith(FORMS)), *content]), ""
    )
    return kind, _mapping_or_empty(content.get(kind))


def _add_body_parameters(schemas: Schemas, operation: Operation, body: dict[str, Any]) -> None:
    kind, medium = _choose_media_type(_mapping_or_empty(body.get("content")))
    location = f"{operation.method} {operation.path}"
    if kind and "json" not in kind and not kind.startswith((*FORMS, "*/*")):
        schemas.lacking.append(f"{location}: its body is {kind[:60]}, which the fake does not read")
        return
    schema = schemas.flatten_schema(medium.get("schema"), location)
    sample = find_example(medium)
    is_example = sample is not NONE
    sample = schemas.mask_example(sample, "body") if is_example else schemas.make_sample(schema, "body", reply=False)
    _add_body_fields(operation, schema, sample, required=bool(body.get("required")), shown=is_example)


def _add_body_fields(operation: Operation, schema: dict[str, Any], sample: Any, *, required: bool, shown: bool) -> None:
    """Adds the fields of a body, or the body if it is no object. `shown`: the sample is an example of the document's;
    of another one, what is optional is left out."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        if schema or sample is not None:
            operation.add_parameter("body", "", schema, sample, required=required)
        return
    needs, sample_fields = set(schema.get("required") or ()), _mapping_or_empty(sample)
    sampled = {
        name for name, field_schema in properties.items() if name in needs or find_example(field_schema) is not NONE
    } or {*properties}
    for name, field_schema in properties.items():
        if not field_schema.get("readOnly"):
            value = sample_fields.get(name) if name in sampled or shown else None
            operation.add_parameter("body", name, field_schema, value, required=name in needs)


def _add_reply(schemas: Schemas, operation: Operation, responses: dict[str, Any], location: str) -> None:
    codes = sorted(
        str(status_code) for status_code in responses if re.fullmatch(r"2\d\d|2XX", str(status_code), re.IGNORECASE)
    )
    code = next(iter([*codes, *(["default"] if "default" in responses else [])]), "")
    response = _mapping_or_empty(schemas.resolve_reference(responses.get(code)))
    operation.status = int(code) if code.isdigit() else 200
    if response.get("links"):
        schemas.lacking.append(f"{location}: the links of its reply are not followed")
    if not code:
        schemas.lacking.append(f"{location}: no response that is a success is described")
    kind, medium = _choose_media_type(_mapping_or_empty(response.get("content")))
    examples = _mapping_or_empty(response.get("examples"))
    if "schema" in response:  # Swagger 2
        kind, medium = "application/json", {"schema": response["schema"]}
        if examples:
            medium["example"] = _choose_media_type(examples)[1] or next(iter(examples.values()))
    if kind and not re.match(r"application/(.*\+)?json|\*/\*", kind):
        schemas.lacking.append(f"{location}: its reply is {kind[:60]}; the fake gives JSON")
    if (example := find_example(medium)) is not NONE:
        operation.reply = schemas.mask_example(example, _make_reply_dice_name(operation))
    elif medium:
        operation.reply = schemas.make_sample(
            schemas.flatten_schema(medium.get("schema"), location), _make_reply_dice_name(operation), reply=True
        )


def _make_reply_dice_name(operation: Operation) -> str:
    """The name under which the values of an operation's reply are drawn."""
    return operation.path.replace(".", "_")
