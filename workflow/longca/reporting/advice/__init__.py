"""Advice: which kernel, and over many GPUs which mechanism, for a mask, length and heads; ranked as measured."""
