"""Patterns for the places where programs keep secrets, and for commands that print one."""

from __future__ import annotations

import re

from navigator_kernel.text import lazy_compile

_STORES = (
    r"\.ssh/(?!config\b|known_hosts\b|authorized_keys\b)[\w*.]{1,40}(?<!\.pub)(?!\w*\.pub)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)"
    r"|\.aws/credentials|\.(?:netrc|git-credentials|pgpass|vault-token|pypirc|npmrc)\b(?!\.example)|\.gnupg\b|\.kube/config|\.docker/config\.json"
    r"|\.config/(?:gh/hosts|gcloud/|solana/)|application_default_credentials|\.claude/\.credentials|\.codex/auth"
    r"|\bLogin Data\b|\bcookies\.sqlite\b|\bkey4\.db\b|\blogins\.json\b|google-chrome/\S{0,40}Cookies"
    r"|\bwallet\.dat\b|\.ethereum/keystore"
    r"|\.electrum\b|/proc/(?:self|1|\d+|\*)/environ|/etc/shadow\b|\.(?:bash|zsh)_history\b"
)
STORE = lazy_compile(_STORES, re.IGNORECASE)
# In a shell, a store can be named without its folder
SHELL_STORE = lazy_compile(
    _STORES + r"|(?:\$HOME|~|\$\{HOME\})[\"'/]*\s{1,4}(?:\S{1,40}\s{1,4}){0,4}\.(?:ssh|aws|gnupg|kube)\b"
    r"|[\"']\.(?:npmrc|pypirc|netrc|git-credentials)[\"']"
    r"|security\s+(?:find|dump|export)-[\w-]*(?:password|keychain)|secret-tool\s+(?:lookup|search)|cmdkey\s+/list"
    r"|(?:\bcat\b|<|@)\s{0,4}[\"']?(?:\./)?\.env\b(?!\.example|\.sample)",
    re.IGNORECASE,
)
ENVIRONMENT = lazy_compile(
    # Only as a command: `fnm env`, `handle(env)` and `env: Env` are something else
    r"(?-i:(?:(?:^|\$\(|`|[|;!\"'{]|&&)\s{0,4}|\b(?:sudo|then|do|else|exec|command|run|RUN)\s{1,4})(?:env|printenv)\s*(?:\||>|$)"
    r"|(?:\$\(|`)\s{0,4}(?:sudo\s{1,4})?(?:env|printenv)\s*[)`]|\(\s{0,4}(?:env|printenv)\s*\|)|JSON\.stringify\s*\(\s*process\.env\s*[,)]|Object\.(?:entries|values)\s*\(\s*process\.env\s*\)"
    r"|\.\.\.process\.env\b|\bENV\.to_h\b|\bENV\.to_a\b|Get-ChildItem\s+env:",
    re.IGNORECASE | re.MULTILINE,
)
# Commands that print a token, each with the hosts that the token is for
TOKENS = (
    (lazy_compile(r"\bgh auth token\b"), lazy_compile(r"github\.com|githubusercontent\.com|ghcr\.io")),
    (
        lazy_compile(r"\bgcloud auth (?:application-default )?print-\w+-token\b"),
        lazy_compile(r"google|run\.app|\.goog\b|gcr\.io"),
    ),
    (lazy_compile(r"\baz account get-access-token\b"), lazy_compile(r"azure|microsoft|windows\.net|visualstudio")),
    (lazy_compile(r"\bgit credential fill\b"), lazy_compile(r"(?!)")),
)
ADDRESS = lazy_compile(r"\b(?:https?|wss?|ftp)://([\w.-]{3,200})", re.IGNORECASE)
LOCAL = lazy_compile(r"^(?:localhost|127\.|0\.0\.0\.0|\[?::1)", re.IGNORECASE)
