"""Asks a model, as a judge, over HTTP: any server with OpenAI's chat completions. JUDGE_URL, JUDGE_MODEL and JUDGE_KEY
in the environment name it."""

from dataclasses import dataclass

from chaoslab.analysis.opinion import SHOWN_MAX, Unjudged
from chaoslab.analysis.verdict.opinions import Messages
from chaoslab.base import parsers
from chaoslab.base.jsonable import to_one_line
from chaoslab.config.settings import copy_environment
from chaoslab.model.prices import compute_cost_usd

URL, MODEL, KEY = "JUDGE_URL", "JUDGE_MODEL", "JUDGE_KEY"
TIMEOUT_S = 120.0
"""The longest silence of the judge, in seconds."""


@dataclass(frozen=True)
class ModelReply:
    """A model's reply. `tokens_in`, `tokens_out`, `cost_usd`: None if they are unknown."""

    text: str
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None


@dataclass(frozen=True)
class Model:
    """A model that can be asked."""

    url: str
    name: str
    key: str = ""

    @classmethod
    def from_environment(cls, who: str) -> "Model":
        """The model of the environment. `who`: who needs it. Raises Unjudged: it is not named, or its address is
        none."""
        environment = copy_environment()
        address, model = environment.get(URL, ""), environment.get(MODEL, "")
        if not address or not model:
            raise Unjudged(f"{who} needs {URL} and {MODEL}, as in {URL}=http://127.0.0.1:11434/v1 {MODEL}=llama3.1")
        try:
            return cls(parsers.parse_url(address), model, environment.get(KEY, ""))
        except ValueError as error:
            raise Unjudged(f"{URL}={address[:60]} should be {error}") from None

    def ask(self, messages: Messages) -> ModelReply:
        """Its reply. Raises Unjudged: there is none."""
        # Loaded here: only a judge needs it, and its import takes a while.
        import httpx

        try:
            reply = httpx.post(
                f"{self.url}/chat/completions",
                # Temperature 0: the same answer should be judged alike in each run.
                json={"model": self.name, "temperature": 0, "messages": messages},
                headers={"Authorization": f"Bearer {self.key}"} if self.key else {},
                timeout=TIMEOUT_S,
            )
        except httpx.HTTPError as error:
            raise Unjudged(
                f"the judge at {self.url} cannot be reached: "
                f"{to_one_line(str(error) or type(error).__name__, SHOWN_MAX)}"
            ) from None
        if reply.status_code != 200:
            raise Unjudged(
                f"the judge at {self.url} answered with status {reply.status_code}: "
                f"{to_one_line(reply.text, SHOWN_MAX)}"
            )
        try:
            data = reply.json()
            text = data["choices"][0]["message"]["content"]
        # RecursionError: json raises it for text that is only nested deeply enough.
        except (ValueError, LookupError, TypeError, RecursionError):
            raise Unjudged(
                f"the judge at {self.url} gave no chat completion: {to_one_line(reply.text, SHOWN_MAX)}"
            ) from None
        if not isinstance(text, str):
            raise Unjudged(f"the judge gave no verdict: {to_one_line(str(text), SHOWN_MAX)}")
        usage = data.get("usage")
        tokens = [
            usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")
        ]
        # type(), since isinstance takes true for an int; bounded, since a server may state any number, and it is summed
        # up.
        tokens_in, tokens_out = (count if type(count) is int and 0 <= count <= 10**12 else None for count in tokens)
        is_known = tokens_in is not None and tokens_out is not None
        return ModelReply(
            text,
            tokens_in,
            tokens_out,
            compute_cost_usd(self.name, tokens_in or 0, tokens_out or 0) if is_known else None,
        )


def ask_judge_model(messages: Messages) -> tuple[str, str]:
    """The name and the words of the model of the environment, for `judged_by`. Raises Unjudged: there is no reply."""
    model = Model.from_environment("judged_by")
    return model.name, model.ask(messages).text
