from __future__ import annotations

import base64
import stat
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from trainwright.base.errors import Unreachable
from trainwright.machinery.credentials import (
    CredentialsError,
    ExecPlugin,
    parse_exec_credential,
)
from trainwright.machinery.kubeconfig import (
    KubeconfigError,
    find_connection,
    find_in_cluster,
    find_proxy,
    load_kubeconfig,
    read_kubeconfig,
)

if TYPE_CHECKING:
    from pathlib import Path


def make_config(server: str = "https://a:6443", name: str = "main", **more: Any) -> dict[str, Any]:
    cluster, user = more.pop("cluster", {}), more.pop("user", {"token": "t"})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **more}}],
        "current-context": name,
    }


def write(path: Path, config: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_context_gives_everything_a_client_needs(tmp_path: Path) -> None:
    config = make_config(
        cluster={
            "certificate-authority": "ca.pem",
            "tls-server-name": "api.internal",
            "proxy-url": "http://proxy:3128",
        },
        user={"tokenFile": "secret/token"},
        namespace="team-a",
    )
    found = read_kubeconfig(write(tmp_path / "config", config))
    assert found.ca_file == tmp_path / "ca.pem"
    assert found.token_file == tmp_path / "secret/token"
    assert (found.tls_server_name, found.proxy) == ("api.internal", "http://proxy:3128")
    assert found.namespace == "team-a"


def test_of_several_files_the_first_that_names_something_holds(tmp_path: Path) -> None:
    first = make_config("https://first", "shared")
    del first["current-context"]
    second = make_config("https://second", "shared", cluster={"certificate-authority": "x"})
    third = make_config("https://third", "other", cluster={"certificate-authority": "ca"})
    files = [
        write(tmp_path / "1" / "config", first),
        tmp_path / "missing",
        write(tmp_path / "2" / "config", second),
        write(tmp_path / "3" / "config", third),
    ]
    merged = load_kubeconfig(files, may_be_missing=True)
    assert merged.current_context == "shared"
    assert merged.connection().server == "https://first"
    assert merged.connection().ca_file is None
    other = merged.connection("other")
    assert other.server == "https://third"
    assert other.ca_file == tmp_path / "3" / "ca"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user": {"auth-provider": {"name": "gcp"}}}, "use exec"),
        ({"user": {"username": "u", "password": "p"}}, "username"),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}}, "v1beta1"),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}}, "no command"),
        ({"user": {"client-certificate-data": "!"}}, "no base64"),
        ({"user": {"client-certificate-data": "aGk=", "client-key-data": "aGk="}}, "certificate"),
        ({"cluster": {"certificate-authority-data": "é"}}, "no base64"),
        ({"cluster": {"proxy-url": "socks5://p:1080"}}, "http://"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(KubeconfigError, match=said):
        read_kubeconfig(write(tmp_path / "config", make_config(**change)))


def test_a_context_that_is_missing_lists_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r'no "prod" \(it has: main\)'):
        read_kubeconfig(write(tmp_path / "config", make_config()), "prod")


def test_the_order_of_places_is_that_of_go_controllers(tmp_path: Path) -> None:
    named = write(tmp_path / "named", make_config("https://named"))
    variable = write(tmp_path / "variable", make_config("https://variable"))
    write(tmp_path / ".kube" / "config", make_config("https://home"))
    environ = {"HOME": str(tmp_path), "KUBECONFIG": f"{tmp_path}/missing:{variable}"}
    assert find_connection(named, "", environ)[0].server == "https://named"
    assert find_connection(None, "", environ)[0].server == "https://variable"
    assert find_connection(None, "", {"HOME": str(tmp_path)})[0].server == "https://home"
    with pytest.raises(KubeconfigError, match="--kubeconfig"):
        find_connection(None, "", {"HOME": str(tmp_path / "nobody")})


def test_a_pod_finds_its_server_by_its_mounts(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert find_in_cluster(environ, tmp_path) is None
    for name, text in (("token", "t1"), ("ca.crt", "PEM"), ("namespace", "trainers")):
        (tmp_path / name).write_text(text)
    found = find_in_cluster(environ, tmp_path)
    assert found is not None
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "trainers")
    assert found.authorization() == {"Authorization": "Bearer t1"}
    (tmp_path / "token").write_text("t2\n")
    assert found.authorization() == {"Authorization": "Bearer t2"}
    assert find_in_cluster({}, tmp_path) is None


@pytest.mark.parametrize(
    ("server", "proxies", "proxy"),
    [
        ("https://api:6443", {"https": "http://p:1"}, "http://p:1"),
        ("https://api:6443", {"https": "http://p:1", "no": "api"}, ""),
        ("https://api.corp:6443", {"https": "http://p:1", "no": ".corp"}, ""),
        ("https://127.0.0.1:6443", {"https": "http://p:1"}, ""),
        ("http://api", {"https": "http://p:1"}, ""),
    ],
)
def test_proxies_of_the_environment(server: str, proxies: dict[str, str], proxy: str) -> None:
    assert find_proxy(server, proxies) == proxy


def make_plugin(folder: Path, script: str) -> ExecPlugin:
    program = folder / "login"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./login",
            "env": [{"name": "REALM", "value": "blue"}],
            "installHint": "install it from the intranet",
            "provideClusterInfo": True,
        }
    }
    config = write(folder / "config", make_config(user=user))
    credentials = read_kubeconfig(config).credentials
    assert isinstance(credentials, ExecPlugin)
    return credentials


async def test_a_program_gives_tokens_until_they_are_refused(tmp_path: Path) -> None:
    plugin = make_plugin(
        tmp_path,
        f"""echo x >> {tmp_path}/runs
        case "$KUBERNETES_EXEC_INFO" in *'"server":"https://a:6443"'*) ;; *) exit 3;; esac
        n=$(wc -l < {tmp_path}/runs)
        echo '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
        "status":{{"token":"'$REALM-$n'","expirationTimestamp":"2999-01-01T00:00:00Z"}}}}'
        """,
    )
    assert [await plugin.renew(True), await plugin.renew(True)] == ["blue-1", "blue-1"]
    plugin.reject()
    assert await plugin.renew(True) == "blue-2"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no luck >&2; exit 7", "ended with 7: no luck"),
        ("echo hello", "no ExecCredential"),
    ],
)
async def test_a_program_that_fails_says_how(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(Unreachable, match=said):
        await make_plugin(tmp_path, script).renew(True)


async def test_a_program_that_is_not_there_tells_where_to_get_it(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path, "")
    (tmp_path / "login").unlink()
    with pytest.raises(Unreachable, match="install it from the intranet"):
        await plugin.renew(True)


@pytest.mark.parametrize(
    "printed",
    [
        b"{}",
        b"[]",
        b'{"kind":"ExecCredential","apiVersion":"other/v1","status":{"token":"t"}}',
        b'{"kind":"ExecCredential","apiVersion":"v","status":{}}',
        b'{"kind":"ExecCredential","apiVersion":"v","status":{"clientCertificateData":"c"}}',
        b'{"kind":"ExecCredential","apiVersion":"v","status":'
        b'{"token":"t","expirationTimestamp":"soon"}}',
    ],
)
def test_what_is_no_credential_is_refused(printed: bytes) -> None:
    with pytest.raises(CredentialsError):
        parse_exec_credential(printed, "v")


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    user = {"token": "hunter2"}
    found = read_kubeconfig(write(tmp_path / "config", make_config(user=user)))
    assert "hunter2" not in repr(found)
    data = base64.b64encode(b"hunter3").decode()
    assert data not in repr(found)
