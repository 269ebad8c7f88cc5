"""Our own GPU operators."""
