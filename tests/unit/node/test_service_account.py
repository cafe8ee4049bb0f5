from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainwright.base.objects import dig
from trainwright.node.service_account import FOLDER, has_access, with_access

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def make_pod(*paths: str, **spec: Any) -> Object:
    mounts = [{"name": "own", "mountPath": path} for path in paths]
    return {"spec": {"containers": [{"name": "main", "volumeMounts": mounts}], **spec}}


@pytest.mark.parametrize(
    ("pod", "account", "expected"),
    [
        (None, None, True),
        (None, False, False),
        (True, False, True),
        (False, True, False),
    ],
)
def test_the_pods_word_beats_its_accounts(
    pod: bool | None, account: bool | None, expected: bool
) -> None:
    field = "automountServiceAccountToken"
    spec = {} if pod is None else {field: pod}
    found = has_access(make_pod(**spec), {} if account is None else {field: account})
    assert found is expected


def test_what_a_container_mounts_itself_stays() -> None:
    pod = make_pod(FOLDER)
    changed = with_access(pod, {})
    assert dig(changed, "spec", "containers") == dig(pod, "spec", "containers")
    assert [volume["name"] for volume in dig(changed, "spec", "volumes")] == ["kube-api-access"]
    assert "volumes" not in pod["spec"]
