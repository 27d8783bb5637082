"""What secrets look like: shapes that detect-secrets does not know, and cheap looks for those that it knows.

Most text holds none, so each shape has words without which it cannot be there, and is looked for only where one is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from navigator_kernel.text import pattern


class Shape(NamedTuple):
    """`kind` is what it is called; one of `needles`, in lower case, is in every match of `found`."""

    kind: str
    needles: tuple[str, ...]
    found: re.Pattern[str]


_WORDS = ("pass", "pwd", "secret", "key", "contrase", "token", "cred", "aws")
_WORD = rf"(?:{'|'.join(_WORDS)})"

# The secret itself is `value`
SHAPES: tuple[Shape, ...] = (
    Shape(
        "Private Key",
        ("private key",),
        pattern(
            r"(?P<value>-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}.*?"
            r"(?:-{4,5} ?END [A-Z0-9 ]{1,60}-{4,5}|\Z))",
            re.DOTALL,
        ),
    ),
    Shape(
        "Secret Keyword",
        ("password", "passwd", "secret", "token", "key"),
        pattern(
            r"(?<![A-Z0-9_])(?=[A-Z0-9_]{1,80}=)[A-Z0-9_]{0,40}?"
            r"(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]{0,40}=[\"']?(?P<value>[^\s\"'$]{6,})"
        ),
    ),
    Shape(
        "Secret Keyword",  # of settings: without quotes, and no name of code
        ("passw", "passphrase", "pwd", "secret", "token", "key"),
        pattern(
            r"(?:passw(?:or)?d|passphrase|\bpwd|secret|token|(?:api|access|private)[_-]?key)[\"']?\s{0,3}[:=]\s{0,3}"
            r"(?=[^\s]{0,200}\d)(?=[^\s]{0,200}[a-z])(?P<value>[\w~+/@!#%^&*-]{8,2000}={0,2})(?![\w(.\[])",
            re.IGNORECASE,
        ),
    ),
    Shape(
        "Authorization Header",
        ("authorization",),
        pattern(
            r"\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3}(?P<value>[\w.~+/=-]{8,})",
            re.IGNORECASE,
        ),
    ),
    Shape(
        "Basic Auth Credentials",
        ("://",),
        pattern(r"://[^\s:@/]{0,200}:(?P<value>[^\s/@:]{3,400})@(?=[\w.\[-])"),
    ),
    Shape("OpenAI Token", ("sk-",), pattern(r"(?<![\w-])sk-(?=[\w-]{0,200}\d)(?P<value>[\w-]{20,})")),
    Shape(
        "Service Token",
        ("github_pat_", "aiza", "hf_", "npm_", "_v1_", "age-secret-key-", "ya29.", "xapp-"),
        pattern(
            r"(?<![A-Za-z0-9])(?P<value>github_pat_\w{22,}|AIza[\w-]{35}|hf_[A-Za-z]{30,}|npm_[A-Za-z0-9]{36}"
            r"|do[opr]_v1_[a-f0-9]{64}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|ya29\.[\w-]{20,}|xapp-[\w-]{20,})"
        ),
    ),
)
# What every detector of the library needs to be there: where none of it is, none of them finds anything
MAYBE: tuple[Shape, ...] = (
    Shape(
        "AWS",
        ("a3t", *(f"a{kind}" for kind in ("kia", "bia", "cca", "sia", "gpa", "ida", "roa", "ipa", "npa", "nva"))),
        pattern(r"A3T[A-Z0-9]|A(?:KIA|BIA|CCA|SIA|GPA|IDA|ROA|IPA|NPA|NVA)[A-Z0-9]{8}", re.IGNORECASE),
    ),
    Shape("Artifactory", ("akc", "ap"), pattern(r"AKC|\bAP[\dABCDEF]\w{8}")),
    Shape("address", ("://",), pattern(r"://[^\s:@/]*:[^\s/@]+@")),
    Shape(
        "prefix",
        ("accountkey=", "gr1348941", "eyj", "_authtoken", "pypi-", "sg.", "xox", "hooks.slack", "k_live", "sq0csp"),
        pattern(r"AccountKey=|GR1348941|eyJ|_authToken|pypi-|SG\.|xox|hooks\.slack|[sr]k_live|sq0csp", re.IGNORECASE),
    ),
    Shape("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), pattern(r"gh[pousr]_", re.IGNORECASE)),
    Shape("GitLab", ("gl",), pattern(r"gl[a-z]{2,5}-", re.IGNORECASE)),
    Shape("Twilio", ("ac", "sk"), pattern(r"(?:AC|SK)[a-z0-9]{32}")),
    Shape("Telegram", (":",), pattern(r"\d{8,10}:[\w-]{35}")),
    Shape("Discord", (".",), pattern(r"[MNO][\w-]{23,25}\.")),
    Shape("Mailchimp", ("-us",), pattern(r"-us\d", re.IGNORECASE)),
    Shape(
        "service",
        ("cloudant", "softlayer", "ibm", "bluemix", "hmac"),
        pattern(r"cloudant|softlayer|ibm|bluemix|hmac", re.IGNORECASE),
    ),
    Shape(
        "word",
        _WORDS,
        pattern(
            rf"{_WORD}\w{{0,20}}\s{{0,3}}[:=]{{1,3}}\s{{0,3}}[\"']?[\w-]{{22}}"
            rf"|{_WORD}\w{{0,30}}[\"'\]]{{0,2}}\s{{0,3}}[:=,(<!]{{0,3}}[=>]?\s{{0,3}}[\"'`@]"
            rf"|[\"'`]\s{{0,3}}[=!]==?\s{{0,3}}\w{{0,40}}{_WORD}",
            re.IGNORECASE,
        ),
    ),
)


def hits(shapes: Sequence[Shape], text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Each match of each shape with the shape's kind."""
    lowered = text.lower()
    for shape in shapes:
        if any(needle in lowered for needle in shape.needles):
            for hit in shape.found.finditer(text):
                yield shape.kind, hit
