"""Finds the scene of a row by its state.

What happened counts, not what the reply says about itself: runs of stubs, changed files, what the session waits for, what
the model was sent. The reply's `answer` only tells apart outcomes after which the same things are to be seen.
"""

from __future__ import annotations

from bench.conversation_choices import choice_scene, missing_scene
from bench.conversation_consents import approval_scene, interrupted_scene, plan_scene
from bench.conversation_rows import Row, Scene
from bench.conversation_runs import after_scene, idle_scene


def scene_of(row: Row) -> Scene:
    """The scene for a row, from the words of its context."""
    make = {
        "approval": approval_scene,
        "choice_one": choice_scene,
        "choice_many": choice_scene,
        "missing": missing_scene,
        "plan": plan_scene,
        "after_run": after_scene,
        "after_error": after_scene,
        "interrupted": interrupted_scene,
        "idle": idle_scene,
    }
    return make[row["state"]](row)
