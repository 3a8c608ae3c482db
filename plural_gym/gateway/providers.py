"""Providers: from a ModelChoice to the address, the key and the dialect that serve it.

Keys come from the environment, by name. They live in an Endpoint for the length of a call, in no record, log
or message.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from plural_gym.errors import CredentialMissing, DefinitionError, UnknownName, UsageError, suggest
from plural_gym.gateway.chat import CHAT
from plural_gym.gateway.dialect import Dialect
from plural_gym.model import NO_KEY, ModelChoice, wrong_choice

PLURAL_URL, PLURAL_KEY = "PLURAL_API_URL", "PLURAL_API_KEY"
PLURAL, OWN = "plural", "own"
"""As a provider: the Plural gateway, and an endpoint of one's own."""


class Provider(NamedTuple):
    """Who serves models, and under which name its key is kept."""

    base_url: str
    key: str
    """The variable that holds it."""


PROVIDERS = {
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "google": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "x-ai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
}
"""Those that speak chat completions. `provider/model`: the model's name goes there without the provider's."""

_UNSPOKEN = {"anthropic": "Messages"}
"""Providers whose own dialect is not spoken here yet."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one model is asked."""

    provider: str
    """A provider's name, PLURAL or OWN."""
    base_url: str
    model: str
    """What the endpoint calls it."""
    key_name: str | None
    """The variable that the key came from; None: none is sent."""
    key: str | None = field(repr=False)
    dialect: Dialect = CHAT

    @property
    def url(self) -> str:
        """Where a completion is asked for."""
        return self.base_url.rstrip("/") + self.dialect.path


def resolve(choice: ModelChoice, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """The Endpoint that serves a model.

    An own `base_url` comes first; then, where both its variables are set, the Plural gateway, unless `auth`
    says otherwise; then the provider that the model's name begins with.

    Raises:
        UnknownName: no such provider.
        UsageError: the name has no provider in it, or its dialect is not spoken here.
        CredentialMissing: the key's variable is not set; says which.
        DefinitionError: the choice contradicts itself.
    """
    wrong = wrong_choice(choice)
    if wrong is not None:
        raise DefinitionError(f"model {choice.name!r}: {wrong}.")
    if choice.base_url is not None:
        return _endpoint(OWN, choice.base_url, choice.name, choice.auth, choice, environ)
    if choice.auth is None and environ.get(PLURAL_URL):
        plural = ModelChoice(choice.name, environ[PLURAL_URL].strip())
        wrong = wrong_choice(plural)
        if wrong is not None:
            raise UsageError(f"{PLURAL_URL}: {wrong.replace('base_url', 'it')}.")
        return _endpoint(PLURAL, plural.base_url or "", choice.name, PLURAL_KEY, choice, environ)
    name, _, model = choice.name.partition("/")
    if not model:
        raise UsageError(
            f"model {choice.name!r} names no provider; write 'openai/{choice.name}' or the like, "
            "or give base_url."
        )
    if name in _UNSPOKEN:
        raise UsageError(
            f"model {choice.name!r}: {name}'s own {_UNSPOKEN[name]} dialect is not spoken here yet; give the "
            "base_url of an OpenAI-compatible endpoint that serves it."
        )
    if name not in PROVIDERS:
        raise UnknownName(
            f"model {choice.name!r}: there is no provider {name!r}; {suggest(name, PROVIDERS)} "
            "Or give base_url."
        )
    provider = PROVIDERS[name]
    return _endpoint(name, provider.base_url, model, choice.auth or provider.key, choice, environ)


def _endpoint(
    provider: str,
    base_url: str,
    model: str,
    variable: str | None,
    choice: ModelChoice,
    environ: Mapping[str, str],
) -> Endpoint:
    if variable is None or variable == NO_KEY:
        return Endpoint(provider, base_url, model, None, None)
    key = environ.get(variable, "").strip()
    if not key:
        raise CredentialMissing(
            f"model {choice.name!r} needs a key: set the variable {variable}, as in `export {variable}=...`. "
            "For an endpoint that takes none, give its base_url with auth: none."
        )
    if not (key.isascii() and key.isprintable()):
        raise CredentialMissing(
            f"the variable {variable} holds characters that no key has; set it to the key alone."
        )
    return Endpoint(provider, base_url, model, variable, key)
