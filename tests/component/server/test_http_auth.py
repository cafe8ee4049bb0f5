"""Tokens and certificates of an installation."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml
from cryptography import x509

from trainwright.base.errors import Unauthorized
from trainwright.server.auth import AUDIENCE, Authenticator, ServiceAccountToken
from trainwright.server.certificates import ensure_certificates, write_kubeconfig
from trainwright.server.listen import require_loopback

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "t" * 43


class _Clock:
    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0


def _account(*audiences: str) -> ServiceAccountToken:
    return ServiceAccountToken(
        namespace="a",
        name="default",
        uid="u",
        audiences=audiences or (AUDIENCE,),
        expires_at=int(NOW.timestamp()) + 600,
    )


def test_only_the_installations_token_is_let_in() -> None:
    authenticator = Authenticator(TOKEN, b"key", _Clock())
    assert authenticator.authenticate(f"Bearer {TOKEN}").name == "trainwright:admin"
    for header in ("", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ä"):
        with pytest.raises(Unauthorized):
            authenticator.authenticate(header)


def test_service_account_token_holds_until_it_expires() -> None:
    clock = _Clock()
    authenticator = Authenticator(TOKEN, b"key", clock)
    token = authenticator.make_service_account_token(_account())
    user = authenticator.authenticate(f"Bearer {token}")
    assert (user.name, user.namespace) == ("system:serviceaccount:a:default", "a")
    clock.moment += timedelta(seconds=601)
    with pytest.raises(Unauthorized):
        authenticator.authenticate(f"Bearer {token}")


def test_service_account_token_of_another_key_or_changed_is_refused() -> None:
    authenticator = Authenticator(TOKEN, b"key", _Clock())
    other = Authenticator(TOKEN, b"other", _Clock())
    token = authenticator.make_service_account_token(_account())
    head, claims, signature = token.split(".")
    for wrong in (
        other.make_service_account_token(_account()),
        f"{head}.{claims[:-2]}.{signature}",
        f"{head}..{signature}",
        "..",
    ):
        assert authenticator.find_user(wrong) is None


def test_service_account_token_for_another_audience_opens_nothing_here() -> None:
    authenticator = Authenticator(TOKEN, b"key", _Clock())
    token = authenticator.make_service_account_token(_account("somebody"))
    assert authenticator.find_user(token) is None
    found = authenticator.read_service_account_token(token)
    assert found is not None
    assert found.audiences == ("somebody",)


def _load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_certificates_name_every_way_to_reach_the_server(tmp_path: Path) -> None:
    certs = ensure_certificates(tmp_path / "certs", NOW)
    server, ca = _load(certs.cert_file), _load(certs.ca_file)
    server.verify_directly_issued_by(ca)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(name.value) for name in names} >= {"127.0.0.1", "::1", "localhost"}
    for file in (tmp_path / "certs").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700


def test_certificates_are_kept_while_valid_and_renewed_in_time(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, NOW)
    ca, server = first.ca_pem, first.cert_file.read_bytes()
    again = ensure_certificates(tmp_path, NOW + timedelta(days=30))
    assert (again.ca_pem, again.cert_file.read_bytes()) == (ca, server)
    later = ensure_certificates(tmp_path, NOW + timedelta(days=340))
    assert later.ca_pem == ca
    assert later.cert_file.read_bytes() != server
    _load(later.cert_file).verify_directly_issued_by(_load(later.ca_file))


def test_kubeconfig_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "kubeconfig"
    write_kubeconfig(path, "https://127.0.0.1:1", b"pem", "secret", namespace="team")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["contexts"][0]["context"]["namespace"] == "team"
    assert config["users"][0]["user"]["token"] == "secret"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "", "localhost"])
def test_only_loopback_addresses_are_listened_on(host: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        require_loopback(host)
    require_loopback("127.0.0.1")
    require_loopback("::1")
