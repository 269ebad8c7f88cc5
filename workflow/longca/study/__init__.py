"""A study: the config file that says which grid of cases is measured, how, and under which name."""
