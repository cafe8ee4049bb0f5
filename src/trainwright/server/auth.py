"""Who asks: the installation's bearer token, and tokens of service accounts signed by its key.

Anonymous requests are refused. Tokens are compared in constant time and never logged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.base.errors import Unauthorized

if TYPE_CHECKING:
    from trainwright.base.times import Clock

ADMIN_USER = "trainwright:admin"
ADMIN_GROUPS = ("system:masters", "system:authenticated")
AUDIENCE = "https://kubernetes.default.svc"
"""Of tokens that are meant for this API; one given out for somebody else opens nothing here."""
DEFAULT_TOKEN_LIFETIME_S = 3600
MIN_TOKEN_LIFETIME_S = 600


@dataclass(frozen=True, slots=True)
class User:
    """The one behind a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    namespace: str = ""
    """Set for service accounts: the namespace that they live in."""

    def to_user_info(self) -> dict[str, Any]:
        """The `userInfo` of a review."""
        info: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        return info | ({"uid": self.uid} if self.uid else {})


ADMIN = User(ADMIN_USER, ADMIN_GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountToken:
    """What a service account's token says."""

    namespace: str
    name: str
    uid: str
    pod_name: str = ""
    pod_uid: str = ""
    audiences: tuple[str, ...] = (AUDIENCE,)
    expires_at: int
    """Seconds since 1970."""


class Authenticator:
    """Checks the `Authorization` header of every request of one installation."""

    def __init__(self, token: str, signing_key: bytes, clock: Clock) -> None:
        if len(token) < 16:
            raise ValueError("a bearer token needs at least 16 characters")
        self._token = token.encode()
        self._key = signing_key
        self._clock = clock

    def authenticate(self, authorization: str) -> User:
        """The user of a request with this header.

        Raises:
            Unauthorized: no bearer token, or one that this installation did not give out.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("Unauthorized")
        user = self.find_user(token.strip())
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def find_user(self, token: str) -> User | None:
        """The user that a token speaks for, or None."""
        if hmac.compare_digest(token.encode(), self._token):
            return ADMIN
        account = self.read_service_account_token(token)
        if account is None or AUDIENCE not in account.audiences:
            return None
        return User(
            f"system:serviceaccount:{account.namespace}:{account.name}",
            (
                "system:serviceaccounts",
                f"system:serviceaccounts:{account.namespace}",
                "system:authenticated",
            ),
            account.uid,
            account.namespace,
        )

    def make_service_account_token(self, account: ServiceAccountToken) -> str:
        """A signed JWT (HS256) for a service account."""
        claims: dict[str, Any] = {
            "iss": AUDIENCE,
            "aud": list(account.audiences),
            "exp": account.expires_at,
            "iat": int(self._clock.now().timestamp()),
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": account.uid},
            },
        }
        if account.pod_name:
            claims["kubernetes.io"]["pod"] = {"name": account.pod_name, "uid": account.pod_uid}
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return f"{signed}.{self._sign(signed)}"

    def read_service_account_token(self, token: str) -> ServiceAccountToken | None:
        """What a token says when the signature and the expiry hold, else None."""
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature.encode(), self._sign(signed).encode()):
            return None
        claims = _decode_claims(signed)
        if claims is None or claims["exp"] <= self._clock.now().timestamp():
            return None
        about = claims["kubernetes.io"]
        pod = about.get("pod", {})
        return ServiceAccountToken(
            namespace=about["namespace"],
            name=about["serviceaccount"]["name"],
            uid=about["serviceaccount"]["uid"],
            pod_name=pod.get("name", ""),
            pod_uid=pod.get("uid", ""),
            audiences=tuple(claims["aud"]),
            expires_at=claims["exp"],
        )

    def _sign(self, text: str) -> str:
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _encode(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()


def _decode_claims(signed: str) -> dict[str, Any] | None:
    payload = signed.partition(".")[2]
    try:
        data = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        claims: dict[str, Any] = msgspec.json.decode(data, type=dict)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    return claims
