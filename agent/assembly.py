"""Assembles the agent, the same in every world: the targets, and the graph that calls them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import groq  # noqa: F401 - ChatGroq would load it in every process that is a copy of this one
import httpx
from langchain.agents import create_agent
from langchain_groq import ChatGroq
from pydantic import SecretStr

from chaoslab.agent.config import Config
from chaoslab.agent.prompts import Prompt, as_data, check_stated
from chaoslab.agent.tools import Toolbox, schema
from chaoslab.config.settings import GROQ_URL, Settings
from chaoslab.config.topology import MODEL, Ports
from chaoslab.core.events import RunStarted
from chaoslab.core.plan import Plan
from chaoslab.core.service_spec import ServiceSpec
from chaoslab.model.endpoint import ERRORS, INSUFFICIENT_QUOTA
from chaoslab.record.provenance import code
from chaoslab.seams.http.tags import Target


def targets(services: Mapping[str, ServiceSpec], config: Config, ports: Ports, chosen: Settings) -> dict[str, Target]:
    """The agent's targets, by name."""
    targets_by_name = {name: of_service(service, config, ports, chosen) for name, service in services.items()}
    return {**targets_by_name, MODEL: of_model(config, ports, chosen)}


def of_service(service: ServiceSpec, config: Config, ports: Ports, chosen: Settings) -> Target:
    """The target of a service: the real one if it is configured, else the lab's own."""
    real = config.services.get(service.name)
    url = real.url.rstrip("/") if real else f"http://{config.host_of(service.name)}:{ports.service(service.name)}"
    lane = (config.proxy_host, ports.proxy(service.name))
    recorded = real is not None or (service.name == "translator" and chosen.translator == "online")
    return Target(service.name, url, lane, chosen.tool_timeout_s, service.errors, service.failed_if, recorded=recorded)


def of_model(config: Config, ports: Ports, chosen: Settings) -> Target:
    stand_in = GROQ_URL if chosen.groq_api_key else f"http://{config.model_host}:{ports.service(MODEL)}"
    errors = {**ERRORS, 402: INSUFFICIENT_QUOTA}
    lane = (config.proxy_host, ports.proxy(MODEL))
    recorded = bool(chosen.groq_api_key or chosen.model_url)
    return Target(MODEL, chosen.model_url or stand_in, lane, chosen.model_timeout_s, errors, recorded=recorded)


def upstream(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def check(prompts: Sequence[Prompt], file: Path, services: Iterable[ServiceSpec]) -> None:
    """Raises SettingError if a prompt states something that these services can neither tell nor do."""
    tools = [tool for service in services for tool in service.tools]
    schemas = {tool.name: schema(tool) for tool in tools}
    check_stated(prompts, file, tools=schemas, effects=[tool.effect for tool in tools if tool.effect])


def started(chosen: Settings, plan: Plan, prompts: Sequence[Prompt], trials: int, now: str) -> RunStarted:
    """The first event of a run, which is enough to replay it."""
    return RunStarted(
        seed=chosen.seed, settings=chosen.shown(), plan=plan.to_json(), prompts=trials, now=now,
        model=chosen.model_name, world=chosen.world, asked=as_data(prompts), code=code(),
    )  # fmt: skip


def graph(chosen: Settings, url: str, client: httpx.AsyncClient, toolbox: Toolbox) -> Any:
    """The agent itself: LangChain's, with Groq's own SDK."""
    # Replies in another form than Groq's are handled where they are read; pydantic's warnings about them are not for
    # the terminal.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    model = ChatGroq(
        model=chosen.model_name,
        api_key=SecretStr(chosen.groq_api_key or "offline"),
        base_url=url,
        # A paid model should say the same again as nearly as it can.
        temperature=0,
        streaming=chosen.streams,
        # The seam's: the model's calls are exchanges as those of the tools are.
        http_async_client=client,
        http_client=httpx.Client(transport=httpx.BaseTransport()),  # else Groq's own, which reads certificates, 20 ms
    )
    return create_agent(model, toolbox.tools())
