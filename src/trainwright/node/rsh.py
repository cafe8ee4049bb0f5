"""The remote shell of MPI launchers: a program of its own, run as `rsh.py PODS [OPTION…] HOST COMMAND…`.

It finds the pod of the caller's job whose host name is HOST and runs the command in its surroundings:
its variables, its folder and its namespaces. What it starts is a child of the launcher, and so ends
with it. Standard library only.
"""

from __future__ import annotations

import json
import os
import shutil
import sys

OPTIONS_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
"""Of ssh, whose place this takes."""
GROUP_FILE, HOST_FILE = "job", "hostname"
CANNOT_REACH = 255
"""What ssh answers when it reaches nobody."""


def split_arguments(arguments: list[str]) -> tuple[str, list[str]]:
    """(host, command words), the options of ssh dropped; an empty host when there is none."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        option = arguments[index]
        takes_next = len(option) == 2 and option[1] in OPTIONS_WITH_VALUE
        index += 2 if takes_next else 1
    if index >= len(arguments):
        return "", []
    return arguments[index].rpartition("@")[2], arguments[index + 1 :]


def read_text(*path: str) -> str:
    """A small file's text, empty when it is not there."""
    try:
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def find_pid(pods: str, job: str, host: str) -> int:
    """The process of the job's pod that has the host name; 0 when none runs."""
    short = host.partition(".")[0]
    for uid in os.listdir(pods):
        folder = os.path.join(pods, uid)
        if read_text(folder, HOST_FILE) != short or read_text(folder, GROUP_FILE) != job:
            continue
        pid = find_running(os.path.join(folder, "containers"))
        if pid:
            return pid
    return 0


def find_running(containers: str) -> int:
    """The process of the first container whose newest run is not over."""
    for name in sorted(os.listdir(containers)):
        runs = [run.split(".") for run in os.listdir(os.path.join(containers, name))]
        numbers = [(int(run[0]), int(run[1])) for run in runs if len(run) == 2]
        for attempt, number in sorted(numbers)[-1:]:
            run = f"{attempt}.{number}"
            started = read_text(containers, name, run, "started.json")
            if started and not read_text(containers, name, run, "exit.json"):
                return int(json.loads(started)["pid"])
    return 0


def read_environment(pid: int) -> dict[str, str]:
    """The variables with which a process was started."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        rows = file.read().split(b"\0")
    pairs = (os.fsdecode(row).partition("=") for row in rows if row)
    return {key: value for key, _, value in pairs}


def build_command(pid: int, words: list[str], cwd: str) -> list[str]:
    """The command that runs `words`, as ssh joins them, in the process' namespaces."""
    shell = ["sh", "-c", " ".join(words)]
    own, theirs = os.readlink("/proc/self/ns/mnt"), os.readlink(f"/proc/{pid}/ns/mnt")
    nsenter = shutil.which("nsenter")
    if own == theirs or nsenter is None:
        return shell
    command = [nsenter, "--target", str(pid), "--mount", "--uts", f"--wdns={cwd}"]
    if os.readlink("/proc/self/ns/user") != os.readlink(f"/proc/{pid}/ns/user"):
        command += ["--user", "--preserve-credentials"]
    return [*command, "--", *shell]


def main(pods: str, arguments: list[str]) -> int:
    """Run the command; only returns when that is not possible."""
    host, words = split_arguments(arguments)
    job = os.environ.get("TRAINWRIGHT_JOB", "")
    pid = find_pid(pods, job, host)
    if not pid:
        sys.stderr.write(f"trainwright-rsh: no running pod of this job has the name {host}\n")
        return CANNOT_REACH
    environment = read_environment(pid)
    cwd = os.readlink(f"/proc/{pid}/cwd")
    command = build_command(pid, words, cwd)
    if command[0] == "sh":
        os.chdir(cwd)
    return os.execvpe(command[0], command, environment)  # noqa: S606 - its purpose


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
