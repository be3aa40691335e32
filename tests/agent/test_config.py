"""`agent/config.json`: a service pointed at the real one, its key kept out of the file, every slip said in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from chaoslab.agent.assembly import make_model_target, make_service_target, parse_host_port
from chaoslab.agent.config import Config, load_config
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import Ports
from chaoslab.core.service_spec import ServiceSpec

REAL = {"url": "https://api.openweathermap.org", "key": "$WEATHER_KEY"}


def written(folder: Path, data: Any) -> Path:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_the_shipped_file_holds_the_defaults() -> None:
    assert load_config() == Config()


def test_a_service_is_pointed_elsewhere_and_nothing_else_changes(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, {"services": {"weather": REAL}}))
    ports, chosen = Ports(24000), Settings()
    weather, movies = (
        make_service_target(ServiceSpec(name, (), {}), config, ports, chosen) for name in ("weather", "movies")
    )
    assert weather.url == "https://api.openweathermap.org"
    assert weather.lane == ("127.0.0.1", ports.get_proxy_port("weather"))
    assert parse_host_port(weather.url) == "api.openweathermap.org:443"
    assert movies.url == f"http://127.0.0.1:{ports.get_service_port('movies')}"
    assert parse_host_port(movies.url) == f"127.0.0.1:{ports.get_service_port('movies')}"


@pytest.mark.parametrize(
    ("chosen", "url"),
    [
        (Settings(), "http://127.0.0.1:24007"),
        (Settings(groq_api_key="gsk_1"), "https://api.groq.com"),
        (Settings(groq_api_key="gsk_1", model_url="http://127.0.0.1:9"), "http://127.0.0.1:9"),
    ],
)
def test_the_model_is_where_the_settings_say(chosen: Settings, url: str) -> None:
    target = make_model_target(Config(), Ports(24000), chosen)
    assert target.url == url
    assert target.deadline_s == chosen.model_timeout_s


def test_a_key_is_read_from_the_environment_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(written(tmp_path, {"services": {"weather": REAL}}))
    assert config.services["weather"].secret == ""
    monkeypatch.setenv("WEATHER_KEY", "abc")
    assert config.services["weather"].secret == "abc"
    assert "abc" not in repr(config)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"steps_max": 0}, "steps_max: Input should be greater than or equal to 1"),
        ({"step_max": 3}, "step_max is not known: did you mean 'steps_max'?"),
        ({"services": {"wether": REAL}}, "services: no service is called 'wether': did you mean 'weather'"),
        (
            {"services": {"weather": {"url": "https://me:secret@weather.example"}}},
            "services.weather.url: String should",
        ),
        ({"services": {"weather": {"url": "weather.example"}}}, "services.weather.url: String should match pattern"),
    ],
)
def test_a_slip_is_said_in_one_line(tmp_path: Path, data: Any, complaint: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(SettingError) as error:
        load_config(path)
    assert str(error.value).startswith(f"{path}: {complaint}")
    assert "\n" not in str(error.value)
