"""The pages of docs/ that are derived: docs/kernels, docs/mechanisms and the two lists of them."""
