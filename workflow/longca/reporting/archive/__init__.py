"""A study's archive: one zip file that is an RO-Crate, made the same each time, and checked from itself alone."""
