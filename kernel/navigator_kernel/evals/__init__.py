"""Checks a catalogue as continuous integration does: do messages reach the skills that their evals say."""
