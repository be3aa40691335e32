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
from chaoslab.agent.prompts import Prompt, prompts_to_json, validate_facts_and_effects
from chaoslab.agent.tools import Toolbox, build_schema
from chaoslab.config.settings import GROQ_URL, Settings
from chaoslab.config.topology import MODEL, Ports
from chaoslab.core.events import RunStarted
from chaoslab.core.plan import Plan
from chaoslab.core.service_spec import ServiceSpec
from chaoslab.model.endpoint import ERRORS, INSUFFICIENT_QUOTA
from chaoslab.record.provenance import collect_versions
from chaoslab.seams.http.tags import Target


def make_targets(
    services: Mapping[str, ServiceSpec], config: Config, ports: Ports, chosen: Settings
) -> dict[str, Target]:
    """The agent's targets, by name."""
    targets_by_name = {name: make_service_target(service, config, ports, chosen) for name, service in services.items()}
    return {**targets_by_name, MODEL: make_model_target(config, ports, chosen)}


def make_service_target(service: ServiceSpec, config: Config, ports: Ports, chosen: Settings) -> Target:
    """The target of a service: the real one if it is configured, else the lab's own."""
    real = config.services.get(service.name)
    url = (
        real.url.rstrip("/")
        if real
        else f"http://{config.get_service_host(service.name)}:{ports.get_service_port(service.name)}"
    )
    lane = (config.proxy_host, ports.get_proxy_port(service.name))
    return Target(
        service.name, url, lane, chosen.tool_timeout_s, service.errors, service.failed_if, recorded=real is not None
    )


def make_model_target(config: Config, ports: Ports, chosen: Settings) -> Target:
    stand_in = GROQ_URL if chosen.groq_api_key else f"http://{config.model_host}:{ports.get_service_port(MODEL)}"
    errors = {**ERRORS, 402: INSUFFICIENT_QUOTA}
    lane = (config.proxy_host, ports.get_proxy_port(MODEL))
    recorded = bool(chosen.groq_api_key or chosen.model_url)
    return Target(MODEL, chosen.model_url or stand_in, lane, chosen.model_timeout_s, errors, recorded=recorded)


def parse_host_port(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def check_prompts(prompts: Sequence[Prompt], file: Path, services: Iterable[ServiceSpec]) -> None:
    """Raises SettingError if a prompt states something that these services can neither tell nor do."""
    tools = [tool for service in services for tool in service.tools]
    schemas = {tool.name: build_schema(tool) for tool in tools}
    validate_facts_and_effects(prompts, file, tools=schemas, effects=[tool.effect for tool in tools if tool.effect])


def make_run_start_event(chosen: Settings, plan: Plan, prompts: Sequence[Prompt], trials: int, now: str) -> RunStarted:
    """The first event of a run, which is enough to replay it."""
    return RunStarted(
        seed=chosen.seed,
        settings=chosen.to_masked_dict(),
        plan=plan.to_json(),
        prompts=trials,
        now=now,
        model=chosen.model_name,
        world=chosen.world,
        asked=prompts_to_json(prompts),
        code=collect_versions(),
    )


def build_agent(chosen: Settings, url: str, client: httpx.AsyncClient, toolbox: Toolbox) -> Any:
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
        streaming=chosen.is_streaming,
        # The seam's: the model's calls are exchanges as those of the tools are.
        http_async_client=client,
        http_client=httpx.Client(transport=httpx.BaseTransport()),  # else Groq's own, which reads certificates, 20 ms
    )
    return create_agent(model, toolbox.build_tools())
