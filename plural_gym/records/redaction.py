"""Redaction: takes secret values out of what is about to be kept or said.

Whoever holds a secret makes a Redactor of it and sends every text through, before it becomes a record, a log
line or an error message.
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
_SHORTEST = 6
"""Characters. Shorter values stand in too many texts by chance, and protect nothing."""
_SHORTEST_ENCODED = 8
"""Letters of base64."""


class Redactor:
    """Replaces some secrets by a mark: as they are, in base64, URL-encoded, and escaped as in JSON."""

    __slots__ = ("_pattern",)

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}
        # Longest first: a form that is part of another must not leave the rest of that standing.
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """The text without the secrets."""
        return text if self._pattern is None else self._pattern.sub(MARK, text)

    def value(self, value: Any) -> Any:
        """The same JSON value without the secrets, in keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def _forms(secret: str) -> Iterable[str]:
    """The ways in which a secret may be written."""
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    data = secret.encode()
    for before in range(3):
        # Inside a longer text that was encoded, a secret begins at any of three places in a group of four
        # letters. The letters that its neighbours share in are left out.
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            letters = encode(bytes(before) + data).decode()[first:end]
            if len(letters) >= _SHORTEST_ENCODED:
                yield letters
