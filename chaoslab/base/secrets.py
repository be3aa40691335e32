"""Masks credentials in what is written down or printed.

A value in a credential place is a secret: a header, a field of a query or of a body whose name is one of
`is_secret_name`, a
cookie, a name and password before an address's host. So is a token of a known form. Each is masked where it stands, and
wherever it comes again, as it is, in percent encoding, in base64 and as JSON, also where only its beginning was kept.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

MASK = "***"
LEAST = 8
"""The fewest characters of a secret, or of its beginning in a text that was cut, that are looked for elsewhere. Fewer
may stand in any text."""
PART_LEAST = 16
"""The fewest characters of a line of a secret that is looked for by itself."""
_PLAIN_LINE = re.compile(r"\s|-----")
ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "sharedkey",
    "accountkey",
    "subscriptionkey",
    "functionskey",
    "applicationkey",
    "signingkey",
    "encryptionkey",
    "authkey",
    "licensekey",
    "clientkey",
    "sessionkey",
    "signature",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "cookies",
    "jwt",
    "otp",
    "sessionid",
    "assertion",
    "codeverifier",
    "connectionstring",
)
"""A name is one of a secret if it ends so, in small letters and without the signs between its words."""
WHOLE = frozenset({"auth", "pin", "pass", "bearer", "sig", "sid"})
"""Names of secrets that are so as a whole."""
OUTSIDE = WHOLE | {"key", "session"}
"""The same for headers and for fields of a query or a form: in a body they may be anything."""
SPARED = frozenset({"nexttoken", "pagetoken", "nextpagetoken", "continuationtoken", "synctoken", "stoptoken"})
"""Names that end like those of secrets and are none."""
_HINTS = (
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "signature",
    '"sig',
    "sig=",
    "auth",
    "cred",
    "cookie",
    "jwt",
    "otp",
    "sess",
    '"sid',
    "sid=",
    '"pin',
    "pin=",
    "assertion",
    "verifier",
    "connection",
    "bearer",
    "basic ",
    "://",
)
_KIND = "[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?"
_AWS = r"(?:[^A-Za-z0-9]{1,6}(?:[A-Za-z_]{1,30}[^A-Za-z0-9]{1,6})?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?"
"""The secret that follows its access key, which has no form of its own."""
_FORMS = {
    "sk-": r"sk-[A-Za-z0-9_-]{16,}",
    "sk_": r"sk_(?:live|test)_[A-Za-z0-9]{10,}",
    "rk_": r"rk_(?:live|test)_[A-Za-z0-9]{10,}",
    "gsk_": r"gsk_[A-Za-z0-9]{20,}",
    "gh": r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    "glpat-": r"glpat-[A-Za-z0-9_-]{16,}",
    "AKIA": rf"AKIA[0-9A-Z]{{16}}{_AWS}",
    "ASIA": rf"ASIA[0-9A-Z]{{16}}{_AWS}",
    "AIza": r"AIza[0-9A-Za-z_-]{30,}",
    "ya29.": r"ya29\.[0-9A-Za-z_-]{16,}",
    "xox": r"xox[abeoprs][.-][A-Za-z0-9.-]{10,}",
    "xapp-": r"xapp-[A-Za-z0-9-]{10,}",
    "whsec_": r"whsec_[A-Za-z0-9+/=_-]{16,}",
    ":AA": r"(?:bot)?[0-9]{6,12}:AA[A-Za-z0-9_-]{30,}",
    "SK": r"SK[0-9a-f]{32}(?![0-9a-f])",
    "eyJ": r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
    "hf_": r"hf_[A-Za-z0-9]{20,}",
    "npm_": r"npm_[A-Za-z0-9]{20,}",
    "pypi-": r"pypi-[A-Za-z0-9_-]{20,}",
    "SG.": r"SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    # A key that was cut off counts to the end of its text.
    "-----BEGIN": rf"-----BEGIN {_KIND}-----[^\"'…]*?(?:-----END {_KIND}-----|(?=\\*[\"']|…|\Z))",
}
"""Tokens of known forms, by their beginning."""
# Not in the middle of a word: "task-" has sk- in it.
_TOKEN = {head: re.compile(rf"(?<![A-Za-z0-9_])(?:{form})") for head, form in _FORMS.items()}
# JSON within JSON has backslashes before its quotes, more of them the deeper it lies.
_NAME = re.compile(r'(\\*)"([^"\\]{2,64})\1"\s*:\s*')
_ASSIGNED = re.compile(r"([A-Za-z][\w.-]{1,63})=([^\s&;,\"'\\<>#]+)")
_STATED = re.compile(r"([A-Za-z][\w.-]{1,63})(\s?[:=]\s{0,2})(?=[^\s\"'\\<>]*\d)([^\s&;,\"'\\<>#*]{8,})")
"""A setting in words, as in "password: hunter22". A word without a digit may be anything."""
# With a digit or a =, since "Bearer authentication" is no secret.
_SCHEME = re.compile(r"\b(?:Bearer|Basic)\s+(?=[^\s]*[\d=])([A-Za-z0-9._~+/=-]{6,})", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@?#\s\"'\\<>]+@")
_NUMBER, _TEXT = re.compile(r"-?\d[\d.]*"), re.compile(r'(\\*)"')
_SIGNS = re.compile(r"[^a-z0-9]+")
SEARCHED_MAX = 64 * 1024
"""The most bytes of a body in which secrets are looked for."""
_NO_TEXT = ("image/", "audio/", "video/", "font/", "application/octet-stream", "application/pdf", "application/zip")
_ENDS = ('"', "\\", "…", "...", "*")
"""The mark behind the beginning of a secret that was cut."""
_names: dict[str, frozenset[str]] = {"given": frozenset(), "added": frozenset(), "spared": frozenset()}


def _normalize_name(name: str) -> str:
    # Headers of somebody's own begin with X-, and a second key has a number behind its name.
    return _SIGNS.sub("", name.lower()).rstrip("0123456789").removeprefix("x")


def set_secret_names(names: Iterable[str]) -> None:
    """Adds names of secrets for this process; a name after a minus is spared."""
    listed = [*names]
    if _names["given"] == frozenset(listed):
        return
    _names["given"] = frozenset(listed)
    _names["added"] = frozenset(_normalize_name(name) for name in listed if not name.startswith("-"))
    _names["spared"] = frozenset(_normalize_name(name) for name in listed if name.startswith("-"))
    is_secret_name.cache_clear()
    # What had no sign of a secret by the earlier names may have one now.
    _plain_texts.clear()
    _plain_names.clear()
    _long[0] = ""


@lru_cache(maxsize=4096)
def is_secret_name(name: str, *, body: bool = False) -> bool:
    """True if a value of this name is a secret. `body`: it is a field of a body, and none of a query or a header."""
    bare = _normalize_name(name)
    if bare in _names["added"]:
        return True
    if bare in SPARED or bare in _names["spared"]:
        return False
    return bare.endswith(ENDINGS) or bare in (WHOLE if body else OUTSIDE)


def find_secrets_in_headers(fields: Iterable[tuple[str, str]]) -> set[str]:
    """The secrets in the headers of a request or a reply: the whole value, without the words before it, each cookie,
    and the password of a decoded Basic one."""
    secrets: set[str] = set()
    for name, value in fields:
        if not is_secret_name(name):
            continue
        scheme, _, rest = value.partition(" ")
        bare = _normalize_name(name)
        if bare.endswith("cookie"):
            pairs = [piece.partition("=")[2].strip().strip('"') for piece in value.split(";")]
            # Behind the first pair of Set-Cookie stand its attributes, such as Path.
            secrets.update(pairs[:1] if bare.startswith("set") else pairs)
            continue
        secrets.update((rest or value, value.rpartition(" ")[2]))
        secrets.update(assigned_value for key, assigned_value in _ASSIGNED.findall(rest) if is_secret_name(key))
        if scheme.lower() == "basic":
            try:
                pair = base64.b64decode(rest).decode()
            except (ValueError, binascii.Error):
                continue
            secrets.update((pair, pair.partition(":")[2]))
    return {value for value in secrets if len(value) >= LEAST}


def find_secrets_in_query(query: str) -> set[str]:
    """The secrets in a query."""
    return {value for name, value in parse_qsl(query) if len(value) >= LEAST and is_secret_name(name)}


def find_secrets_in_body(kind: str, body: bytes) -> set[str]:
    """The secrets in the first `SEARCHED_MAX` bytes of a body, of which a log shows less. `kind`: its Content-Type."""
    text = "" if kind.lower().startswith(_NO_TEXT) else body[:SEARCHED_MAX].decode("utf-8", "replace")
    masker = Masker()
    if not has_no_secret((text,)):
        masker.mask(text)
    return masker.known


_plain_texts: set[str] = set()
"""Texts without any sign of a secret: most texts of a log recur."""
_plain_names: set[Any] = set()
"""The same of names of fields, which are no names of secrets either."""
_TEXTS_MAX, _TEXT_MAX = 8192, 2048
_SPEAKING = frozenset({str, dict, list, tuple})
"""The types of JSON values that hold texts."""
_long = [""]
"""The last longer one: an effect repeats the text of its request."""


def has_no_secret(values: Iterable[Any]) -> bool:
    """True if there is no sign of a secret in JSON values: `Masker.mask` would change nothing in their texts."""
    for value in filter(None, values):
        kind = type(value)
        if kind not in _SPEAKING:
            continue
        if kind is str:
            if value not in _plain_texts and value is not _long[0] and not _has_no_secret_hint(value):
                return False
        elif kind is dict:
            if not _plain_names.issuperset(value) and not _has_no_secret_names(value):
                return False
            if not has_no_secret(value.values()):
                return False
        elif not has_no_secret(value):
            return False
    return True


def _has_no_secret_names(names: Iterable[Any]) -> bool:
    """True if there is no sign of a secret in the names of fields of a body."""
    if not has_no_secret(names) or any(is_secret_name(str(name), body=True) for name in names):
        return False
    if len(_plain_names) >= _TEXTS_MAX:
        _plain_names.clear()
    _plain_names.update(name for name in names if len(str(name)) <= _TEXT_MAX)
    return True


def _has_no_secret_hint(text: str) -> bool:
    low = text.lower()
    if _has_name_hint(low) or any(map(text.__contains__, _TOKEN)):
        return False
    if len(text) <= _TEXT_MAX:
        if len(_plain_texts) >= _TEXTS_MAX:
            _plain_texts.clear()
        _plain_texts.add(text)
    else:
        _long[0] = text
    return True


def _has_name_hint(low: str) -> bool:
    """True if a text in small letters may hold the name of a secret."""
    if any(map(low.__contains__, _HINTS)):
        return True
    # An added name may be spelled x-shop-badge, X_SHOP_BADGE or shopBadge: its letters alone are looked for.
    squeezed = _SIGNS.sub("", low) if _names["added"] else ""
    return any(map(squeezed.__contains__, _names["added"]))


class Masker:
    """Masks the secrets that it knows and those that it finds, which it knows from then on."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.known: set[str] = set()
        self._spelt: dict[str, list[str]] = {}
        """The spellings of all secrets, by their beginnings."""
        self.add_secrets(secrets)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Masks these too from now on."""
        candidates = [*secrets]
        candidates += (line for secret in candidates for line in _split_lines(secret))
        new = {
            secret for secret in candidates if len(secret) >= LEAST and secret not in self.known and secret.strip("*")
        }
        if new:
            self.known |= new
            spelt = {head: [*spellings] for head, spellings in self._spelt.items()}
            # Sorted, since a set's order differs from process to process.
            for secret in sorted(new):
                for spelling in _list_spellings(secret):
                    spelt.setdefault(spelling[:LEAST], []).append(spelling)
            self._spelt = spelt  # at once: another thread may be masking

    def mask(self, text: str) -> str:
        """The text, which may be JSON, without its secrets."""
        low = text.lower()
        if _has_name_hint(low):
            text = self._mask_secrets_by_context(text)
        for head, form in _TOKEN.items():
            # The beginning first: to look for a text takes far less time than a pattern.
            if head in text:
                text = form.sub(self._mask_token, text)
        return self.mask_known(text)

    def mask_known(self, text: str) -> str:
        """The text without the secrets that are known."""
        for head, spellings in self._spelt.items():
            if head in text:
                text = _mask_spellings(text, head, spellings)
        return text

    def _mask_token(self, match: re.Match[str]) -> str:
        self.add_secrets((match[0],))
        return MASK

    def _mask_url_user(self, match: re.Match[str]) -> str:
        pair = unquote(match[0][:-1])
        self.add_secrets((match[0][:-1], pair, pair.partition(":")[2]))
        return f"{MASK}@"

    def _mask_assigned_secret(self, match: re.Match[str]) -> str:
        if not is_secret_name(match[1]):
            return match[0]
        self.add_secrets((match[2], unquote(match[2])))
        return f"{match[1]}={MASK}"

    def _mask_named_secret(self, match: re.Match[str]) -> str:
        if not is_secret_name(match[1], body=True):
            return match[0]
        self.add_secrets((match[3],))
        return f"{match[1]}{match[2]}{MASK}"

    def _mask_authorization(self, match: re.Match[str]) -> str:
        self.add_secrets(find_secrets_in_headers([("authorization", match[0])]))
        return match[0][: match.start(1) - match.start()] + MASK

    def _mask_secrets_by_context(self, text: str) -> str:
        pieces, position = list[str](), 0
        for match in _NAME.finditer(text):
            if match.start() < position or not is_secret_name(match[2], body=True):
                continue
            for begin, end in _find_value_spans(text, match.end(), match[1]):
                value = text[begin:end]
                if value and value != MASK:
                    self.add_secrets(_list_decoded_values(value, match[1]))
                    # In the place of a number the mask needs quotes, or the text would be no JSON any more.
                    number = _NUMBER.fullmatch(value) and text[begin - 1] != '"'
                    pieces += (text[position:begin], f'{match[1]}"{MASK}{match[1]}"' if number else MASK)
                    position = end
        text = "".join([*pieces, text[position:]])
        if "://" in text:
            text = _USER.sub(self._mask_url_user, text)
        if "=" in text:
            text = _ASSIGNED.sub(self._mask_assigned_secret, text)
        if ":" in text or "=" in text:
            text = _STATED.sub(self._mask_named_secret, text)
        return _SCHEME.sub(self._mask_authorization, text)


def _split_lines(secret: str) -> list[str]:
    """The lines of a secret that has several, however their ends are spelt: a part of it may come alone. A line of
    words may be any."""
    lines = [line.strip() for line in re.split(r"(?:\\+[nr]|[\r\n])+", secret)]
    long = (line for line in lines if len(line) >= PART_LEAST and not _PLAIN_LINE.search(line))
    return [*long] if len(lines) > 1 else []


def _find_value_spans(text: str, begin: int, level: str) -> list[tuple[int, int]]:
    """The places of the values behind a name: one text or number, or those of a list. `level`: the backslashes before
    each quote."""
    quoted = f'{level}"'
    if text.startswith("[", begin):
        end = text.find("]", begin)
        end, spans, begin = len(text) if end < 0 else end, list[tuple[int, int]](), begin + 1
        while (begin := text.find(quoted, begin, end)) >= 0:
            spans.append((begin + len(quoted), last := _find_text_end(text, begin + len(quoted), level)))
            begin = last + len(quoted)
        return spans
    if text.startswith(quoted, begin):
        begin += len(quoted)
        return [(begin, _find_text_end(text, begin, level))]
    number = _NUMBER.match(text, begin)
    return [number.span()] if number else []


def _find_text_end(text: str, begin: int, level: str) -> int:
    """The end of a JSON text that begins here: before a quote with as many backslashes, or else the text's own."""
    for match in _TEXT.finditer(text, begin):
        many = len(match[1])
        if many == len(level) or many < len(level) or (many - len(level)) % (2 * len(level) + 2) == 0:
            return match.end() - 1 - min(many, len(level))
    return len(text)


