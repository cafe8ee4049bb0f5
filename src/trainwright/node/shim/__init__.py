"""One container's keeper: a small program that starts a process and outlives the plane.

Run as `python -I -S …/__main__.pyc FOLDER` from a compiled copy of this package: standard library
only, since one lives as long as each container. `keeper` is its life; `log` holds the output,
`records` what the plane reads of it, `processes` whom it has to end, `namespaces` what separates the
process from the machine, loaded only by who needs it.
"""

from __future__ import annotations
