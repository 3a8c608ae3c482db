"""From a model's name to the endpoint that serves it, and to the name of the key that it needs."""

import pytest

from plural_gym.errors import CredentialMissing, DefinitionError, UnknownName, UsageError
from plural_gym.gateway.providers import PROVIDERS, resolve
from plural_gym.model import ModelChoice

KEYS = {"OPENAI_API_KEY": "sk-openai", "GROQ_API_KEY": "gsk", "MINE": "own"}


def test_a_provider_is_named_in_front_of_the_model() -> None:
    found = resolve(ModelChoice("openai/gpt-5.6-luna"), KEYS)
    assert (found.provider, found.model, found.key) == ("openai", "gpt-5.6-luna", "sk-openai")
    assert found.url == "https://api.openai.com/v1/chat/completions"
    nested = resolve(ModelChoice("groq/meta-llama/llama-4"), KEYS)
    assert (nested.model, nested.key_name) == ("meta-llama/llama-4", "GROQ_API_KEY")


def test_an_own_endpoint_gets_the_name_as_it_is_and_no_key_unasked() -> None:
    found = resolve(ModelChoice("openai/gpt-oss", "http://localhost:8000/v1/"), KEYS)
    assert (found.provider, found.model, found.key) == ("own", "openai/gpt-oss", None)
    assert found.url == "http://localhost:8000/v1/chat/completions"
    assert resolve(ModelChoice("m", "http://localhost:8000/v1", "MINE"), KEYS).key == "own"


def test_the_plural_gateway_serves_every_model_where_both_its_variables_are_set() -> None:
    environ = {**KEYS, "PLURAL_API_URL": "https://gateway.example/v1", "PLURAL_API_KEY": "plk"}
    found = resolve(ModelChoice("openai/gpt-5.6-luna"), environ)
    assert (found.provider, found.model, found.key) == ("plural", "openai/gpt-5.6-luna", "plk")
    assert found.url == "https://gateway.example/v1/chat/completions"
    assert resolve(ModelChoice("m", "http://localhost/v1"), environ).provider == "own"
    assert resolve(ModelChoice("openai/m", auth="MINE"), environ).provider == "openai"
    assert resolve(ModelChoice("anthropic/claude"), environ).provider == "plural"
    with pytest.raises(CredentialMissing, match="set the variable PLURAL_API_KEY"):
        resolve(ModelChoice("openai/m"), {"PLURAL_API_URL": "https://gateway.example/v1"})
    with pytest.raises(UsageError, match="PLURAL_API_URL: it 'gateway' is no address"):
        resolve(ModelChoice("openai/m"), {"PLURAL_API_URL": "gateway", "PLURAL_API_KEY": "plk"})


@pytest.mark.parametrize(
    ("choice", "error", "said"),
    [
        (ModelChoice("opnai/m"), UnknownName, "there is no provider 'opnai'; did you mean 'openai'?"),
        (ModelChoice("m"), UsageError, "names no provider; write 'openai/m' or the like, or give base_url"),
        (
            ModelChoice("anthropic/claude"),
            UsageError,
            "anthropic's own Messages dialect is not spoken here yet",
        ),
        (ModelChoice("mistral/m"), CredentialMissing, "set the variable MISTRAL_API_KEY, as in `export MIS"),
        (ModelChoice("openai/m", auth="NOT_SET"), CredentialMissing, "set the variable NOT_SET"),
        (ModelChoice("m", "http://h/v1", "sk-a-key"), DefinitionError, "the name of the variable that holds"),
        (ModelChoice("m", "ftp://h/v1"), DefinitionError, "base_url 'ftp://h/v1' is no address"),
        (ModelChoice("m", "http://"), DefinitionError, "is no address"),
        (ModelChoice("m", "http://h:port/v1"), DefinitionError, "base_url cannot be read"),
        (ModelChoice("m", "http://me:secret@h/v1"), DefinitionError, "base_url holds a password"),
        (ModelChoice("m", "http://h/v1?key=secret"), DefinitionError, "base_url holds a password, query"),
    ],
)
def test_what_cannot_be_served_is_told(choice: ModelChoice, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        resolve(choice, KEYS)
    assert said in str(raised.value)
    assert "secret" not in str(raised.value) and "sk-a-key" not in str(raised.value)


def test_a_key_that_is_none_is_told_without_it() -> None:
    for wrong in ("two\nlines", "smart “quotes”"):
        with pytest.raises(CredentialMissing, match="OPENAI_API_KEY holds characters") as raised:
            resolve(ModelChoice("openai/m"), {"OPENAI_API_KEY": wrong})
        assert wrong not in str(raised.value)
    assert resolve(ModelChoice("openai/m"), {"OPENAI_API_KEY": " sk \n"}).key == "sk"


def test_an_endpoint_does_not_show_its_key() -> None:
    assert "sk-openai" not in repr(resolve(ModelChoice("openai/m"), KEYS))


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_every_provider_is_reached_over_tls(name: str) -> None:
    found = resolve(ModelChoice(f"{name}/m"), {PROVIDERS[name].key: "k-long-enough"})
    assert found.url.startswith("https://") and found.url.endswith("/chat/completions")
