"""Which malicious samples must be blocked because no honest skill resembles them, and why the others need not be."""

from __future__ import annotations

from tables import table

# In plain sight and in the words of honest skills: a person must see it and decide
RESEMBLE_HONEST_SKILLS = table(__file__, "RESEMBLE_HONEST_SKILLS")
