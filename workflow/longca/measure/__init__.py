"""Measuring: worker processes, timing, verification, records and journals."""
