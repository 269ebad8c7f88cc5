"""Figures: one Altair chart a file, drawn from a study's tables and mask files."""
