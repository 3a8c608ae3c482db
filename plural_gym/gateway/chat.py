"""The dialect of OpenAI's chat completions, which most providers and all local servers speak."""

import json
from collections.abc import Mapping
from typing import Any

from plural_gym.gateway.dialect import Garbled
from plural_gym.model import Completion, ModelRequest, ModelUsage, ToolCall


class Chat:
    """`POST {base_url}/chat/completions`."""

    protocol = "openai.chat"
    path = "/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def body(self, request: ModelRequest, model: str, with_schema: bool) -> dict[str, Any]:
        body: dict[str, Any] = {**request.settings, "model": model, "messages": list(request.messages)}
        if request.tools:
            body["tools"] = list(request.tools)
        if with_schema and request.answer_schema is not None:
            schema = {"name": "answer", "strict": True, "schema": request.answer_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def read(self, answer: Any) -> Completion:
        choices = answer.get("choices") if isinstance(answer, Mapping) else None
        if not isinstance(choices, list) or not choices:
            raise Garbled(f"it is no chat completion: {json.dumps(answer)[:200]}")
        choice = choices[0]
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(message, Mapping):
            raise Garbled("its first choice holds no message")
        return Completion(
            text=_text(message.get("content")),
            tool_calls=tuple(map(_tool_call, message.get("tool_calls") or ())),
            finish_reason=_word(choice.get("finish_reason")),
            refusal=_word(message.get("refusal")),
            model=_word(answer.get("model")),
            usage=_usage(answer.get("usage")),
        )


CHAT = Chat()


def _text(content: Any) -> str:
    """A message's text; content in parts is put together."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    if content is None or isinstance(content, str):
        return content or ""
    raise Garbled(f"its message's content is {type(content).__name__}, not text")


def _tool_call(call: Any) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Garbled("one of its tool calls names no function")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {})
    return ToolCall(str(call.get("id") or ""), function["name"], arguments)


def _usage(usage: Any) -> ModelUsage:
    if not isinstance(usage, Mapping):
        return ModelUsage()
    asked, said = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return ModelUsage(
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(asked, "cached_tokens"),
        reasoning_tokens=_count(said, "reasoning_tokens"),
    )


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
