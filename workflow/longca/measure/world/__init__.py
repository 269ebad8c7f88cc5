"""Measuring over many ranks: who they are, how they are started and ended, and what each of them does with a case."""
