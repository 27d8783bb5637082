"""Valid names of skills, and names that look alike."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.text import clean, fold, lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAME = lazy_compile(r"[^\W_](?:[\w-]{0,62}[^\W_])?")  # letters and digits of any script, `-` and `_` inside


def refuse_rename(rename: str, wanted: Sequence[str]) -> None:
    """Raises UsageProblem if the new name is invalid, or if more than one skill is wanted."""
    if rename and (len(wanted) > 1 or not NAME.fullmatch(rename)):
        hint = "--as takes a name of letters, digits, '-' and '_' for one --skill"
        raise UsageProblem(f"nothing can be installed as {clean(rename, lines=False)!r}", hint=hint)


RESERVED = (
    "worker", "skills", "mcp", "worker_agent", "skills_agent", "mcp_agent",
    "skill_manager", "mcp_manager", "navigator", "navigator_kernel",
)  # fmt: skip

# Letters by their Unicode names, each with what its small and capital forms look like in common fonts.
_LETTERS: Mapping[str, str] = {
    "CYRILLIC": "A aa, VE bb, GHE r-, IE ee, ZE 33, BYELORUSSIAN-UKRAINIAN I ii, JE jj, KA kk, EM mm, EN hh, O oo, "
    "PE n-, ER pp, ES cc, TE tt, U yy, STRAIGHT U yy, HA xx, DZE ss, KOMI DE d-, QA qq, WE ww, SHHA hh, IZHITSA vv, "
    "SOFT SIGN bb, PALOCHKA ll, ABKHASIAN CHE e-, OMEGA w-",
    "GREEK": "ALPHA aa, BETA bb, GAMMA y-, EPSILON ee, ZETA -z, ETA nh, IOTA ii, KAPPA kk, MU um, NU vn, OMICRON oo, "
    "RHO pp, SIGMA o-, FINAL SIGMA c-, TAU tt, UPSILON uy, CHI xx, OMEGA w-, YOT jj",
    "ARMENIAN": "OH oo, VO n-, SEH uu, HO h-, CO g-, AYB w-, ZA q-, GIM q-, YI j-, LIWN ll, TIWN -s, RA n-, YIWN i-",
    "CHEROKEE": "A dd, E rr, I tt, GO aa, GU jj, GV ee, LA ww, LU mm, MI hh, NAH gg, NO zz, DU ss, DO vv, TLE ll, "
    "TLI cc, TLV pp, TSO kk, YV bb",
}
_OTHERS = {
    "LATIN SMALL LETTER ALPHA": "a", "LATIN SMALL LETTER IOTA": "i", "LATIN SMALL LETTER UPSILON": "u",
    "KATAKANA-HIRAGANA PROLONGED SOUND MARK": "一", "KATAKANA LETTER NI": "二", "KATAKANA LETTER RO": "口",
    "KATAKANA LETTER KA": "力", "KATAKANA LETTER TO": "卜", "KATAKANA LETTER HA": "八", "KATAKANA LETTER TA": "夕",
    "KATAKANA LETTER E": "工", "KATAKANA LETTER TI": "千", "CJK UNIFIED IDEOGRAPH-56D7": "口",
    "CJK UNIFIED IDEOGRAPH-66F0": "日",
}  # fmt: skip
_LATIN = lazy_compile(r"LATIN (?:(SMALL|CAPITAL) LETTER(?: [A-Z]+)*?|LETTER SMALL CAPITAL) ([A-Z])(?: WITH (?s:.*))?")
_BETWEEN = lazy_compile(r"[-_\s]")


def shapes(names: Iterable[str]) -> dict[str, list[str]]:
    """`names` by their skeletons."""
    by_shape: dict[str, list[str]] = {}
    for name in names:
        by_shape.setdefault(skeleton(name), []).append(name)
    return by_shape


def refuse_lookalike(name: str, known: Iterable[str]) -> str:
    """`name` in NFC. Refused, with the reason `lookalike`, if it hides characters, looks like one of `known` or of
    RESERVED without being it, or mixes scripts within a word that reads as Latin; with `reserved` for one of RESERVED.
    """
    return refuse_shape(name, shapes(known))


def refuse_shape(name: str, known: Mapping[str, Sequence[str]]) -> str:
    """The same for many names: the `shapes` of the `known` names are computed only once."""
    composed = unicodedata.normalize("NFC", name)
    if clean(composed, lines=False) != composed:
        raise _refused(composed, "hides characters that cannot be seen")
    shape = skeleton(composed)
    for other in known.get(shape, ()):
        if unicodedata.normalize("NFC", other) != composed:
            raise _refused(composed, f"looks like {clean(other, lines=False)!r}", other)
    for other in RESERVED:
        if skeleton(other) == shape:
            same = fold(other) == fold(composed) and composed.isascii()
            what = "is a name of the kernel's own" if same else f"looks like {other!r}"
            raise _refused(composed, what, other, reason="reserved" if same else "lookalike")
    if any(map(_is_mixed, _BETWEEN.split(composed))):
        raise _refused(composed, "mixes letters of several scripts that look alike")
    return composed


def skeleton(name: str) -> str:
    """A form that is equal for names that look alike: letters by their shapes, case and separators folded."""
    return fold(name if name.isascii() else "".join(map(_shape, unicodedata.normalize("NFC", name))))


def _refused(name: str, what: str, like: str = "", reason: str = "lookalike") -> Refused:
    shown = clean(name, lines=False)
    odd = [f"U+{ord(mark):04X}" for mark in name if not mark.isascii()][:4]
    message = f"the name {shown!r} {what}" + (f" ({', '.join(odd)})" if odd else "")
    return Refused(message, hint="install it under another name with --as NAME", reason=reason, name=shown, like=like)


def _is_mixed(word: str) -> bool:
    """Whether a word that reads as plain Latin mixes Latin letters with others."""
    if word.isascii() or not skeleton(word).isascii():
        return False
    foreign = [mark for mark in word if not mark.isascii() and not unicodedata.name(mark, "").startswith("LATIN ")]
    return bool(foreign) and len(foreign) < sum(mark.isalpha() for mark in word)


@lru_cache(maxsize=4096)
def _shape(mark: str) -> str:
    """The shape of a character: a Latin letter, a digit or a plainer character, otherwise itself."""
    if mark.isascii():
        return mark
    if (known := _shapes().get(mark)) is not None:
        return known
    if (digit := unicodedata.decimal(mark, None)) is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", mark)
    if plain != mark:
        return "".join(map(_shape, plain))
    if hit := _LATIN.fullmatch(unicodedata.name(mark, "")):
        return hit[2].lower()
    parted = unicodedata.normalize("NFD", mark)
    return _shape(parted[0]) if len(parted) > 1 and _shape(parted[0]).isascii() else mark


@lru_cache(maxsize=1)
def _shapes() -> Mapping[str, str]:
    by_mark = {unicodedata.lookup(name): shape for name, shape in _OTHERS.items()}
    for script, letters in _LETTERS.items():
        for letter in letters.split(", "):
            name, _, both = letter.rpartition(" ")
            for size, shape in zip(("SMALL", "CAPITAL"), both, strict=True):
                # Some letters have no size in their names
                for words in (f"{script} LETTER {name}", f"{script} {size} LETTER {name}") if shape != "-" else ():
                    with suppress(KeyError):
                        by_mark[unicodedata.lookup(words)] = shape
    return by_mark