def _list_decoded_values(value: str, level: str) -> set[str]:
    """A value as it stands in JSON, and what it means. `level`: as in `_find_value_spans`."""
    # 0, 1, 3, 7 and so on backslashes stand before a quote at each further level of JSON in JSON.
    readings, depth = {value}, len(level).bit_length() + 1
    try:
        for _ in range(depth):
            value = json.loads(f'"{value}"')
            readings.add(value)
    except ValueError:
        pass
    return {*readings, *map(unquote, readings)}


def _list_spellings(secret: str) -> list[str]:
    """The spellings of a secret in a line of a log: as it is, in percent encoding, in base64 at each place, and as JSON
    in JSON."""
    data = secret.encode("utf-8", "surrogatepass")
    spellings = [secret, quote(data, safe=""), quote(data), quote_plus(data), quote(data, safe="").lower()]
    # Base64 takes three bytes at a time, so a secret within a text may begin at any of three places.
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode()
        # Without the signs at its edges, which hold bits of its neighbours too.
        inner = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        spellings += (inner, inner.replace("+", "-").replace("/", "_"))
    for spell in (_escape_json, _escape_ascii_json):
        once = spell(secret)
        spellings += (once, spell(once), spell(spell(once)))
    return [spelling for spelling in dict.fromkeys(spellings) if len(spelling) >= LEAST]


