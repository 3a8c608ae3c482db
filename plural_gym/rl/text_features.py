"""Text as numbers by feature hashing: the same numbers in every process and on every machine.

`HashedTextObservation` adds them up over an episode; nothing is learned or stored.
"""

import functools
import re
from hashlib import blake2b
from typing import Any

import numpy as np

_WORDS = re.compile(r'[^\s"{}\[\],:]+')
"""Words are parted by space and by the punctuation of JSON, so that texts and objects both give words."""


@functools.lru_cache(512)
def hashed(text: str, ngrams: tuple[int, ...], places: int) -> tuple[Any, Any]:
    """Return the features of a text: their hashes, an int64 array from 0, and their signs, +1 or -1.

    Features are the runs of `ngrams` words of a line, and once more the words of a line of at most `places`
    words together with their place in it. Lines that short are marks, boards and fields, where the place is
    half of what they say. The arrays are shared: do not change them.
    """
    numbers = []
    for line in text.splitlines():
        words = _WORDS.findall(line)
        for length in ngrams:
            starts = range(len(words) - length + 1)
            numbers += [_hash(" ".join(words[start : start + length])) for start in starts]
        if len(words) <= places:
            numbers += [_hash(f"{place}@{word}") for place, word in enumerate(words)]
    found = np.array(numbers, np.int64)
    return found >> 1, (found & 1) * np.float32(2) - np.float32(1)


@functools.lru_cache(1 << 16)
def _hash(feature: str) -> int:
    digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # within int64
