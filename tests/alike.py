"""Which tests end alike whoever runs them: `.ci/run` leaves them out as the user without root's rights.

They work something out in memory, or read files that they wrote: no right, owner, mode, sandbox or state takes part. A test
runs as both users until its file is listed here. Run as a program, this prints options of pytest
that leave them out, or with `files` the files themselves.
"""

from __future__ import annotations

import sys

ALIKE = (
    *("architecture/test_budgets.py", "docs", "values"),  # the source tree, its pages, values
    *(
        f"adapters/test_{name}.py"  # texts in, texts out
        for name in ("blocks", "columns", "pattern_set", "redaction", "redaction_needles", "secret_shapes")
    ),
    *("dispatch/test_answer.py", "evals/test_lint.py", "hostile_input/test_parsers_fuzz.py"),
    "models/test_chat_model.py",  # what a server in the same process is sent
    *(
        f"routing/test_{name}.py"  # which skill a message is for
        for name in (
            *("arrays", "choice", "clauses", "errors_page", "meaning", "mcp_verbs", "metrics", "pairs", "vectors"),
            *("verbs", "words"),
        )
    ),
    *(
        f"scanning/test_{name}.py"  # what the rules find in a text
        for name in ("acceptance", "commands", "content_rules", "context_and_flows", "python_acts", "rule_reach")
    ),
    *(
        f"skills/test_{name}.py"  # names, sources, manifests
        for name in ("corpus", "dependencies", "discover", "layouts", "lookalike", "source", "validate")
    ),
    *(
        f"skills_reading/test_{name}.py"  # what a manifest says
        for name in ("context", "manifest", "manifest_broken", "plugins", "strict_yaml", "template")
    ),
    *(
        f"stages/test_{name}.py"  # plain functions of values
        for name in (
            *("compose", "compose_wording", "decide", "deliver", "plan", "plan_values", "resume", "understand"),
            "preprocess",
        )
    ),
    *(f"workflows/test_{name}.py" for name in ("document", "proposal", "proposal_questions", "split")),  # plans
)

if __name__ == "__main__":
    before = "" if sys.argv[1:] == ["files"] else "--ignore="
    print(*(f"{before}tests/{path}" for path in ALIKE))
