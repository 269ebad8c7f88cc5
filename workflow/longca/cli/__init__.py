"""The `longca` command: one module a stage, heavy imports inside the commands."""
