"""Translation by the user's own LibreTranslate server, through deep-translator; errors have LibreTranslate's format.

This module closes four gaps of the library. It sets no deadline, so its requests run in a few threads with a bounded
wait. It sends the key in the address, which errors quote, so the text of an error is never passed on. It has public
default addresses, so none is used unless it was given. It passes on neither the server's own messages nor the detected
language, so the reply to `auto` has no `detectedLanguage`.
"""

import importlib.util
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from chaoslab.base.extras import install_line
from chaoslab.config.settings import SettingError, Settings
from chaoslab.flask_tools.service_module import Refusal

DEADLINE_S = 10.0
AT_ONCE_MAX = 8


@dataclass(frozen=True)
class Online:
    """The server at `url`. `deadline_s` bounds all texts of one request together; `key` may be empty."""

    url: str
    key: str = field(default="", repr=False)
    deadline_s: float = DEADLINE_S
    _free: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(AT_ONCE_MAX), repr=False, compare=False
    )

    @classmethod
    def chosen(cls, settings: Settings) -> "Online":
        """The server in the settings. Raises SettingError: there is none in them, or the library is not installed."""
        if not settings.translator_url:
            raise SettingError(
                "TRANSLATOR=online needs TRANSLATOR_URL, the address of a LibreTranslate server like "
                "http://127.0.0.1:5050;"
                " no public one is asked by default"
            )
        if importlib.util.find_spec("deep_translator") is None:
            raise SettingError(f"TRANSLATOR=online needs deep-translator: {install_line('online')}")
        return cls(settings.translator_url, settings.translator_key)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """The texts in the other language. Raises Refusal: the server refused, failed, gave an unusable answer, or did
        not answer in time."""
        # At once: a queue would let requests wait beyond their deadline.
        if not self._free.acquire(blocking=False):
            raise Refusal(
                503, {"error": f"Service unavailable: {AT_ONCE_MAX} translations are being waited for already"}
            )
        answer: Future[list[str]] = Future()
        given_up = threading.Event()

        def ask() -> None:
            try:
                answer.set_result(self._ask(texts, source, target, given_up))
            except Exception as error:  # noqa: BLE001 - the library lets through any error of its server
                answer.set_exception(_refusal(error))
            finally:
                self._free.release()

        # A daemon: a server that never answers must not keep the process.
        threading.Thread(target=ask, daemon=True).start()
        try:
            return answer.result(self.deadline_s)
        except TimeoutError:
            given_up.set()
            late = f"Service unavailable: the translation server did not answer within {self.deadline_s:g} s"
            raise Refusal(503, {"error": late}) from None

    def _ask(self, texts: Sequence[str], source: str, target: str, given_up: threading.Event) -> list[str]:
        from deep_translator import LibreTranslator

        far = LibreTranslator(source=source, target=target, api_key=self.key or "none", custom_url=f"{self.url}/")
        far.api_key = self.key  # the library requires a key, but sends none that is empty
        translated: list[str] = []
        # One after the other, until nobody waits any more.
        for text in texts:
            if given_up.is_set():
                break
            found = far.translate(text)
            if not isinstance(found, str):
                raise TypeError("not a text")
            translated.append(found)
        return translated


def _refusal(error: Exception) -> Refusal:
    """The failure in LibreTranslate's format, without the error's own text, which may quote the key."""
    import requests
    from deep_translator import exceptions

    if isinstance(error, exceptions.LanguageNotSupportedException):
        return Refusal(400, {"error": f"{str(error.val)[:40]} is not supported"})
    if isinstance(error, exceptions.AuthorizationException):
        return Refusal(403, {"error": "Invalid API key"})
    if isinstance(error, exceptions.ServerException):
        # The library's class tells the status by its words alone.
        statuses = {word: status for status, word in error.errors.items()}
        return _refused(statuses.get(str(error), 500))
    if isinstance(error, requests.ConnectionError):
        return Refusal(503, {"error": "Service unavailable: no answer from the translation server at TRANSLATOR_URL"})
    return Refusal(500, {"error": "Cannot translate text: the translation server's answer makes no sense"})


def _refused(status: int) -> Refusal:
    """The refusal for the server's status. A status that means a wrong address is a failure of the service."""
    words = {
        400: "Invalid request: the translation server refuses it",
        401: "Invalid API key",
        413: "Invalid request: the text is too long for the translation server",
        429: "Slowdown: the translation server asks for fewer requests",
        503: "Service unavailable: the translation server says so",
    }
    if status in words:
        return Refusal(status, {"error": words[status]})
    return Refusal(500, {"error": f"Cannot translate text: the translation server failed ({status})"})
