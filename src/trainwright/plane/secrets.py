"""Secrets of an installation that are made once and kept: its token and its signing key."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from trainwright.server.certificates import write_private

if TYPE_CHECKING:
    from pathlib import Path


def ensure_secret(file: Path) -> str:
    """The secret in `file` (0600), made at the first call."""
    try:
        if secret := file.read_text().strip():
            return secret
    except FileNotFoundError:
        pass
    secret = secrets.token_urlsafe(32)
    write_private(file, secret.encode())
    return secret
