#!/usr/bin/env bash
# Makes the virtual environment in the folder $1 with a Python this project runs on.
set -euo pipefail

for python in python3.11 python3.12 python3.13 python3; do
    # A command of that name may exist and still not run, as a version manager's placeholder does.
    if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        found=$python
        "$python" -c 'import venv, ensurepip' 2>/dev/null || continue
        "$python" -m venv --clear "$1"
        exit
    fi
done
if [ -n "${found:-}" ]; then
    echo "make: $found has no venv module; on Debian: apt-get install python3-venv" >&2
else
    echo "make: no Python 3.11, 3.12 or 3.13 found on PATH; on Debian 12: apt-get install python3 python3-venv" >&2
fi
exit 1
