"""The embedded plane: server, controllers and node of one laptop, composed in one process.

`home` names its files, `plane` is the composition, `process` starts, finds and stops it.
"""

from __future__ import annotations
