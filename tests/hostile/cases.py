"""All hostile cases."""

from __future__ import annotations

from hostile.archives import ARCHIVES
from hostile.manifests import MANIFESTS
from hostile.smuggled import SMUGGLED
from hostile.trees import TREES
from hostile.words import WORDS

CASES = (*TREES, *MANIFESTS, *WORDS, *ARCHIVES, *SMUGGLED)
HARMFUL = tuple(case for case in CASES if case.harm is not None)
