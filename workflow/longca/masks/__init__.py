"""Masks: a list of slices, and every other form derived from it."""
