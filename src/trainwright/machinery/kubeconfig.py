"""Finding an API server and our identity there: kubeconfig files, and a Pod's own mounts.

Several files of KUBECONFIG are read as kubectl reads them: of one name the first file's entry holds,
a file that is not there is passed over, and paths count from the file that names them.
"""

from __future__ import annotations

import base64
import ssl
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trainwright.api.manifests import ManifestError, parse_yaml
from trainwright.base.errors import TrainwrightError, Unreachable
from trainwright.base.objects import dig
from trainwright.machinery.connection import Connection
from trainwright.machinery.credentials import (
    EXEC_VERSIONS,
    CertificateData,
    CertificateFiles,
    ExecCommand,
    ExecPlugin,
    load_certificate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.machinery.credentials import Credentials

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER = "the Pod's service account"


class KubeconfigError(TrainwrightError, ValueError):
    """A kubeconfig that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One cluster, user or context, and the file that it stands in."""

    file: Path
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Kubeconfig files, merged."""

    files: Sequence[Path]
    current_context: str
    clusters: Mapping[str, _Entry]
    users: Mapping[str, _Entry]
    contexts: Mapping[str, _Entry]

    @property
    def where(self) -> str:
        """The files, for messages."""
        return ", ".join(map(str, self.files))

    def connection(self, context: str = "", proxies: Mapping[str, str] | None = None) -> Connection:
        """The connection of a context (the current one by default).

        Args:
            context: its name.
            proxies: what HTTPS_PROXY and its like say, by scheme; a cluster's `proxy-url` wins.

        Raises:
            KubeconfigError: an entry is missing or cannot be used.
        """
        wanted = context or self.current_context
        chosen = self._find("contexts", self.contexts, wanted).body
        cluster = self._find("clusters", self.clusters, str(chosen.get("cluster") or ""))
        user = _Entry(self.files[0], {})
        if chosen.get("user"):
            user = self._find("users", self.users, str(chosen["user"]))
        server = str(cluster.body.get("server") or "").rstrip("/")
        return Connection(
            server=server,
            ca_file=_find_ca_file(cluster),
            ca_data=_decoded(cluster, "certificate-authority-data"),
            insecure=bool(cluster.body.get("insecure-skip-tls-verify")),
            token=str(user.body.get("token") or ""),
            token_file=_path(user, "tokenFile"),
            namespace=str(chosen.get("namespace") or "default"),
            tls_server_name=str(cluster.body.get("tls-server-name") or ""),
            proxy=_find_proxy(cluster, server, proxies or {}),
            credentials=_build_credentials(user, cluster),
        )

    def _find(self, section: str, entries: Mapping[str, _Entry], name: str) -> _Entry:
        if name not in entries:
            known = ", ".join(entries) or "none"
            raise KubeconfigError(f'{self.where}: {section} has no "{name}" (it has: {known})')
        return entries[name]


def read_kubeconfig(path: Path, context: str = "") -> Connection:
    """The connection of a context (the current one by default) of one file.

    Raises:
        KubeconfigError: when the file is missing, is no kubeconfig, or names what is not there.
    """
    return load_kubeconfig((path,)).connection(context)


def load_kubeconfig(files: Sequence[Path], *, may_be_missing: bool = False) -> Kubeconfig:
    """Read and merge kubeconfig files; of one name the first holds.

    Raises:
        KubeconfigError: a file cannot be read, or none of them is there.
    """
    documents = []
    for file in files:
        try:
            documents.append((file, _parse(file, file.read_text())))
        except FileNotFoundError as error:
            if not may_be_missing:
                raise KubeconfigError(f"{file}: {error.strerror}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise KubeconfigError(f"{file}: {error}") from error
    if not documents:
        raise KubeconfigError(f"{', '.join(map(str, files))}: no such file")
    current = (str(document.get("current-context") or "") for _, document in documents)
    return Kubeconfig(
        files=[file for file, _ in documents],
        current_context=next(filter(None, current), ""),
        clusters=_merge(documents, "clusters", "cluster"),
        users=_merge(documents, "users", "user"),
        contexts=_merge(documents, "contexts", "context"),
    )


def find_connection(
    kubeconfig: Path | None, context: str, environ: Mapping[str, str]
) -> tuple[Connection, str]:
    """The API server that a controller is meant to talk to, and where that was found.

    A file that was named comes first, then KUBECONFIG, then the Pod's own service account, then
    `~/.kube/config`: the order of Go controllers.

    Raises:
        KubeconfigError: none of these is there, or the first that is cannot be used.
    """
    proxies = urllib.request.getproxies_environment()
    if kubeconfig is not None:
        return load_kubeconfig((kubeconfig,)).connection(context, proxies), str(kubeconfig)
    if named := environ.get("KUBECONFIG", ""):
        files = tuple(Path(name) for name in named.split(":") if name)
        loaded = load_kubeconfig(files, may_be_missing=True)
        return loaded.connection(context, proxies), f"KUBECONFIG ({loaded.where})"
    if not context and (connection := find_in_cluster(environ)) is not None:
        return connection, IN_CLUSTER
    home = Path(environ.get("HOME") or "/") / ".kube" / "config"
    if not home.exists():
        raise KubeconfigError(
            "no cluster is known: this is no Pod with a service account, KUBECONFIG is not set and "
            f"{home} is not there; name a file with --kubeconfig"
        )
    return load_kubeconfig((home,)).connection(context, proxies), str(home)


def find_in_cluster(
    environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT_FOLDER
) -> Connection | None:
    """The API server as a Pod's mounts and environment tell it; None outside of Pods."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token_file, ca_file = folder / "token", folder / "ca.crt"
    if not host or not port or not token_file.exists():
        return None
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_file=ca_file if ca_file.exists() else None,
        token_file=token_file,
        namespace=find_own_namespace(folder) or "default",
    )


