"""`python -m longca`, the same as the `longca` command."""

from longca.cli.main import main

main()
