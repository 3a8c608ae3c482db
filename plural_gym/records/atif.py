"""A Trial's trajectory in ATIF, the Agent Trajectory Interchange Format that trainers and viewers read.

Holds what the Agent was told and saw, and what it did; never a reward, a score or State.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from plural_gym.records.strict_json import encode

VERSION = "ATIF-v1.7"
FAILED = "the action failed"
"""All that is told of an App's own failure."""


def trajectory(
    trial_id: str,
    agent: Mapping[str, Any],
    instructions: str,
    steps: Iterable[Mapping[str, Any]],
    answer: Any,
    totals: Mapping[str, Any],
    failed_turn: int | None = None,
) -> dict[str, Any]:
    """The document, from the lines of `steps.jsonl`.

    Args:
        agent: name, version and model of the Agent.
        steps: every line, the opening one included.
        totals: prompt_tokens, completion_tokens and cost_usd; None where nobody reported.
        failed_turn: the step at which an App failed. The Agent was told that it did; why, which the record
            says, may print State.
    """
    told: dict[str, Any] = {"step_id": 1, "source": "user", "message": instructions}
    entries = [told]
    for line in steps:
        if line["kind"] == "reset":
            told["timestamp"] = _timestamp(line["ts"])
            if line["observation"] is not None:
                told["message"] = f"{instructions}\n\n{_text(line['observation'])}".strip()
            continue
        call = f"call_{line['turn']}"
        error = FAILED if line["turn"] == failed_turn else line["error"]
        seen = {"error": error} if error is not None else line["observation"]
        entries.append(
            {
                "step_id": len(entries) + 1,
                "timestamp": _timestamp(line["ts"]),
                "source": "agent",
                "message": "",
                "tool_calls": [
                    {
                        "tool_call_id": call,
                        "function_name": line["action"],
                        "arguments": line["arguments"] or {},
                    }
                ],
                "observation": {"results": [{"source_call_id": call, "content": _text(seen)}]},
            }
        )
    if answer is not None:
        entries.append({"step_id": len(entries) + 1, "source": "agent", "message": _text(answer)})
    return {
        "schema_version": VERSION,
        "session_id": trial_id,
        "agent": {"name": agent["name"], "version": agent["version"], "model_name": agent["model"]},
        "steps": entries,
        "final_metrics": {
            "total_prompt_tokens": totals.get("prompt_tokens"),
            "total_completion_tokens": totals.get("completion_tokens"),
            "total_cost_usd": totals.get("cost_usd"),
            "total_steps": len(entries),
        },
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
