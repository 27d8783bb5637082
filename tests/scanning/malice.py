"""Which malicious samples must be blocked because no honest skill resembles them, and why the others need not be."""

from __future__ import annotations

# In plain sight and in the words of honest skills: a person must see it and decide
RESEMBLE_HONEST_SKILLS = {
    "pdf-toolbox": "installs a tool from the domain that bears the tool's name, as documentation of many tools says",
    "diagram-maker": "installs a tool by the script of its own site",
    "windows-inventory": "fetches a script of a named site, as Chocolatey and Scoop are installed",
    "table-extractor": "installs a package from a repository that it names",
    "font-subset": "fetches a release of a tool and runs it",
    "db-migrate-cn": "installs an environment from a mirror that it names",
    "text-statistics": "names a second package index in its requirements",
    "static-site": "unpacks a release and runs its installer",
    "invoice-reader": "the script only fetches a viewer and runs it; what hides is its name, which an install refuses by itself",
    "batch-refactor": "starts an agent with a flag that its maker offers",
    "night-shift": "starts an agent with a flag that its maker offers",
    "travel-planner": "favours a hotel; no command, no secret and no other machine is in it",
    "team-conventions": "asks to add a text to AGENTS.md, as skills about conventions do",
    "memory-keeper": "asks to add a text to CLAUDE.md, as skills about memory do",
    "link-preview": "puts a sentence of the person into the address of a preview service",
}
