"""The ten tools: each is built from its service's description at `GET /tools`, and called over HTTP. A tool retries,
falls back and reports a failure to the model as a message; nothing here knows of faults."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, create_model

from chaoslab.agent.config import Config
from chaoslab.base.clock import Clock
from chaoslab.base.identity import Request, TrialId, make_request_id
from chaoslab.config.part_version import describe_part_differences
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import SERVICES, Ports
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.core.service_spec import ServiceSpec, ToolSpec, fill_template
from chaoslab.record.log import Log
from chaoslab.seams.http.tags import EXTENSION, ProbeTag, RequestTag, Target, TrialState, get_current_trial_state

TYPES: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
# Statuses after which the same request may succeed (RFC 9110, RFC 6585).
AGAIN = {408, 425, 429, 500, 502, 503, 504}


async def discover_services(client: httpx.AsyncClient, config: Config, ports: Ports) -> dict[str, ServiceSpec]:
    """The description of each service, from its `GET /tools`. Raises SettingError: a service does not answer."""
    services = {}
    for name in SERVICES:
        url = f"http://{config.get_service_host(name)}:{ports.get_service_port(name)}/tools"
        try:
            services[name] = ServiceSpec.from_json((await client.get(url)).raise_for_status().json())
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingError(
                f"{name} does not say what it offers at {url} ({error}): is `chaoslab tools` running?"
            ) from None
    return services


async def check_part_versions(
    client: httpx.AsyncClient, targets: Mapping[str, Target], manager: str, own_digests: Mapping[str, str]
) -> None:
    """Compares the version of each part with the agent's `own_digests` (`part_version.compute_version_digests`). A part
    that tells none is nobody of this lab. Raises SettingError: some differ, as after an edit between two starts; it
    names them."""
    places = {name: target.url for name, target in targets.items() if not target.recorded} | {"proxy manager": manager}

    async def fetch_digests(url: str) -> Mapping[str, str]:
        try:
            digests = (await client.get(f"{url}/health")).json()["digests"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return {}
        return digests if isinstance(digests, dict) else {}

    replies = await asyncio.gather(*map(fetch_digests, places.values()))
    if differing := describe_part_differences(own_digests, dict(zip(places, replies, strict=True))):
        raise SettingError(
            f"the parts of this lab differ, and a run would be of no version: {', '.join(differing)} than the "
            f"agent; start "
            "them anew (in containers: docker compose up --force-recreate)"
        )


@dataclass(frozen=True)
class _Outcome:
    """The result of one attempt. `again`: another attempt may succeed. `wait_s`: the wait that the service asked
    for."""

    text: str
    ok: bool = False
    again: bool = False
    wait_s: float = 0.0


@dataclass(frozen=True)
class Toolbox:
    """A careful client of the tools: all attempts of a call have one request id, each has a deadline, and a fallback
    goes around the proxy.
    """

    client: httpx.AsyncClient
    targets: Mapping[str, Target]
    services: Mapping[str, ServiceSpec]
    config: Config
    settings: Settings
    log: Log
    clock: Clock

    def build_tools(self) -> list[BaseTool]:
        """All tools of all services, for LangChain."""
        return [self._build_tool(service, tool) for service in self.services.values() for tool in service.tools]

    def _build_tool(self, service: ServiceSpec, tool: ToolSpec) -> BaseTool:
        async def run_tool(**arguments: Any) -> str:
            return await self.call_tool(service, tool, arguments)

        return StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=build_schema(tool),
            coroutine=run_tool,
            handle_tool_error=True,
            handle_validation_error=lambda error: f"Error: bad arguments for {tool.name}: {error}",
        )

    async def call_tool(self, service: ServiceSpec, tool: ToolSpec, raw_arguments: Mapping[str, Any]) -> str:
        """The result as text for the model. Raises ToolException: every attempt failed; its message is for the
        model."""
        # Null stands for an optional parameter that is left out.
        arguments = {key: value for key, value in raw_arguments.items() if value is not None}
        try:
            json.dumps(arguments, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ToolException(f"Error: bad arguments for {tool.name}: text with half a surrogate pair") from None
        trial = get_current_trial_state()
        request = trial.requests.find_or_create(service.name, tool.name, arguments, safe=tool.is_safe)

        def make_attempt_ref(attempt: int) -> events.AttemptRef:
            return events.AttemptRef(
                trial=trial.trial.key,
                target=service.name,
                request=request.number,
                attempt=attempt,
                request_id=request.id,
            )

        outcome, resilience = _Outcome(""), self.settings.resilience
        for retries_left in range(resilience["tool_limit"], -1, -1):
            attempt = request.count_attempt()
            outcome = await self._run_call_attempt(service, tool, arguments, request, attempt, trial)
            if outcome.ok or not outcome.again or not retries_left:
                break
            tries = resilience["tool_limit"] - retries_left
            wait_s = min(max(outcome.wait_s, self.config.retry_wait_s * 2**tries), self.config.retry_after_max_s)
            self._log_event(
                trial, events.Retry(at=make_attempt_ref(attempt), tool=tool.name, wait_s=wait_s, reason=outcome.text)
            )
            await self.clock.sleep_async(wait_s)
        # A refusal would be the same around the proxy.
        if not outcome.ok and outcome.again and resilience["fallback"] == "direct":
            attempt = request.count_attempt()
            address = self.targets[service.name].url
            self._log_event(trial, events.Fallback(at=make_attempt_ref(attempt), tool=tool.name, address=address))
            outcome = await self._run_call_attempt(service, tool, arguments, request, attempt, trial, direct=True)
        if not outcome.ok:
            raise ToolException(outcome.text)
        trial.requests.mark_answered(request)
        return outcome.text

    async def _run_call_attempt(
        self,
        service: ServiceSpec,
        tool: ToolSpec,
        arguments: Mapping[str, Any],
        request: Request,
        attempt: int,
        trial: TrialState,
        *,
        direct: bool = False,
    ) -> _Outcome:
        tag = RequestTag(request, attempt, dict(arguments), direct)
        built = self._build_request(service, tool, arguments, trial.trial)
        # The same in each attempt, so that a service can tell a retry from a second order.
        built.headers["Idempotency-Key"] = request.id
        built.extensions[EXTENSION] = tag
        try:
            async with trial.turn:
                response = await self.client.send(built)
        except httpx.HTTPError as error:
            error_text = str(error) or type(error).__name__
            prefix = "" if service.name in error_text else f"{service.name} did not answer: "
            return _Outcome(f"Error: {prefix}{error_text}", again=True)
        reply = Reply(response.status_code, response.headers, response.content)
        if not self.targets[service.name].is_failure(reply):
            return _Outcome(_reply_to_text(reply), ok=True)
        # A spent quota answers 429 as well: this header says that waiting does not help.
        refused = response.headers.get("x-should-retry") == "false"
        status = "" if 200 <= reply.status < 300 else f" {reply.status}"
        strange = reply.unreadable and not status
        defect = " what is not JSON" if strange else ""
        text = f"Error: {service.name} answered{status}{defect}: {_reply_to_text(reply)[:500]}"
        may_retry = (reply.status in AGAIN or strange) and not refused
        return _Outcome(text, again=may_retry, wait_s=_parse_retry_after_s(response))

    def _build_request(
        self, service: ServiceSpec, tool: ToolSpec, arguments: Mapping[str, Any], trial: TrialId
    ) -> httpx.Request:
        """The tool's HTTP request, with the service's key at its place."""
        # What the model filled in is quoted; the rest of the path is the service's own.
        path = "/".join(
            _quote_path_segment(fill_template(segment, arguments)) if segment.startswith("$") else segment
            for segment in tool.path.split("/")
        )
        query = dict(fill_template(tool.query, arguments))
        body = None if tool.body is None else dict(fill_template(tool.body, arguments))
        headers = {"X-Trial": trial.header}
        real = self.config.services.get(service.name)
        if real is not None and real.secret and service.auth:
            holder = {"query": query, "header": headers, "body": body if body is not None else {}}[service.auth["in"]]
            holder[service.auth["name"]] = service.auth.get("prefix", "") + real.secret
        url = self.targets[service.name].url + path
        return self.client.build_request(tool.method, url, params=query or None, json=body, headers=headers)

    def _find_tool(self, name: str) -> tuple[ServiceSpec, ToolSpec]:
        return next((s, t) for s in self.services.values() for t in s.tools if t.name == name)

    def is_tool_of_real_service(self, name: str) -> bool:
        """True if a real service has the tool, whose values may change during a run."""
        return self.targets[self._find_tool(name)[0].name].recorded

    async def fetch_value_past_proxies(self, name: str, arguments: Mapping[str, Any], trial: TrialId) -> Any:
        """The service's real value, asked around every proxy in its own trial: the JSON of the reply, or None."""
        service, tool = self._find_tool(name)
        truth_trial = TrialId(trial.run, trial.prompt, trial.repeat, truth=True)
        request = self._build_request(service, tool, arguments, truth_trial)
        request.headers["Idempotency-Key"] = request_key = make_request_id(truth_trial.header, tool.name, arguments, 1)
        request.extensions[EXTENSION] = ProbeTag(self.settings.tool_timeout_s, service.name, request_key, trial.key)
        try:
            return (await self.client.send(request)).raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return None

    def _log_event(self, trial: TrialState, event: events.Event) -> None:
        self.log.write(event, trial=trial.trial.key)


