"""All sample skills: those that do harm to a host that trusts them, and honest ones that look as if they did."""

from __future__ import annotations

from scanning.benign_purpose import PURPOSE_SKILLS
from scanning.benign_quoting import QUOTING_SKILLS
from scanning.benign_unusual import UNUSUAL
from scanning.benign_working import WORKING
from scanning.malicious_fetched import FETCHED
from scanning.malicious_forceful import FORCEFUL
from scanning.malicious_packed import PACKED
from scanning.malicious_secrets import SECRET_SKILLS
from scanning.malicious_staying import STAYING_SKILLS
from scanning.malicious_unseen import UNSEEN
from scanning.malicious_words import WORDS

MALICIOUS = (*UNSEEN, *FETCHED, *PACKED, *SECRET_SKILLS, *STAYING_SKILLS, *WORDS, *FORCEFUL)
BENIGN = (*QUOTING_SKILLS, *PURPOSE_SKILLS, *UNUSUAL, *WORKING)
