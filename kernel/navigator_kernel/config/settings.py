"""Settings and the level of each value: flag > environment > project > user > default."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from msgspec import Struct, field

from navigator_kernel.config.project_root import OWN_SERVERS_FILE, SERVERS_FILE
from navigator_kernel.errors import Damaged, UsageProblem
from navigator_kernel.text import lazy_compile, suggestions
from navigator_kernel.values.chat import Tooling
from navigator_kernel.values.rights import words_in

if TYPE_CHECKING:
    from navigator_kernel.values.mcp import McpServer
    from navigator_kernel.values.route import Boldness

PROJECT_FILE = "navigator.toml"
MOST = 1e9  # largest number in a setting

SHAPES = ("auto", "summary", "detail", "raw", "protocol")  # forms of an answer

# Every setting: allowed words or type; default; one line of help. A project may set only settings that grant nothing.
SCALARS: Mapping[str, tuple[tuple[str | int, ...] | type[float], str | float, str, bool]] = {
    "language": (
        ("auto", "en", "zh"),
        "auto",
        "language of messages; auto: that of the message, or of the locale",
        True,
    ),
    "style": (("auto", "emoji", "ascii"), "auto", "how states are marked; auto follows the terminal's encoding", True),
    "format": (
        SHAPES,
        "auto",
        "how an answer is shown; auto: a sentence on a terminal, elsewhere a model's answer alone or detail; "
        "protocol: with the three sections",
        True,
    ),
    "output.sections": (
        ("compact", "full", "off"),
        "compact",
        "the three sections after an answer on a terminal: a line each, in full, or none",
        True,
    ),
    "timeout": (float, 60.0, "seconds that one step may take", True),
    "encoder": (("auto", "off"), "auto", "auto: choose by words and meaning; off: by words alone", True),
    "index": (
        ("auto", "off"),
        "auto",
        "auto: after a large install at a terminal the index is built in the background; off: when it is first needed",
        True,
    ),
    "router": (
        ("cascade", "local_only", "llm_only"),
        "cascade",
        "cascade: a model chooses only where words and meaning leave doubt; llm_only: always, among 64 skills at most",
        True,
    ),
    "boldness": (
        ("cautious", "balanced", "bold"),
        "balanced",
        "how sure the router must be of a skill to take it without a question; cautious: surer, bold: less sure",
        True,
    ),
    "steps": ((1, 2, 3, 4, 5, 6), 3, "most steps of a workflow; a workflow with more than 3 gets a warning", True),
}
_CHECKED = (
    "allow",
    "models",
    "policy",
    "mcp.servers",
    "search.catalogues",
)  # of the person's file; their readers check more
TABLES: Mapping[str, str] = {
    "models": 'default = "provider:model", fallback, retries, connect, first, idle, turn_seconds, turn_tokens, '
    "turn_cost; user level",
    "models.aliases": 'names for models, such as claude = "provider:model" (X-32); user level only',
    "models.providers": "your own services: url, kind (openai …), key, tools (native, schema or none), vision "
    "(true or false); user level",
    "hosts": "git hosts that may be asked with your own keys and credentials: auth = true; user level only",
    "policy": "deny = [what no skill may do here], the same for one skill in policy.skills.NAME, and in policy.direct "
    "for messages without one; fetch = [hosts that the tool fetch may ask]; user level only",
    "allow": 'what a skill may do without a question, in allow.NAME: "/path/of/the/project" = [run, scripts, read, '
    "edit:FOLDER/]; user level only",
    "search": "catalogues = [files or https addresses] for skill search --remote; user level only",
    "mcp.servers": "MCP servers: command, args, env, network, or url and headers; user level only; "
    "navigator mcp add NAME adds one",
}


TOOLING: tuple[Tooling, ...] = get_args(Tooling)


class ModelProvider(NamedTuple):
    """A service that speaks the protocol of the provider `kind`; `key` is the variable that contains its key, `tools`
    one of `TOOLING`, or empty for the result of `navigator model test`; `vision` says whether its models see pictures,
    None for what is known of the provider."""

    url: str
    kind: str = "openai"
    key: str = ""
    tools: str = ""
    vision: bool | None = None
    context: int = 0


class Models(NamedTuple):
    """The models to ask, in order, and the limits of time and cost: `connect` seconds to reach one, `first` to its
    first word, `idle` between two words; `turn_seconds`, `turn_tokens` and `turn_cost` (US dollars) limit one turn, and
    0 tokens or dollars mean no limit."""

    default: str = ""
    fallback: tuple[str, ...] = ()
    aliases: Mapping[str, str] = MappingProxyType({})
    providers: Mapping[str, ModelProvider] = MappingProxyType({})
    retries: int = 2
    connect: float = 10.0
    first: float = 60.0
    idle: float = 60.0
    turn_seconds: float = 1_800.0
    turn_tokens: int = 5_000_000
    turn_cost: float = 5.0


# And tool:NAME, which may contain a star; `denials` says what each of them denies
DENIABLE = ("mcp", "network", "packages", "project", "script", "shell", "skills", "tools")

_HOST = lazy_compile(  # a host, optionally with a port, or an address range
    r"(?:(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?|[0-9A-Fa-f:.]+/\d{1,3}"
)


class Policy(NamedTuple):
    """What a person denies to everything, and to skills by name, "" for messages without a skill (X-16). `fetch` lists
    the hosts that the tool of that name may ask; without any there is no such tool."""

    deny: frozenset[str] = frozenset()
    skills: Mapping[str, frozenset[str]] = MappingProxyType({})
    fetch: tuple[str, ...] = ()


class Settings(Struct, frozen=True, kw_only=True):
    """`allow` are the rights that skills have here without a question. `origins` names the level that each value came
    from; `notes` says what was left out, and why; `ignored` is the part of them about settings that have no effect
    where they are."""

    language: str = "auto"
    style: str = "auto"
    format: str = "auto"
    sections: str = "compact"
    timeout: float = 60.0
    encoder: str = "auto"
    index: str = "auto"
    router: str = "cascade"
    boldness: Boldness = "balanced"
    steps: int = 3
    models: Models = field(default_factory=Models)
    servers: Mapping[str, McpServer] = field(default_factory=dict)
    private: frozenset[str] = frozenset()
    policy: Policy = field(default_factory=Policy)
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    catalogues: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def load_settings(root: Path, env: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings in force at `root`. UsageProblem for a value that does not fit, Damaged for broken TOML."""
    env = os.environ if env is None else env
    user, project = _toml(user_file(env)), _toml(root / PROJECT_FILE)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key in SCALARS:
        variable = f"NAVIGATOR_{key.upper().replace('.', '_')}"
        levels = {"flag": (flags or {}).get(key), "environment": env.get(variable)}
        *above, field_name = key.split(".")
        levels |= {"project": _table(project, *above).get(field_name), "user": _table(user, *above).get(field_name)}
        origin = next((name for name, value in levels.items() if value is not None), "default")
        values[field_name] = checked(key, levels[origin]) if origin != "default" else SCALARS[key][1]
        origins[key] = origin
    hosts = _table(user, "hosts")
    servers: Mapping[str, McpServer] = {}
    missed: tuple[str, ...] = ()
    configured, own = _table(user, "mcp", "servers"), user_file(env).with_name(OWN_SERVERS_FILE)
    if configured or os.path.lexists(own) or os.path.lexists(root / SERVERS_FILE):  # else no code for them is loaded
        # All configured MCP servers, and what was left out
        from navigator_kernel.config.mcp_settings import found
        from navigator_kernel.values.mcp import server_from

        servers, missed = found(root, own, {name: server_from(name, body) for name, body in configured.items()})
    ignored = (*_ignored(PROJECT_FILE, project), *_ignored(user_file(env).name, user, hosts))
    catalogues = _table(user, "search").get("catalogues", [])
    if not isinstance(catalogues, list) or not all(isinstance(address, str) for address in catalogues):
        raise UsageProblem("'search.catalogues' is not a list of words", hint='catalogues = ["https://…"]')
    return Settings(
        **values,
        models=_models(user, env),
        servers=servers,
        private=frozenset(host.lower() for host in hosts if _table(user, "hosts", host).get("auth") is True),
        catalogues=tuple(catalogues),
        policy=_policy(user),
        allow=_allowed(user, root, env),
        origins=origins,
        notes=(*ignored, *missed),
        ignored=ignored,
    )


