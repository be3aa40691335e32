"""Asks a model, as a judge, over HTTP: any server with OpenAI's chat completions. JUDGE_URL, JUDGE_MODEL and JUDGE_KEY
in the environment name it."""

from dataclasses import dataclass

from chaoslab.analysis.opinion import SAID, Unjudged
from chaoslab.analysis.verdict.opinions import Messages
from chaoslab.base import parsers
from chaoslab.base.jsonable import line
from chaoslab.config.settings import inherited
from chaoslab.model.prices import cost_usd

URL, MODEL, KEY = "JUDGE_URL", "JUDGE_MODEL", "JUDGE_KEY"
TIMEOUT_S = 120.0
"""The longest silence of the judge, in seconds."""


@dataclass(frozen=True)
class Words:
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
    def named(cls, who: str, name: str = "") -> "Model":
        """The model of the environment. `who`: who needs it. `name`: in place of JUDGE_MODEL. Raises Unjudged: it is
        not named, or its address is none."""
        environment = inherited()
        given, model = environment.get(URL, ""), name or environment.get(MODEL, "")
        if not given or not model:
            raise Unjudged(f"{who} needs {URL} and {MODEL}, as in {URL}=http://127.0.0.1:11434/v1 {MODEL}=llama3.1")
        try:
            return cls(parsers.url(given), model, environment.get(KEY, ""))
        except ValueError as error:
            raise Unjudged(f"{URL}={given[:60]} should be {error}") from None

    def ask(self, messages: Messages) -> Words:
        """Its reply. Raises Unjudged: there is none."""
        import httpx

        try:
            reply = httpx.post(
                f"{self.url}/chat/completions",
                json={"model": self.name, "temperature": 0, "messages": messages},
                headers={"Authorization": f"Bearer {self.key}"} if self.key else {},
                timeout=TIMEOUT_S,
            )
        except httpx.HTTPError as error:
            raise Unjudged(
                f"the judge at {self.url} cannot be reached: {line(str(error) or type(error).__name__, SAID)}"
            ) from None
        if reply.status_code != 200:
            raise Unjudged(
                f"the judge at {self.url} answered with status {reply.status_code}: {line(reply.text, SAID)}"
            )
        try:
            data = reply.json()
            said = data["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise Unjudged(f"the judge at {self.url} gave no chat completion: {line(reply.text, SAID)}") from None
        if not isinstance(said, str):
            raise Unjudged(f"the judge gave no verdict: {line(str(said), SAID)}")
        used = data.get("usage")
        tokens = [used.get(name) if isinstance(used, dict) else None for name in ("prompt_tokens", "completion_tokens")]
        given, made = (each if type(each) is int and 0 <= each <= 10**12 else None for each in tokens)
        known = given is not None and made is not None
        return Words(said, given, made, cost_usd(self.name, given or 0, made or 0) if known else None)


def ask(messages: Messages) -> tuple[str, str]:
    """The name and the words of the model of the environment, for `judged_by`. Raises Unjudged: there is no reply."""
    model = Model.named("judged_by")
    return model.name, model.ask(messages).text
