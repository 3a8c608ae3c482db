"""Call: one question to one endpoint, until it is answered or given up; and what is recorded of it.

Runs in the pool's loop. A call that was answered is never made again, whatever becomes of the answer.
"""

import asyncio
import json
import secrets
import time
from dataclasses import replace

from plural_gym.errors import MachineError
from plural_gym.gateway.dialect import Garbled
from plural_gym.gateway.exchange import Attempt, Exchange
from plural_gym.gateway.pool import Pool, Reply, Times, Unreached
from plural_gym.gateway.prices import cost_usd
from plural_gym.gateway.providers import OWN, PLURAL, Endpoint
from plural_gym.gateway.retrying import MOST_PATIENCE_S, may_succeed_later, wait_s
from plural_gym.model import Completion, ModelRequest, Purpose, RequestRefused
from plural_gym.records.redaction import Redactor
from plural_gym.records.strict_json import encode, legible

_SHOWN = 300
"""Characters of an endpoint's own words in a message."""
_KEPT = 64 * 1024
"""Characters of an answer that is no answer; of one that is, everything is kept."""


class Call:
    """One call under way. `exchange` is its record, complete once `run` has ended."""

    def __init__(
        self,
        request: ModelRequest,
        endpoint: Endpoint,
        purpose: Purpose,
        verifier: str | None,
        seat: str | None,
        first_wait_s: float,
    ) -> None:
        self._request = request
        self._endpoint = endpoint
        self._first_wait_s = first_wait_s
        self._redactor = Redactor([endpoint.key] if endpoint.key else [])
        self._who = f"model {request.choice.name!r} at {endpoint.base_url}"
        self.exchange = Exchange(
            exchange_id=f"exg_{secrets.token_hex(8)}",
            ts=time.time(),
            purpose=purpose,
            verifier=verifier,
            seat=seat,
            protocol=endpoint.dialect.protocol,
            provider=endpoint.provider,
            base_url=endpoint.base_url,
            model_requested=request.choice.name,
        )

    async def run(self, pool: Pool, schemaless: set[tuple[str, str]]) -> Completion:
        """The completion.

        Args:
            pool: whose loop this runs in.
            schemaless: (url, model) of endpoints that are known to take no JSON Schema; added to.

        Raises:
            MachineError: none came, or none that can be read.
        """
        began = time.monotonic()
        place = (self._endpoint.url, self._endpoint.model)
        with_schema = self._request.answer_schema is not None and place not in schemaless
        try:
            reply = await self._asked(pool, with_schema)
            if with_schema and reply.status in (400, 422):
                # An endpoint that cannot keep a schema says so in words of its own.
                without = await self._asked(pool, False)
                if without.status < 400:
                    schemaless.add(place)
                    reply = without
            return self._heard(reply)
        finally:
            self.exchange.duration_ms = _ms(time.monotonic() - began)

    async def _asked(self, pool: Pool, with_schema: bool) -> Reply:
        """The first reply that is worth no further attempt. Raises MachineError where there is none."""
        endpoint, exchange = self._endpoint, self.exchange
        sent = encode(legible(endpoint.dialect.body(self._request, endpoint.model, with_schema)))
        exchange.request_body = self._redactor.text(sent.decode())
        headers = {"Content-Type": "application/json", **endpoint.dialect.headers(endpoint.key)}
        for number in range(1, self._request.max_attempts + 1):
            attempt, times = Attempt(with_schema=with_schema), Times()
            exchange.attempts.append(attempt)
            reply: Reply | None = None
            again = False
            try:
                reply = await pool.post(endpoint.url, headers, sent, self._request.timeout_s, times)
            except Unreached as error:
                attempt.error, again = self._redactor.text(str(error)), error.again
            finally:
                self._timed(attempt, times)
            if reply is not None:
                exchange.http_status = attempt.http_status = reply.status
                again = may_succeed_later(reply.status)
                if reply.status < 300:
                    return reply
                exchange.response_body = self._words(reply)[:_KEPT]
                attempt.error = f"{reply.status}: {self._complaint(reply)}"
                if not again:
                    return reply
            wait = wait_s(number, reply.headers if reply is not None else {}, self._first_wait_s)
            if not again or number == self._request.max_attempts:
                break
            if wait > MOST_PATIENCE_S:
                attempt.error = f"{attempt.error} (it asks to wait {wait:,.0f} s)"
                break
            attempt.waited_ms = _ms(wait)
            await asyncio.sleep(wait)
        times_tried = "" if number == 1 else f" in {number} attempts"
        raise MachineError(f"{self._who} gave no answer{times_tried}: {attempt.error}.")

    def _timed(self, attempt: Attempt, times: Times) -> None:
        attempt.duration_ms = _ms(times.total)
        self.exchange.queue_ms = round(self.exchange.queue_ms + _ms(times.queue), 3)
        self.exchange.connect_ms = round(self.exchange.connect_ms + _ms(times.connect), 3)
        self.exchange.ttft_ms = None if times.first_byte is None else _ms(times.first_byte)

    def _heard(self, reply: Reply) -> Completion:
        """The completion in a reply, its record filled in. Raises MachineError where there is none."""
        if reply.status >= 300:
            raise self._refused(reply)
        words = self._words(reply)
        self.exchange.response_body = words
        try:
            completion = self._endpoint.dialect.read(legible(json.loads(words)))
        except (Garbled, ValueError, RecursionError) as error:
            self.exchange.response_body = words[:_KEPT]
            why = str(error) if isinstance(error, Garbled) else f"it is no JSON: {words[:_SHOWN]!r}"
            self.exchange.attempts[-1].error = why
            raise MachineError(f"{self._who} answered what cannot be read: {why}.") from None
        return self._priced(completion)

    def _priced(self, completion: Completion) -> Completion:
        exchange, endpoint = self.exchange, self._endpoint
        usage = completion.usage
        if endpoint.provider != OWN:  # what a model is called there says nothing about its price
            provider, model = endpoint.provider, endpoint.model
            if provider == PLURAL:
                provider, _, model = endpoint.model.partition("/")
            usage = replace(usage, cost_usd=cost_usd(provider, model, usage, exchange.ts))
        exchange.status = "ok"
        exchange.model_served, exchange.finish_reason = completion.model, completion.finish_reason
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost_usd"):
            setattr(exchange, name, getattr(usage, name))
        return replace(completion, usage=usage, exchange_id=exchange.exchange_id)

    def _refused(self, reply: Reply) -> MachineError:
        """What a status from 300 means that no further attempt changes."""
        status, said = reply.status, self._complaint(reply)
        if status in (401, 403):
            name = self._endpoint.key_name
            if name is None:
                return MachineError(f"{self._who} wants a key ({status}: {said}); name its variable as auth.")
            return MachineError(f"{self._who} refused the key of {name} ({status}: {said}).")
        if status == 404:
            return MachineError(
                f"{self._who} does not exist there ({status}: {said}); check name and base_url."
            )
        if status < 400:
            where = self._redactor.text(reply.headers.get("location", "elsewhere"))
            return MachineError(f"{self._who} leads to {where} ({status}); give that as base_url.")
        return RequestRefused(f"{self._who} does not take the request ({status}: {said}).", status)

    def _words(self, reply: Reply) -> str:
        """A reply's text, as far as it is text, without the key: a server may say what it was sent."""
        words = self._redactor.text(reply.body.decode("utf-8", "replace"))
        if self._endpoint.key is None:
            return words
        try:
            said = json.loads(words)
            clean = self._redactor.value(said)
        except (ValueError, RecursionError):
            return words
        # JSON can write one letter in several ways, and so a key.
        return words if clean == said else encode(clean).decode()

    def _complaint(self, reply: Reply) -> str:
        """What an endpoint says is wrong, in its own words."""
        words = self._words(reply)
        try:
            said = json.loads(words)
        except (ValueError, RecursionError):
            said = None
        for name in ("error", "message", "detail"):
            if isinstance(said, dict) and name in said:
                said = said[name]
        text = said if isinstance(said, str) else words
        return " ".join(text.split())[:_SHOWN].rstrip(". ") or "without a word"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
