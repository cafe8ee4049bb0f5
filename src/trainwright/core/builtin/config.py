"""ConfigMaps and Secrets: keys, sizes, immutability, and what a Secret's type demands."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import msgspec

from trainwright.base.errors import FieldError, Reason
from trainwright.core import names
from trainwright.core.admission import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.admission import Request

MAX_DATA_BYTES = 1024 * 1024

_REQUIRED_KEYS: Mapping[str, Sequence[str]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def validate_config_map(request: Request) -> Verdict:
    """Keys, size and immutability of a ConfigMap."""
    new, old = request.new, request.old
    errors = [*_find_key_errors(new, ("data", "binaryData"))]
    doubled = sorted(set(new.get("data") or ()) & set(new.get("binaryData") or ()))
    errors += [
        FieldError(Reason.INVALID, f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in doubled
    ]
    size = _size(new.get("data"), encoded=False) + _size(new.get("binaryData"), encoded=True)
    if size > MAX_DATA_BYTES:
        errors.append(_too_long(""))
    if old is not None:
        errors += _find_immutable_errors(new, old, ("data", "binaryData"))
    return Verdict(errors=errors)


def default_secret(request: Request) -> Object:
    """A Secret with its type, and `stringData` encoded into `data`."""
    new = {"type": "Opaque", **request.new}
    texts = new.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        new["data"] = {**(new.get("data") or {}), **encoded}
    return new


def validate_secret(request: Request) -> Verdict:
    """Keys, size, type and immutability of a Secret."""
    new, old = request.new, request.old
    errors = [*_find_key_errors(new, ("data",)), *_find_encoding_errors(new)]
    if _size(new.get("data"), encoded=True) > MAX_DATA_BYTES:
        errors.append(_too_long("data"))
    errors += [
        FieldError(Reason.REQUIRED, f"data[{key}]")
        for key in _REQUIRED_KEYS.get(str(new.get("type")), ())
        if key not in (new.get("data") or {})
    ]
    errors += _find_docker_errors(new)
    if old is not None:
        errors += _find_immutable_errors(new, old, ("data",))
        if new.get("type") != old.get("type"):
            errors.append(FieldError(Reason.INVALID, "type", new.get("type"), "field is immutable"))
    return Verdict(errors=errors)


def _find_key_errors(obj: ObjectView, fields: Sequence[str]) -> Iterator[FieldError]:
    for field in fields:
        for key in obj.get(field) or ():
            fault = names.find_config_key_fault(key)
            if fault:
                yield FieldError(Reason.INVALID, f"{field}[{key}]", key, fault)


def _find_encoding_errors(secret: ObjectView) -> Iterator[FieldError]:
    for key, value in (secret.get("data") or {}).items():
        try:
            base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            detail = "must be base64; write plain text into stringData"
            yield FieldError(Reason.INVALID, f"data[{key}]", "<secret>", detail)


def _find_docker_errors(secret: ObjectView) -> Iterator[FieldError]:
    for key in (".dockercfg", ".dockerconfigjson"):
        value = (secret.get("data") or {}).get(key)
        if key not in _REQUIRED_KEYS.get(str(secret.get("type")), ()) or value is None:
            continue
        try:
            msgspec.json.decode(base64.b64decode(value))
        except ValueError:
            yield FieldError(
                Reason.INVALID, f"data[{key}]", "<secret contents redacted>", "no JSON"
            )


def _find_immutable_errors(
    new: ObjectView, old: ObjectView, fields: Sequence[str]
) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    detail = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        yield FieldError(Reason.FORBIDDEN, "immutable", detail=detail)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield FieldError(Reason.FORBIDDEN, field, detail=detail)


def _size(data: Mapping[str, str] | None, *, encoded: bool) -> int:
    values = (data or {}).values()
    if encoded:
        return sum(len(value or "") * 3 // 4 for value in values)
    return sum(len((value or "").encode()) for value in values)


def _too_long(path: str) -> FieldError:
    return FieldError(Reason.TOO_LONG, path, detail=f"may not be more than {MAX_DATA_BYTES} bytes")
