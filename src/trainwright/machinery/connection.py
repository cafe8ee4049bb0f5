"""Where an API server is, apart from the client, whose import takes a fifth of a second."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trainwright.machinery.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Connection:
    """Where an API server is and how to prove who we are. `repr` shows no secret."""

    server: str
    """`https://host:port`; a path after it leads every request, as with proxies of clusters."""
    ca_file: Path | None = None
    ca_data: str = field(default="", repr=False)
    """The authority's certificate as PEM text, when there is no file."""
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    insecure: bool = False
    namespace: str = "default"
    """Where objects without a namespace go."""
    tls_server_name: str = ""
    """What the server's certificate must say, when that is not the host of `server`."""
    proxy: str = ""
    """`http://host:port` of a proxy in between."""
    credentials: Credentials | None = field(default=None, repr=False)
    """Where the token and the client certificate come from, when they are made or renewed."""

    def ssl_context(self) -> ssl.SSLContext | bool:
        """The TLS settings; True means the system's authorities."""
        has_certificate = self.client_certificate is not None or self.credentials is not None
        if self.insecure and not has_certificate:
            return False
        if self.ca_file is None and not self.ca_data and not has_certificate:
            return True
        context = ssl.create_default_context(
            cafile=str(self.ca_file) if self.ca_file else None, cadata=self.ca_data or None
        )
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_certificate is not None:
            context.load_cert_chain(self.client_certificate, self.client_key)
        return context

    def authorization(self) -> Mapping[str, str]:
        """The Authorization header; a token file is read again each time, since it is renewed."""
        token = self.token
        if self.token_file is not None:
            token = self.token_file.read_text().strip()
        return {"Authorization": f"Bearer {token}"} if token else {}
