"""Wire types and well-known names: data only, every manifest round-trips without loss.

Nothing here decides anything; `core` does. Nothing here does I/O.
"""

from __future__ import annotations
