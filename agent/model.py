"""A check of the model before the run: it answers, accepts the key and knows the name. The check bypasses every proxy
and uses no tokens."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import httpx

from chaoslab.base.registry import suggest_name
from chaoslab.base.secrets import printed
from chaoslab.config.settings import GROQ_URL, SettingError, Settings, find_value_origin

ANSWER_S = 10.0


def check_model_access(chosen: Settings, given: Iterable[str] = ()) -> None:
    """Checks a model that is not the lab's own; the lab's accepts any key and any name. `given`: the command line, to
    name in an error.

    A server that has no list of models, or is busy, passes: the prompts will show.

    Raises:
        SettingError: the server does not answer, refuses the key, or does not know the model.
    """
    given = tuple(given)
    url = chosen.model_url or (GROQ_URL if chosen.groq_api_key else "")
    if not url:
        return
    key = chosen.groq_api_key
    # Before the first request, whose errors may be printed.
    printed.add_secrets((key,))
    with httpx.Client(
        timeout=ANSWER_S,
        trust_env=False,
        # With trust_env=False, httpx would not look at SSL_CERT_FILE, by which a user adds an authority.
        verify=httpx.create_ssl_context(),
        headers={"Authorization": f"Bearer {key or 'offline'}"},
    ) as client:
        models = f"{url}/openai/v1/models"
        try:
            # Names such as openai/gpt-oss-20b have a slash of their own.
            reply = client.get(f"{models}/{quote(chosen.model_name, safe='/')}")
            refused = _read_reply_error(reply)
            reason = str(refused.get("message") or reply.reason_phrase)[:200]
            if reply.status_code in (401, 403):
                blamed = (
                    f"GROQ_API_KEY ({find_value_origin('GROQ_API_KEY', given)}) is refused by"
                    if key
                    else "GROQ_API_KEY is needed by"
                )
                raise SettingError(
                    f"{blamed} {url} ({reply.status_code}: {reason}): give a key that it knows, "
                    "or leave both GROQ_API_KEY and MODEL_URL empty for the offline model"
                )
            # A server that has no such page answers 404 too, but without this code.
            if reply.status_code == 404 and refused.get("code") == "model_not_found":
                hint = suggest_name(chosen.model_name, _read_model_names(client.get(models)))
                raise SettingError(
                    f"MODEL={chosen.model_name} ({find_value_origin('MODEL', given)}) is not known at {url}: {hint}"
                )
        except httpx.HTTPError as error:
            where = find_value_origin("MODEL_URL", given) if chosen.model_url else "Groq's own, for there is a key"
            raise SettingError(
                f"MODEL_URL={url} ({where}) does not answer ({error or type(error).__name__}): "
                "it should be the address of an OpenAI-compatible server, without /openai/v1"
            ) from None


def _read_reply_error(reply: httpx.Response) -> dict[str, Any]:
    """The error object of a failed reply, in the form of Groq and OpenAI; empty if there is none."""
    try:
        error = reply.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {"message": error}


def _read_model_names(reply: httpx.Response) -> list[str]:
    try:
        return [str(model["id"]) for model in reply.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []
