"""Embeddings of texts, as OpenAI and Cohere give them. Texts that share words have vectors that are near."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from chaoslab.model.completion import tokens
from chaoslab.model.formats.common import Refused

VECTORS = ("/embeddings", "/v2/embed")
"""The ends of the paths that are asked for embeddings."""
_SIZES = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}
SIZE = 1024
"""The numbers of a vector, unless the model or the request states another count."""
SIZE_MAX = 4096


def embedded(path: str, body: Mapping[str, Any]) -> Any:
    """The JSON of the answer.

    Raises:
        Refused: there are no texts.
    """
    of_cohere = path.endswith(VECTORS[1])
    given = body.get("texts" if of_cohere else "input")
    texts = [given] if isinstance(given, str) else given
    model, size = body.get("model"), body.get("output_dimension" if of_cohere else "dimensions")
    if not isinstance(texts, list) or not texts or not isinstance(model, str):
        raise Refused(400, "an embedding needs a model and at least one text")
    said = [text if isinstance(text, str) else str(text) for text in texts]
    count = size if isinstance(size, int) and 0 < size <= SIZE_MAX else _SIZES.get(model, SIZE)
    vectors = [_vector(text, count) for text in said]
    used = tokens(" ".join(said))
    if of_cohere:
        meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": used}}
        told = {"embeddings": {"float": vectors}, "texts": said, "meta": meta}
        return {
            "id": hashlib.blake2s(repr(said).encode()).hexdigest()[:32],
            **told,
            "response_type": "embeddings_by_type",
        }
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": number, "embedding": _packed(vector) if packed else vector}
        for number, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": used, "total_tokens": used}}


def _vector(text: str, size: int) -> list[float]:
    """A vector of length 1 with a part for each word."""
    found = [0.0] * size
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.blake2s(word.encode("utf-8", "surrogatepass")).digest()
        found[int.from_bytes(digest[:4], "big") % size] += 1.0
    length = math.sqrt(sum(part * part for part in found))
    return [round(part / length, 8) for part in found]


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
