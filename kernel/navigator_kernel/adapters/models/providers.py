"""Resolves `provider:model` to a URL and a key; both come from the person's settings, never from the project's."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.config.settings import ModelProvider, Models
from navigator_kernel.errors import Damaged, KernelError, NotFound, NotLoadable, UsageProblem
from navigator_kernel.values.chat import PDF, Tooling

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer


SERVICE = "navigator"  # service name of the keys in the system's keyring
EXTRA = "pip install 'navigator-kernel[llm]'"
NEVER = "none"  # sent instead of a key to a service that requires none
# pydantic-ai loses an unclosed `<think>`, and hides one in the middle of a text: the kernel looks for thoughts itself
THOUGHTS = ("<assistant_thinking>", "</assistant_thinking>")

# Servers on this machine, unless the settings say otherwise
LOCAL: Mapping[str, ModelProvider] = {
    "llamacpp": ModelProvider("http://127.0.0.1:8080/v1"),
    "lmstudio": ModelProvider("http://127.0.0.1:1234/v1"),
    "ollama": ModelProvider("http://127.0.0.1:11434/v1", "ollama"),
    "vllm": ModelProvider("http://127.0.0.1:8000/v1", "vllm"),
}
# Well-known hosted providers, for `model list`
HOSTED = ("anthropic", "deepseek", "google", "groq", "mistral", "moonshotai", "openai", "openai-chat", "openrouter")
# Providers whose models accept pictures and PDFs, unless the settings say otherwise
SEEING = frozenset({"anthropic", "google", "google-gla", "google-vertex", "openai", "openai-chat", "openai-responses"})
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Key(NamedTuple):
    """A key and where it was found: `environment`, `keyring`, or nowhere."""

    value: str = ""
    origin: str = ""
    variable: str = ""


def spelled_out(name: str, models: Models) -> tuple[str, str]:
    """The provider and model of `provider:model`, or of an alias for it. UsageProblem if `name` is neither."""
    named = models.aliases.get(name, name)
    provider, _, model = named.partition(":")
    if not provider or not model:
        hint = "say provider:model, such as openai:gpt-5-mini, or an alias of [models.aliases]"
        raise UsageProblem(f"{name!r} names no model", hint=hint)
    return provider, model


def served(provider: str, models: Models) -> ModelProvider | None:
    """The server of a provider's models, if it is in the settings or a known local one; else None."""
    return models.providers.get(provider) or LOCAL.get(provider)


def check_provider(provider: str, models: Models) -> None:
    """Raises UsageProblem for a provider that is neither in the settings nor known otherwise."""
    if served(provider, models) or provider in HOSTED:
        return
    try:
        from pydantic_ai.providers import infer_provider_class
    except ImportError:  # without the extra, the provider cannot be checked
        return
    try:
        infer_provider_class(provider)
    except ImportError:  # the provider is known, but its package is not installed
        return
    except ValueError as error:
        known = ", ".join(sorted({*HOSTED, *LOCAL, *models.providers}))
        hint = f"one of {known}, or a table [models.providers.{provider}] with its url (navigator config path)"
        raise UsageProblem(f"no provider is called {provider!r}", hint=hint) from error


def seen_by(provider: str, models: Models) -> frozenset[str]:
    """The media types of files that the provider's models accept. The models of a server that `served` returns accept
    none without `vision`, and no PDFs if the server is only compatible with OpenAI's."""
    held = served(provider, models)
    sees = provider in SEEING if held is None else bool(held.vision)
    reads = provider in SEEING if held is None else held.kind in SEEING - {"openai"}
    return (PICTURES | {PDF} if reads else PICTURES) if sees else frozenset()


def known_context(provider: str, model: str) -> int:
    """The tokens that fit the context of a hosted model, 0 if nobody says."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:  # without the extra, no model is asked
        return 0
    try:
        found = get_snapshot().find_provider_model(model, None, provider.partition("-")[0], None)[1]
    except LookupError:
        return 0
    return found.context_window or 0


def find_key(provider: str, models: Models) -> Key:
    """Reads the variable that the settings name, or PROVIDER_API_KEY if they name none, else the system's keyring."""
    held = models.providers.get(provider)
    family = provider.removesuffix("-chat").removesuffix("-responses")
    variable = (held.key if held else "") or f"{family.upper().replace('-', '_')}_API_KEY"
    if value := os.environ.get(variable, ""):
        return Key(value, "environment", variable)
    if value := in_keyring(provider):
        return Key(value, "keyring", variable)
    return Key(variable=variable)


