"""Rules of built-in kinds other than pods and jobs, and of the metadata that all kinds share.

Each module has the `default_` and `validate_` functions of its kinds; `core.admission` lists them.
"""

from __future__ import annotations
