"""The version of a running part of the lab: digests of its sources and of the settings that services read.

Each part tells its version at its /health, and the agent asks all of them before a run. A list that parts write
themselves into when they start would be old where one is started again.
"""

import hashlib
from collections.abc import Mapping

from chaoslab.config.settings import OF_SERVICES, Settings
from chaoslab.record.provenance import ABSENT, PACKAGE, digest_package

SOURCES = (PACKAGE, "flask_tools")
"""The packages that several parts run: the twins of the agent's prompts are made by the services' own code."""
OF_RUN = "NOW"
"""The setting that each run tells the services itself."""
SETTINGS = "settings"


def compute_version_digests(chosen: Settings) -> dict[str, str]:
    """The digests of this process, by package, and of its settings."""
    values = chosen.to_environment()
    settings_text = "\n".join(f"{name}={values[name]}" for name in OF_SERVICES if name != OF_RUN)
    of_settings = hashlib.blake2b(settings_text.encode(), digest_size=6).hexdigest()
    return {name: digest_package(name) for name in SOURCES} | {SETTINGS: of_settings}


def describe_part_differences(own_digest: Mapping[str, str], parts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The parts that differ from `own_digest`, as in "weather has other sources". A package that one side lacks is no
    difference, since each container holds only what it runs."""
    lines = []
    for part_name, stated in parts.items():
        other_digest = [
            name
            for name in own_digest
            if ABSENT not in (own_digest[name], stated.get(name, ABSENT)) and stated[name] != own_digest[name]
        ]
        differing = ["sources"] if any(name != SETTINGS for name in other_digest) else []
        differing += [SETTINGS] if SETTINGS in other_digest else []
        lines += [f"{part_name} has other {' and '.join(differing)}"] if differing else []
    return lines
