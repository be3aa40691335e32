"""The input of `chaoslab agent`, checked without loading what an agent is made of, which takes seconds."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaoslab.agent import config as configuration
from chaoslab.agent import model, prompts
from chaoslab.agent.config import Config
from chaoslab.base.commandline import print_error
from chaoslab.config import settings
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings


@dataclass(frozen=True)
class AgentInput:
    """The settings and the configuration of a start of the agent, and the prompts of `file`."""

    chosen: Settings
    config: Config
    file: Path
    prompts: list[prompts.Prompt]

    @classmethod
    def read_input(cls, options: argparse.Namespace, hosts: Mapping[str, str | None]) -> AgentInput | None:
        """Reads the input that a command line names. Returns None, after a line that says why, if it is invalid."""
        try:
            chosen = settings.load_settings(options.settings)
            plan_from_settings(chosen)
            file = options.prompts or (Path(chosen.prompts) if chosen.prompts else prompts.FILE)
            loaded_prompts = prompts.load_prompts(file)
            config = configuration.load_config(options.config or configuration.FILE, **hosts)
            # Last, since it asks over the network: what is wrong in the user's files needs no server.
            model.check_model_access(chosen, options.settings)
        except (SettingError, LookupError) as error:
            print_error(error)
            return None
        return cls(chosen, config, file, loaded_prompts)