def find_own_namespace(folder: Path = SERVICE_ACCOUNT_FOLDER) -> str:
    """The namespace of the Pod that this process runs in; "" outside of Pods."""
    try:
        return (folder / "namespace").read_text().strip()
    except OSError:
        return ""


def _parse(file: Path, text: str) -> Mapping[str, Any]:
    try:
        document = parse_yaml(text, str(file), strict=False) or {}
    except ManifestError as error:
        raise KubeconfigError(str(error)) from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{file}: no kubeconfig, for it is no map")
    return document


def _merge(
    documents: Sequence[tuple[Path, Mapping[str, Any]]], section: str, content: str
) -> Mapping[str, _Entry]:
    merged: dict[str, _Entry] = {}
    for file, document in documents:
        for entry in document.get(section) or ():
            name, body = dig(entry, "name", default=""), dig(entry, content) or {}
            if not isinstance(name, str) or not isinstance(body, dict):
                raise KubeconfigError(
                    f"{file}: {section} holds an entry without a name or {content}"
                )
            merged.setdefault(name, _Entry(file, body))
    return merged


def _path(entry: _Entry, field: str) -> Path | None:
    value = entry.body.get(field)
    return (entry.file.parent / str(value)) if value else None


def _decoded(entry: _Entry, field: str) -> str:
    try:
        return base64.b64decode(str(entry.body.get(field) or ""), validate=True).decode()
    except ValueError as error:
        raise KubeconfigError(f"{entry.file}: {field} is no base64 text") from error


def _find_ca_file(cluster: _Entry) -> Path | None:
    # As everywhere in a kubeconfig: data wins over the file beside it.
    return (
        None
        if cluster.body.get("certificate-authority-data")
        else _path(cluster, "certificate-authority")
    )


def _build_credentials(user: _Entry, cluster: _Entry) -> Credentials | None:
    """What proves who we are beyond a token: a client certificate, or a program."""
    for field, way_out in (
        ("auth-provider", "use exec, which took its place in Kubernetes 1.26"),
        ("username", "use a token or a client certificate, for servers take no passwords"),
        ("as", "impersonate with a user of its own"),
    ):
        if user.body.get(field):
            raise KubeconfigError(f"{user.file}: users has {field}, which is not done; {way_out}")
    if user.body.get("exec"):
        return ExecPlugin(_build_exec(user, cluster))
    certificate = _decoded(user, "client-certificate-data")
    key = _decoded(user, "client-key-data")
    certificate_file, key_file = _path(user, "client-certificate"), _path(user, "client-key")
    if not certificate and certificate_file is None:
        return None
    if certificate_file is not None and key_file is not None and not (certificate or key):
        return CertificateFiles(certificate_file, key_file)
    try:
        certificate = certificate or (certificate_file.read_text() if certificate_file else "")
        key = key or (key_file.read_text() if key_file else "")
        load_certificate(ssl.create_default_context(), certificate, key)
    except (OSError, Unreachable) as error:
        raise KubeconfigError(f"{user.file}: {error}") from error
    return CertificateData(certificate, key)


def _build_exec(user: _Entry, cluster: _Entry) -> ExecCommand:
    body: Mapping[str, Any] = user.body["exec"]
    version, command = str(body.get("apiVersion")), str(body.get("command") or "")
    if version not in EXEC_VERSIONS:
        raise KubeconfigError(
            f"{user.file}: exec.apiVersion is {version}; {' or '.join(EXEC_VERSIONS)} was wanted"
        )
    if not command:
        raise KubeconfigError(f"{user.file}: exec names no command")
    if body.get("interactiveMode") == "Always":
        raise KubeconfigError(
            f"{user.file}: exec.interactiveMode is Always, and a controller has no terminal"
        )
    if "/" in command:
        command = str(user.file.parent / command)
    return ExecCommand(
        api_version=version,
        command=command,
        arguments=[str(argument) for argument in body.get("args") or ()],
        environment={str(row["name"]): str(row["value"]) for row in body.get("env") or ()},
        install_hint=str(body.get("installHint") or ""),
        cluster=_build_cluster_info(cluster) if body.get("provideClusterInfo") else None,
    )


def _build_cluster_info(cluster: _Entry) -> Mapping[str, Any]:
    info = {
        field: cluster.body[field]
        for field in (
            "server",
            "tls-server-name",
            "insecure-skip-tls-verify",
            "certificate-authority-data",
            "proxy-url",
        )
        if cluster.body.get(field)
    }
    ca_file = _find_ca_file(cluster)
    if ca_file is not None:
        info["certificate-authority-data"] = base64.b64encode(ca_file.read_bytes()).decode()
    for extension in cluster.body.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _find_proxy(cluster: _Entry, server: str, proxies: Mapping[str, str]) -> str:
    proxy = str(cluster.body.get("proxy-url") or "") or find_proxy(server, proxies)
    if proxy and urlsplit(proxy).scheme not in {"http", "https"}:
        raise KubeconfigError(
            f"{cluster.file}: proxy-url is {proxy}; a proxy of http:// or https:// was wanted"
        )
    return proxy


def find_proxy(server: str, proxies: Mapping[str, str]) -> str:
    """The proxy on the way to a server, "" for none; never one on the way to this machine."""
    address = urlsplit(server)
    host = address.hostname or ""
    if host in {"localhost", "::1"} or host.startswith("127."):
        return ""
    bypass = urllib.request.proxy_bypass_environment  # type: ignore[attr-defined]  # not in the stubs
    if bypass(host, dict(proxies)):
        return ""
    return proxies.get(address.scheme, "")
