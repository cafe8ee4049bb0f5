"""Service account tokens: issued for the projected volumes of pods, read when they come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import SERVICE_ACCOUNT
from trainwright.base.objects import dig, name_of, namespace_of, uid_of
from trainwright.progress.access import Bearer
from trainwright.server.auth import AUDIENCE, ServiceAccountToken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api
    from trainwright.node.settings import TokenIssuer
    from trainwright.server.auth import Authenticator

LIFETIME_S = 30 * 24 * 3600
"""The node writes a pod's tokens once, so each must last for the whole run."""


def build_token_issuer(api: Api, authenticator: Authenticator, clock: Clock) -> TokenIssuer:
    """What the node asks for tokens: bound to the pod, for its service account."""

    async def issue(pod: Object, source: Mapping[str, Any]) -> str:
        name = dig(pod, "spec", "serviceAccountName", default="") or "default"
        account = await api.get(SERVICE_ACCOUNT, namespace_of(pod), name)
        lifetime_s = max(LIFETIME_S, source.get("expirationSeconds") or 0)
        return authenticator.make_service_account_token(
            ServiceAccountToken(
                namespace=namespace_of(pod),
                name=name,
                uid=uid_of(account),
                pod_name=name_of(pod),
                pod_uid=uid_of(pod),
                audiences=(source.get("audience") or AUDIENCE,),
                expires_at=int(clock.now().timestamp()) + lifetime_s,
            )
        )

    return issue


class IssuedTokens:
    """Reads the tokens that this installation has issued."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def read(self, token: str, audience: str) -> Bearer | None:
        """The pod behind a token; see `progress.access.TokenReader`."""
        said = self._authenticator.read_service_account_token(token)
        if said is None or audience not in said.audiences:
            return None
        return Bearer(namespace=said.namespace, pod_name=said.pod_name, pod_uid=said.pod_uid)