def build_schema(tool: ToolSpec) -> type[BaseModel]:
    """The tool's JSON schema as a pydantic model, so that invalid arguments become a message and not a call."""
    return _build_schema_model(tool.name, tool.description, json.dumps(tool.parameters))


@cache
def _build_schema_model(tool: str, description: str, parameters: str) -> type[BaseModel]:
    """Made once in a process: ten take 0.2 s, and the check of the prompts and the agent both want them."""
    offered = json.loads(parameters)
    required = set(offered.get("required", ()))
    types: dict[str, Any] = {}
    for name, described in offered["properties"].items():
        kind: Any = TYPES[described.get("type", "string")]
        info = {"description": described.get("description", "")}
        types[name] = (kind, Field(**info)) if name in required else (kind | None, Field(default=None, **info))
    model: type[BaseModel] = create_model(tool, __config__=ConfigDict(extra="forbid"), __doc__=description, **types)
    return model


def _reply_to_text(reply: Reply) -> str:
    if not reply.body:
        return json.dumps({"done": True, "status": reply.status})
    if reply.value is None:
        return reply.body.decode(errors="replace")
    text = json.dumps(reply.value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace").decode()  # a lone surrogate cannot go on to the model


def _quote_path_segment(segment: Any) -> str:
    from urllib.parse import quote

    return quote(str(segment), safe="")


def _parse_retry_after_s(response: httpx.Response) -> float:
    """The Retry-After header in seconds; 0 if it is missing or a date."""
    header = response.headers.get("retry-after", "")
    # isdigit() alone takes “²” and other signs, which float() refuses.
    return float(header) if header.isascii() and header.isdigit() else 0.0