def _escape_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _escape_ascii_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _mask_spellings(text: str, head: str, spellings: Sequence[str]) -> str:
    """The text without these spellings, which begin alike, and without the beginning of one that was cut: a word that
    begins as one does stays. So does the name of a field."""
    pieces, position, start = list[str](), 0, text.find(head)
    while start >= 0:
        end = max(_find_match_end(text, start, spelt) for spelt in spellings)
        is_whole = any(text.startswith(spelt, start) for spelt in spellings)
        # Letters alone may begin an ordinary word, which is told by what comes after.
        cut = not head.isalpha() or end == len(text) or text.startswith(_ENDS, end)
        if (is_whole or cut) and not (text.startswith('":', end) and text[start - 1 : start] == '"'):
            pieces += (text[position:start], MASK)
            position = end
        start = text.find(head, max(end, start + 1))
    return "".join([*pieces, text[position:]]) if pieces else text


def _find_match_end(text: str, start: int, spelt: str) -> int:
    """The end of what a text has of a spelling from this place on."""
    if text.startswith(spelt, start):
        return start + len(spelt)
    end = start + LEAST
    while end < len(text) and end - start < len(spelt) and text[end] == spelt[end - start]:
        end += 1
    return end


printed = Masker()
"""The masker of all that this process prints."""
