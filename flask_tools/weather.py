"""Weather in OpenWeather's 2.5 format: a plausible function of a city's place and the day, so the same day gives the
same weather.

The climate is a rule of thumb: the annual mean falls by half a degree per degree of latitude beyond 15°, the seasonal
amplitude is a fifth of a degree per degree of latitude, and named dice of (city, day) add a daily variation.
"""

import math
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import Answer, Refusal, Route, ServiceRequest, fold_text, load_bundled_json

SKIES = (
    # (up to this share of clouds, id, main, description, icon)
    (10, 800, "Clear", "clear sky", "01d"),
    (25, 801, "Clouds", "few clouds", "02d"),
    (50, 802, "Clouds", "scattered clouds", "03d"),
    (84, 803, "Clouds", "broken clouds", "04d"),
    (100, 804, "Clouds", "overcast clouds", "04d"),
)


def make_error_body(status: int, message: str) -> Any:
    # OpenWeather's `cod` is a text in these two errors, and a number in all others.
    return {"cod": str(status) if status in (400, 404) else status, "message": message}


SERVICE = ServiceSpec(
    name="weather",
    tools=(
        ToolSpec(
            name="current_weather",
            description="The current weather in a city: temperature in degrees Celsius, sky, wind, humidity.",
            parameters={
                "type": "object",
                "properties": {"city": {"type": "string", "description": "The city, e.g. Oslo"}},
                "required": ["city"],
            },
            method="GET",
            path="/data/2.5/weather",
            query={"q": "$city", "units": "metric"},
        ),
    ),
    errors={
        401: ErrorReply(401, {"cod": 401, "message": "Invalid API key."}),
        404: ErrorReply(404, {"cod": "404", "message": "city not found"}),
        429: ErrorReply(429, {"cod": 429, "message": "Your account is temporarily blocked."}, {"Retry-After": "1"}),
        500: ErrorReply(500, {"cod": 500, "message": "Internal error"}),
        503: ErrorReply(503, {"cod": 503, "message": "Service unavailable"}),
    },
    auth={"in": "query", "name": "appid", "prefix": ""},
)


def routes() -> tuple[Route, ...]:
    return (Route("GET", "/data/2.5/weather", "current_weather", _report_weather),)


@cache
def _load_cities() -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """All cities, and an index by each of their names."""
    cities: list[dict[str, Any]] = load_bundled_json("cities.json")
    for number, city in enumerate(cities, 1):
        city["id"] = 1_000_000 + number
    return cities, {fold_text(name): city for city in cities for name in (city["name"], *city["aliases"])}


def _find_city(ask: ServiceRequest) -> dict[str, Any]:
    cities, by_name = _load_cities()
    asked = ask.query.get("q", "").strip()
    if asked:
        # "Paris, FR" names the country, "Paris, Texas, US" a state before it.
        name, _, country = asked.partition(",")
        city = by_name.get(fold_text(name))
        code = country.split(",")[-1].strip().upper()
        if city is None or (len(code) == 2 and code != city["country"]):
            raise Refusal(404, make_error_body(404, "city not found"))
        return city
    if "lat" not in ask.query or "lon" not in ask.query:
        raise Refusal(400, make_error_body(400, "Nothing to geocode"))
    lat, lon = _read_coordinate(ask, "lat", 90), _read_coordinate(ask, "lon", 180)

    def compute_distance(city: dict[str, Any]) -> float:
        # The shortest way around the globe.
        east = (city["lon"] - lon + 180) % 360 - 180
        # Degrees of longitude are shorter near the poles.
        return math.hypot(city["lat"] - lat, east * math.cos(math.radians(lat)))

    return min(cities, key=compute_distance)


def _read_coordinate(ask: ServiceRequest, name: str, bound: int) -> float:
    words = {"lat": "latitude", "lon": "longitude"}
    try:
        value = float(ask.query[name])
    except ValueError:
        value = math.nan
    if not -bound <= value <= bound:
        raise Refusal(400, make_error_body(400, f"wrong {words[name]}"))
    return value


