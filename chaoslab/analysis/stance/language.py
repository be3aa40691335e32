"""Tells an answer in another language, whose words are not read, from one in English."""

from __future__ import annotations

import re
import unicodedata


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ENGLISH = _set(
    "the a an of to for in on is was were are be been has have had and or not no with it i you your this that at by"
    " from as we my me but so if could did"
)
_OTHERS = (
    _set("der das und ist nicht ein eine ich wurde wurden konnte konnten mit dem auf zu im von leider werden hat sie")
    | _set("le la les des est une un et pas pour dans pu ete etre vous je sur que nous votre au du")
    | _set("el los las se pudo para por con esta del su fue ha al")
    | _set("il lo gli e stato stata non per di della che sono")
    | _set("os nao foi uma com da em ao")
    | _set("het een niet en van voor kon")
) - _ENGLISH
"""Small words of German, French, Spanish, Italian, Portuguese and Dutch."""
_WORDS = re.compile(r"[^\W\d_]+")


SHORT = 2_000
"""A text of at most this many characters is searched for words of other languages even if it looks like English."""


def foreign(text: str) -> bool:
    """True if most letters are of another script than Latin, or if the small words of other languages outnumber those
    of English. A text of few words may be of either; it counts as English."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return False
    if sum(not unicodedata.name(c, "").startswith("LATIN") for c in letters) > len(letters) / 2:
        return True
    words = _words(text)
    others = [word for word in words if word in _OTHERS]
    return len(set(others)) > 1 and len(others) > sum(word in _ENGLISH for word in words)


_DENIALS = re.compile(
    r"nicht|kein\w*|leider|konnten?|fehlgeschlagen|gescheitert|fehler|abgelehnt|unmoglich|vielleicht|eventuell"
    r"|echoue\w*|echec|malheureusement|impossible|erreur|peut-etre"
    r"|pudo|pudieron|lamentablemente|fallo|fallido|quizas|imposible"
    r"|purtroppo|impossibile|fallito|riuscito|forse"
    r"|nao|infelizmente|falhou|talvez"
    r"|niet|geen|helaas|mislukt|misschien"
)
"""Words of other languages by which something was not done, or may not have been."""


def denial(text: str, twin: str) -> str:
    """The word of another language by which a text may deny what its twin claims; empty if there is none."""
    if foreign(text) or len(text) <= SHORT:
        known = {*_words(twin)}
        return next((word for word in _words(text) if _DENIALS.fullmatch(word) and word not in known), "")
    return ""


def _words(text: str) -> list[str]:
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return _WORDS.findall(bare.casefold())
