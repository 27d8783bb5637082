"""Phase 2: a model works on a skill's prompt or answers without one, within limits."""