def _report_weather(ask: ServiceRequest) -> Answer:
    units = ask.query.get("units", "standard")
    if units not in ("standard", "metric", "imperial"):
        raise Refusal(400, make_error_body(400, "wrong units: they are standard, metric or imperial"))
    city = _find_city(ask)
    local = ask.now + timedelta(seconds=city["timezone"])
    # By the city's own day: its weather does not change at midnight elsewhere.
    dice = Dice("weather", city["name"], local.date().isoformat())
    clouds, humidity, wind = (int(100 * dice("clouds").uniform()), dice("humid").uniform(), dice("wind").uniform())
    celsius = _compute_celsius(city, local) + 7 * (dice("mood").uniform() - 0.5)
    sky: dict[str, Any] = next(
        {"id": number, "main": main, "description": text, "icon": icon}
        for most, number, main, text, icon in SKIES
        if clouds <= most
    )
    if clouds > 70 and dice("rain").uniform() < 0.6:
        sky = {"id": 500, "main": "Rain", "description": "light rain", "icon": "10d"}
        if celsius < 0.5:
            sky = {"id": 600, "main": "Snow", "description": "light snow", "icon": "13d"}
    speed = 0.5 + 9 * wind * wind
    sunrise, sunset = _compute_sun_times(city, local)
    pace = 2.237 if units == "imperial" else 1.0
    # Metres a second are 2.237 miles an hour.
    body = {
        "coord": {"lon": city["lon"], "lat": city["lat"]},
        "weather": [sky],
        "base": "stations",
        "main": {
            "temp": _convert_celsius(units, celsius),
            "feels_like": _convert_celsius(units, celsius - 0.3 * speed),
            "temp_min": _convert_celsius(units, celsius - 1.5),
            "temp_max": _convert_celsius(units, celsius + 1.5),
            "pressure": 1000 + int(28 * dice("pressure").uniform()),
            "humidity": int(35 + 45 * humidity + 0.15 * clouds),
        },
        "visibility": 10000,
        "wind": {
            "speed": round(speed * pace, 2),
            "deg": int(360 * dice("from").uniform()),
            "gust": round(speed * 1.5 * pace, 2),
        },
        "clouds": {"all": clouds},
        "dt": int(ask.now.timestamp()),
        "sys": {"type": 2, "id": city["id"], "country": city["country"], "sunrise": sunrise, "sunset": sunset},
        "timezone": city["timezone"],
        "id": city["id"],
        "name": city["name"],
        "cod": 200,
    }
    return Answer(body)


def _compute_celsius(city: dict[str, Any], local: datetime) -> float:
    """The temperature by place and season, in °C around noon."""
    lat = float(city["lat"])
    mean = 28 - 0.5 * max(0.0, abs(lat) - 15) - 0.006 * float(city["height"])
    # The warmest day: in the north in July, in the south in January.
    day = local.timetuple().tm_yday - (200 if lat >= 0 else 17)
    return mean + 0.2 * abs(lat) * math.cos(2 * math.pi * day / 365.25)


def _convert_celsius(units: str, celsius: float) -> float:
    scales = {"metric": celsius, "imperial": celsius * 9 / 5 + 32, "standard": celsius + 273.15}
    return round(scales[units], 2)


def _compute_sun_times(city: dict[str, Any], local: datetime) -> tuple[int, int]:
    """Sunrise and sunset in seconds since 1970, by the sunrise equation without refraction; a polar day lasts 24 h."""
    tilt = math.radians(-23.44) * math.cos(2 * math.pi * (local.timetuple().tm_yday + 10) / 365.25)
    cosine = -math.tan(math.radians(city["lat"])) * math.tan(tilt)
    # Beyond -1 and 1 the sun does not set, or not rise.
    half_s = math.acos(max(-1.0, min(1.0, cosine))) / math.pi * 43200
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    # Four minutes a degree, from Greenwich.
    noon = midnight + 43200 - city["lon"] * 240
    return int(noon - half_s), int(noon + half_s)