def keep_key(provider: str, value: str) -> None:
    """Stores the key in the system's keyring; an empty one removes it. KernelError if no keyring can store it."""
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError, PasswordDeleteError
    except ImportError as error:
        raise NotLoadable("a keyring needs the extra `llm`", hint=EXTRA) from error
    try:
        if value:
            keyring.set_password(SERVICE, provider, value)
        else:
            with suppress(NoKeyringError, PasswordDeleteError):
                keyring.delete_password(SERVICE, provider)
    except KeyringError as error:
        hint = "set the key in the environment instead"
        raise KernelError(f"this system's keyring keeps no key: {type(error).__name__}", hint=hint) from error


def in_keyring(provider: str) -> str:
    """Reads the key from the system's keyring; empty without a key or a keyring."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(SERVICE, provider) or ""
    except (KeyringError, OSError):
        return ""


def wire(provider: str, model: str, models: Models, key: Key, http: Any) -> Any:
    """Makes the library's model for the provider's protocol, over the client `http`. NotFound if a required key is
    missing, NotLoadable if a package is not installed, UsageProblem if the provider is not known."""
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider_class
    except ImportError as error:
        raise NotLoadable("models need the extra `llm`", hint=EXTRA) from error
    held = served(provider, models)
    check_provider(provider, models)
    if not key.value and (held is None or held.key):
        hint = f"export {key.variable}=…, or keep it in the keyring: navigator model key {provider}"
        where = f": {key.variable} is not set" if held else ""
        raise NotFound(f"there is no key for {provider!r}{where}", hint=hint)
    try:
        if held is not None and held.kind == "openai":
            from pydantic_ai.models.openai import OpenAIChatModel

            opened: Any = OpenAIChatModel(model, provider=_service(provider, held, key, http))
        else:
            kind = held.kind if held else provider
            maker, value = infer_provider_class(kind), key.value or NEVER
            given: dict[str, Any] = {"api_key": value, "http_client": http}
            if held is not None and "base_url" in inspect.signature(maker.__init__).parameters:
                given["base_url"] = held.url
            elif held is not None:
                given = {"openai_client": _service(NEVER, held, key, http).client}
            made = maker(**given)
            opened = infer_model(f"{kind}:{model}", provider_factory=lambda _: made)
        opened.profile["thinking_tags"] = THOUGHTS
        client: Any = getattr(opened, "client", None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0
        if type(client).__module__.partition(".")[0] == "openai":
            client.chat.completions = _Completions(client)
        return opened
    except ImportError as error:
        hint = f"pip install 'pydantic-ai-slim[{provider}]'"
        raise NotLoadable(f"the package for {provider!r} is not installed", hint=hint) from error
    except (UserError, ValueError) as error:
        hint = f"check kind in [models.providers.{provider}]: openai, anthropic, or another service's name"
        raise UsageProblem(
            f"provider {provider!r} cannot be used with these settings: {type(error).__name__}", hint=hint
        ) from error


class _Completions:
    """Sends requests as they are. The SDK's own `create` looks for fields with aliases in each message and tool, though
    there are none: 3 ms of CPU for two messages and nine tools, and more with each message."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def create(self, *, stream: bool, **fields: Any) -> Any:
        from openai import AsyncStream, NotGiven, Omit
        from openai.types.chat import ChatCompletion, ChatCompletionChunk

        body = {name: value for name, value in fields.items() if not isinstance(value, NotGiven | Omit)}
        names = {"extra_headers": "headers", "extra_body": "extra_json", "extra_query": "params", "timeout": "timeout"}
        return await self._client.post(
            "/chat/completions",
            options={option: body.pop(name) for name, option in names.items() if name in body},
            body={**body, "stream": stream},
            cast_to=ChatCompletion,
            stream=stream,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )


def _service(provider: str, held: ModelProvider, key: Key, http: Any) -> Any:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(provider, base_url=held.url, api_key=key.value or NEVER, http_client=http)


# How each model uses tools, as found by `navigator model test`, for all projects of the person
HINT = "remove it, and say navigator model test again"


def kept_tooling(file: Path) -> Mapping[str, Tooling]:
    """How models use tools, by `provider:model`. Damaged if the file cannot be read."""
    try:
        held: dict[str, Tooling] = dict(json.loads(file.read_text(encoding="utf-8"))["tools"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{str(file)!r} cannot be read: {error}", hint=HINT) from error
    return held


def keep_tooling(file: Path, writer: Writer, name: str, tooling: Tooling) -> None:
    """Stores how the model `name` uses tools, in place of any earlier result."""
    writer.make_folder(file.parent)
    with file_lock(file.with_suffix(".lock")):
        body = {"v": 1, "tools": {**kept_tooling(file), name: tooling}}
        writer.write(file, json.dumps(body, indent=1, sort_keys=True).encode(), mode=0o600)
