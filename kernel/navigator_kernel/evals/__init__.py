"""Checks that messages reach the skills that their evals expect."""
