"""Tokens by TokenReview: the API server says what a token is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import TOKEN_REVIEW
from trainwright.base.objects import dig
from trainwright.progress.access import Bearer

if TYPE_CHECKING:
    from trainwright.machinery.api import Api

MANAGER = "trainwright"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"


class ReviewedTokens:
    """Reads tokens by asking the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self, token: str, audience: str) -> Bearer | None:
        """The pod behind a token.

        Raises:
            ApiError: the server would not say.

        Differs: Trainer 2.3 checks the signature itself, by the issuer's published keys.
        """
        review = {
            "apiVersion": TOKEN_REVIEW.api_version,
            "kind": TOKEN_REVIEW.kind,
            "spec": {"token": token, "audiences": [audience]},
        }
        status = (await self._api.create(TOKEN_REVIEW, review, field_manager=MANAGER))["status"]
        user: str = dig(status, "user", "username", default="")
        if not status.get("authenticated") or audience not in (status.get("audiences") or ()):
            return None
        if not user.startswith(_SERVICE_ACCOUNT):
            return None
        extra = dig(status, "user", "extra", default={})
        return Bearer(
            namespace=user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0],
            pod_name=next(iter(extra.get(_POD_NAME) or ()), ""),
            pod_uid=next(iter(extra.get(_POD_UID) or ()), ""),
        )
