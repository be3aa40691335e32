"""`agent/config.json`: addresses, and the agent's own intervals. It is validated when it is read."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from chaoslab.base import parsers
from chaoslab.base.files import Unreadable, read_json
from chaoslab.base.registry import suggest_name
from chaoslab.config.settings import SettingError, read_variable
from chaoslab.config.topology import SERVICES

FILE = Path(__file__).resolve().with_name("config.json")
Seconds = Annotated[float, Field(gt=0, le=3600)]


def _check_address(text: str) -> str:
    try:
        parsers.parse_url(text)
    except ValueError as error:
        raise ValueError(f"it should be {error}") from None
    return text


def _check_host(text: str) -> str:
    try:
        parsers.parse_host(text.replace("{service}", "service"))
    except ValueError as error:
        raise ValueError(f"it should be {error}") from None
    return text


Host = Annotated[str, AfterValidator(_check_host)]


class RealService(BaseModel):
    """A service that is not the lab's own: its address, and its key or `$NAME` for the environment variable with the
    key."""

    # A misspelt name would pass in silence, and its default be in force.
    model_config = ConfigDict(extra="forbid", frozen=True)
    url: Annotated[str, Field(pattern=r"^https?://[^/\s@]+(/|$)"), AfterValidator(_check_address)]
    key: str = ""

    @property
    def secret(self) -> str:
        return read_variable(self.key[1:]) if self.key.startswith("$") else self.key


class Config(BaseModel):
    """The agent's configuration. `services` replaces a service by a real one; nothing else has to change. The hosts are
    those of the lab's own parts; `{service}` in `tools_host` stands for the service's name, if each has its own host.

    `steps_max`: the most model calls in one attempt at a prompt. `retry_wait_s`: the wait before the first retry of a
    tool, doubled for each further one. A Retry-After is followed up to `retry_after_max_s`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    services: dict[str, RealService] = {}
    tools_host: Host = "127.0.0.1"
    proxy_host: Host = "127.0.0.1"
    manager_host: Host = "127.0.0.1"
    model_host: Host = "127.0.0.1"
    steps_max: Annotated[int, Field(ge=1, le=1000)] = 15
    retry_wait_s: Seconds = 0.1
    retry_after_max_s: Seconds = 5.0
    poll_s: Seconds = 0.001
    progress_s: Seconds = 0.25

    def get_service_host(self, service: str) -> str:
        return self.tools_host.replace("{service}", service)


def describe_first_error(error: ValidationError, *models: type[BaseModel]) -> str:
    """pydantic's first error as one line: the place in the file, and the correct form."""
    errors = error.errors()
    first = next(
        (problem for problem in errors if problem["type"] == "extra_forbidden"), errors[0]
    )  # a misspelt name is also missing
    key_path = ".".join(str(key) for key in first["loc"])
    if first["type"] == "extra_forbidden":
        field_names = {name for model in models for name in model.model_fields}
        return f"{key_path} is not known: {suggest_name(str(first['loc'][-1]), field_names)}"
    return f"{key_path or 'the file'}: {first['msg'].removeprefix('Value error, ')}"


def load_config(path: Path = FILE, **hosts: str | None) -> Config:
    """The configuration in that file, with other hosts (`tools_host="{service}"`) if given. Raises SettingError: one
    line on the error in it."""
    try:
        data = read_json(path)
        if not isinstance(data, dict):
            raise Unreadable("holds no JSON object")
        config = Config.model_validate(data)
    except Unreadable as error:
        raise SettingError(f"{path} {error}; it should be a file like agent/config.json") from None
    except ValidationError as error:
        raise SettingError(f"{path}: {describe_first_error(error, Config, RealService)}") from None
    for name in config.services:
        if name not in SERVICES:
            raise SettingError(f"{path}: services: no service is called '{name}': {suggest_name(name, SERVICES)}")
    return config.model_copy(update={name: host for name, host in hosts.items() if host})
