"""All sample skills: skills that harm a host that trusts them, and honest skills that look harmful."""

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
