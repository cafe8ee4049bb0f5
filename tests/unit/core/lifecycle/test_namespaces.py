from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainwright.api.kinds import CONFIG_MAP, POD
from trainwright.core.lifecycle.expiry import plan_event_expiry
from trainwright.core.lifecycle.namespaces import ObservedNamespace, plan_namespace
from trainwright.core.plan import Create, Delete, Patch

STAMP = "2026-01-02T03:04:05Z"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def make(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": f"u-{name}", **metadata}}


def make_namespace(**metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "2", **metadata},
        "spec": {"finalizers": ["kubernetes", "mine/x"]},
    }


def test_new_namespace_gets_its_account_and_its_ca() -> None:
    observed = ObservedNamespace(
        namespace=make_namespace(), has_service_account=False, has_root_ca=False
    )
    made = [a.obj for a in plan_namespace(observed, "PEM").actions if isinstance(a, Create)]
    assert [(obj["kind"], obj["metadata"]["name"], obj.get("data")) for obj in made] == [
        ("ServiceAccount", "default", None),
        ("ConfigMap", "kube-root-ca.crt", {"ca.crt": "PEM"}),
    ]
    assert plan_namespace(ObservedNamespace(namespace=make_namespace()), "PEM").actions == ()


def test_namespace_goes_pods_first_itself_last() -> None:
    namespace = make_namespace(deletionTimestamp=STAMP)
    pods = [(POD, make("a")), (POD, make("b", deletionTimestamp=STAMP))]
    rest = [(CONFIG_MAP, make("c"))]

    def deleted(content: list[Any]) -> list[str]:
        observed = ObservedNamespace(namespace=namespace, content=content)
        return [a.name for a in plan_namespace(observed, "").actions if isinstance(a, Delete)]

    assert deleted([*rest, *pods]) == ["a"]
    assert deleted(rest) == ["c"]
    (last,) = plan_namespace(ObservedNamespace(namespace=namespace), "").actions
    assert isinstance(last, Patch)
    assert (last.subresource, last.patch) == ("finalize", {"spec": {"finalizers": ["mine/x"]}})


def test_event_lives_an_hour_after_it_was_last_seen() -> None:
    event = make("e", creationTimestamp="2026-01-02T01:00:00Z")
    event["lastTimestamp"] = "2026-01-02T02:04:06Z"
    assert plan_event_expiry(event, NOW).requeue_after_s == 1
    event["lastTimestamp"] = "2026-01-02T02:04:05Z"
    assert [a.name for a in plan_event_expiry(event, NOW).actions if isinstance(a, Delete)] == ["e"]
