"""The command line: reads arguments, calls the API over HTTP, prints. No decision about jobs is made here.

One module a command (or a few that belong together); heavy imports happen inside the commands, so
that `--help` and completion stay quick.
"""

from __future__ import annotations
