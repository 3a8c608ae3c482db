"""Wrappers that let other libraries learn in a GymEnv, each loaded on first use."""

import importlib
from typing import Any

_HOMES = {
    "BytesObservation": "bytes_text",
    "CallStyle": "call_style",
    "DiscreteActions": "discrete_actions",
    "HashedTextObservation": "hashed_text",
    "JsonAction": "json_action",
    "MaskInObservation": "mask_in_observation",
    "RecordLedger": "record_ledger",
    "TokenObservation": "tokens",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
