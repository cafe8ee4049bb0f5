"""The forms that names take on the wire; each check returns what is wrong, or None."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

_LABEL_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""A DNS-1123 subdomain, as a part of a pattern."""
_SUBDOMAIN = re.compile(SUBDOMAIN)
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and look-alikes: what Kubernetes ends generated names with."""
SUFFIX_LENGTH = 5
MAX_GENERATED_BASE = 58
"""generateName is cut to this length before the random characters follow."""
MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_MANAGED_BY = 63


def find_label_fault(text: str) -> str | None:
    """What keeps the text from being a DNS-1123 label."""
    if len(text) > MAX_LABEL:
        return f"must be no more than {MAX_LABEL} characters"
    if not _LABEL_1123.fullmatch(text):
        return (
            "must be an RFC 1123 label: lower case letters, digits and '-', "
            "starting and ending with a letter or digit"
        )
    return None


def find_label_1035_fault(text: str) -> str | None:
    """What keeps the text from being a DNS-1035 label."""
    if len(text) > MAX_LABEL:
        return f"must be no more than {MAX_LABEL} characters"
    if not _LABEL_1035.fullmatch(text):
        return (
            "must be an RFC 1035 label: lower case letters, digits and '-', "
            "starting with a letter and ending with a letter or digit"
        )
    return None


def find_subdomain_fault(text: str) -> str | None:
    """What keeps the text from being a DNS-1123 subdomain."""
    if len(text) > MAX_SUBDOMAIN:
        return f"must be no more than {MAX_SUBDOMAIN} characters"
    if not _SUBDOMAIN.fullmatch(text):
        return (
            "must be an RFC 1123 subdomain: lower case letters, digits, '-' and '.', "
            "starting and ending with a letter or digit"
        )
    return None


def find_path_segment_fault(text: str) -> str | None:
    """What keeps the text from being one segment of a REST path (RBAC names)."""
    if text in (".", "..") or "/" in text or "%" in text:
        return "must be neither '.' nor '..', and hold neither '/' nor '%'"
    return None


def find_qualified_name_fault(text: str) -> str | None:
    """What keeps the text from being a label key, annotation key or finalizer."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        if not prefix:
            return "the prefix before '/' must not be empty"
        fault = find_subdomain_fault(prefix)
        if fault:
            return f"the prefix before '/' {fault}"
    if len(name) > MAX_LABEL:
        return f"the name part must be no more than {MAX_LABEL} characters"
    if not _QUALIFIED.fullmatch(name):
        return (
            "the name part must consist of letters, digits, '-', '_' and '.', "
            "starting and ending with a letter or digit"
        )
    return None


def find_label_value_fault(text: str) -> str | None:
    """What keeps the text from being the value of a label."""
    if len(text) > MAX_LABEL:
        return f"must be no more than {MAX_LABEL} characters"
    if text and not _QUALIFIED.fullmatch(text):
        return (
            "must be empty, or consist of letters, digits, '-', '_' and '.', "
            "starting and ending with a letter or digit"
        )
    return None


def find_env_name_fault(text: str) -> str | None:
    """What keeps the text from being the name of an environment variable."""
    if not _ENV_NAME.fullmatch(text):
        return "must consist of printable ASCII characters other than '='"
    return None


def find_managed_by_errors(value: str | None, path: str) -> Iterator[FieldError]:
    """What is wrong with a `managedBy`: a path with a domain before it."""
    if value is None:
        return
    domain, _, rest = value.partition("/")
    if not rest or find_subdomain_fault(domain):
        detail = "must be a domain-prefixed path (such as acme.io/foo)"
        yield FieldError(Reason.INVALID, path, value, detail)
    if len(value) > MAX_MANAGED_BY:
        detail = f"may not be more than {MAX_MANAGED_BY} characters"
        yield FieldError(Reason.TOO_LONG, path, value, detail)


def find_port_name_fault(text: str) -> str | None:
    """What keeps the text from being the name of a container's port."""
    if len(text) > 15:
        return "must be no more than 15 characters"
    if not _PORT_NAME.fullmatch(text) or "--" in text or not re.search("[a-z]", text):
        return "must consist of lower case letters, digits and single '-', with at least one letter"
    return None


def find_config_key_fault(text: str) -> str | None:
    """What keeps the text from being a key of a ConfigMap or Secret."""
    if len(text) > MAX_SUBDOMAIN:
        return f"must be no more than {MAX_SUBDOMAIN} characters"
    if not _CONFIG_KEY.fullmatch(text) or text in (".", "..") or text.startswith(".."):
        return "must consist of letters, digits, '-', '_' and '.', and not be or start with '..'"
    return None