def _ignored(file: str, table: Mapping[str, Any], hosts: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The settings of a file that nothing reads there; `hosts` are those of the person's file, None for a project's."""
    known = {*SCALARS} if hosts is None else {*SCALARS, *_CHECKED, *(f"hosts.{host}.auth" for host in hosts)}
    elsewhere = {key.partition(".")[0] for key in TABLES}
    notes = []
    for path in _unread(table, known):
        if path in elsewhere and hosts is None:
            notes.append(f"{file}: {path!r} is read at user level only")
        else:
            near = suggestions(path, known, 1)
            notes.append(f"{file}: {path!r} is not a setting" + (f"; did you mean {near[0]!r}?" if near else ""))
    return tuple(notes)


def _unread(table: Mapping[str, Any], known: Collection[str], above: str = "") -> Iterator[str]:
    """The dotted keys of a table that are not among `known`; of a table without a known key only its own."""
    for key, value in table.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and any(one.startswith(f"{path}.") for one in known):
            yield from _unread(value, known, f"{path}.")
        elif path not in known and value != {}:
            yield path


def field_of(key: str) -> str:
    """The field of Settings for the setting `key`."""
    return key.rpartition(".")[2]


def checked(key: str, value: Any) -> str | int | float:
    """Returns `value` in the type of the setting `key`; UsageProblem if it is not allowed."""
    if key not in SCALARS:
        raise UsageProblem(f"no setting is called {key!r}", hint=f"settings: {', '.join(SCALARS)}")
    allowed = SCALARS[key][0]
    if isinstance(allowed, tuple):
        for one in allowed:
            if str(value) == str(one):
                return one
        raise UsageProblem(f"{value!r} is not a value of {key!r}", hint=f"one of: {', '.join(map(str, allowed))}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if 0 < number <= 86_400:
        return number
    raise UsageProblem(f"{value!r} is not a value of {key!r}", hint="seconds, more than 0 and at most 86400")


def user_file(env: Mapping[str, str] | None = None) -> Path:
    """The person's settings file."""
    return _home("XDG_CONFIG_HOME", ".config", env) / "navigator" / "config.toml"


MACHINE_POLICY = Path("/etc/navigator/policy.toml")


def policy_files(env: Mapping[str, str] | None = None) -> list[Path]:
    """The policy files that exist, or that this person may not look for: the machine's and the person's."""
    files = []
    for path in (MACHINE_POLICY, user_file(env).with_name(MACHINE_POLICY.name)):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # a file that cannot be read must not be taken for none
            pass
        files.append(path)
    return files


def user_state(env: Mapping[str, str] | None = None) -> Path:
    """The folder of consents and trust: outside every project, so that no project can bring its own."""
    return _home("XDG_STATE_HOME", ".local/state", env) / "navigator"


def user_cache(env: Mapping[str, str] | None = None) -> Path:
    """The folder of fetched data for all projects; it may be deleted at any time."""
    return _home("XDG_CACHE_HOME", ".cache", env) / "navigator"


def _home(variable: str, fallback: str, env: Mapping[str, str] | None) -> Path:
    env = os.environ if env is None else env
    named = env.get(variable, "")
    return Path(named) if Path(named).is_absolute() else Path(env.get("HOME") or "~").expanduser() / fallback


def _toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(f"cannot read {str(path)!r}: {error}", hint="fix or remove the file") from error
    return _of_toml(text, path)


def _of_toml(text: str, path: Path) -> dict[str, Any]:
    import tomllib  # takes 14 ms, and most projects have no file

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{str(path)!r} is not TOML: {error}", hint="fix or remove the file") from error


def _table(settings: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The table at `path`, empty if there is none; UsageProblem if something else is there."""
    table: Any = settings
    for at, name in enumerate(path):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise UsageProblem(f"{'.'.join(path[: at + 1])!r} is not a table", hint=f"write it as [{'.'.join(path)}]")
    return table  # type: ignore[no-any-return]  # a dict, as checked above


def _models(user: Mapping[str, Any], env: Mapping[str, str]) -> Models:
    """If NAVIGATOR_MODEL is set, it is the default and has no fallback."""
    table, known = _table(user, "models"), set(Models._fields)
    if unknown := sorted({*table} - known):
        raise UsageProblem(f"{unknown[0]!r} is not a key of [models]", hint=f"one of: {', '.join(sorted(known))}")
    named, fallback = env.get("NAVIGATOR_MODEL", ""), table.get("fallback", [])
    if not isinstance(fallback, list) or not all(isinstance(one, str) for one in fallback):
        raise UsageProblem("'models.fallback' is not a list of words", hint='fallback = ["provider:model"]')
    return Models(
        default=named or str(table.get("default", "")),
        fallback=() if named else tuple(fallback),
        aliases={name: str(value) for name, value in _table(user, "models", "aliases").items()},
        providers={name: _provider(name, body) for name, body in _table(user, "models", "providers").items()},
        retries=int(_number(table, "retries", 2)),
        connect=_number(table, "connect", 10.0),
        first=_number(table, "first", 60.0),
        idle=_number(table, "idle", 60.0),
        turn_seconds=_number(table, "turn_seconds", 1_800.0),
        turn_tokens=int(_number(table, "turn_tokens", 5_000_000)),
        turn_cost=_number(table, "turn_cost", 5.0),
    )


def _number(table: Mapping[str, Any], name: str, otherwise: float) -> float:
    number = table.get(name, otherwise)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MOST:
        raise UsageProblem(f"{number!r} is not a value of 'models.{name}'", hint="a number, 0 or more")
    return float(number)


def _provider(name: str, body: Any) -> ModelProvider:
    if not isinstance(body, dict) or not str(body.get("url", "")).startswith(("http://", "https://")):
        hint = f'[models.providers.{name}] url = "https://…"'
        raise UsageProblem(f"model provider {name!r} has no http:// or https:// url", hint=hint)
    kinds = dict.fromkeys(ModelProvider._fields, str) | {"vision": bool, "context": int}
    wrong = [word for word, value in body.items() if word not in kinds or not isinstance(value, kinds[word])]
    if wrong:
        hint = "url, kind, key and tools, each a text; vision, true or false; context, a number of tokens"
        raise UsageProblem(f"model provider {name!r} has invalid settings: {', '.join(wrong)}", hint=hint)
    if body.get("tools", "") not in ("", *TOOLING):
        raise UsageProblem(
            f"{body['tools']!r} is not a value of 'models.providers.{name}.tools'", hint=f"one of: {', '.join(TOOLING)}"
        )
    return ModelProvider(**body)


def _policy(user: Mapping[str, Any]) -> Policy:
    """UsageProblem for an unknown word, so that a misspelled denial does not allow anything."""
    named = _table(user, "policy", "skills")
    unknown = sorted({*_table(user, "policy")} - {"deny", "direct", "fetch", "skills"})
    if unknown:
        hint = "deny, fetch, policy.direct, and tables in policy.skills"
        raise UsageProblem(f"{unknown[0]!r} is not a key of [policy]", hint=hint)
    hosts = _table(user, "policy").get("fetch", [])
    hint = 'fetch = ["docs.example.org", "*.example.org", "localhost:8080", "10.0.0.0/8"]'
    if not isinstance(hosts, list):
        raise UsageProblem("'policy.fetch' is not a list of hosts", hint=hint)
    for host in hosts:
        if not isinstance(host, str) or not _HOST.fullmatch(host):
            raise UsageProblem(f"{host!r} is not a host that 'policy.fetch' can name", hint=hint)
    return Policy(
        deny=_denied(_table(user, "policy"), "policy"),
        skills={
            **{name: _denied(_table(named, name), f"policy.skills.{name}") for name in named},
            "": _denied(_table(user, "policy", "direct"), "policy.direct", ("mcp",)),
        },
        fetch=tuple(host.lower() for host in hosts),
    )


def _allowed(user: Mapping[str, Any], root: Path, env: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """What the person allows each skill in the project at `root`; UsageProblem for a word or a place that means
    nothing, also in another project."""
    found: dict[str, tuple[str, ...]] = {}
    for skill in _table(user, "allow"):
        for place, named in _table(user, "allow", skill).items():
            folder = place.replace("~", env.get("HOME") or "~", 1) if place.startswith("~/") else place
            if not Path(folder).is_absolute() or not isinstance(named, list):
                hint = f'[allow.{skill}] "/path/of/the/project" = ["run", "read"]'
                raise UsageProblem(f"{place!r} in [allow.{skill}] is not a project with a list of words", hint=hint)
            words = words_in(named)
            if os.path.realpath(folder) == os.path.realpath(root):
                found[skill] = words
    return found


def _denied(table: Mapping[str, Any], where: str, known: Sequence[str] = DENIABLE) -> frozenset[str]:
    denied = table.get("deny", [])
    words = denied if isinstance(denied, list) else [denied]
    for word in words:
        if not isinstance(word, str) or (word not in known and not word.startswith("tool:")):
            hint = f"one of: {', '.join(known)}, tool:NAME"
            raise UsageProblem(f"[{where}] cannot deny {word!r}", hint=hint)
    return frozenset(words)
