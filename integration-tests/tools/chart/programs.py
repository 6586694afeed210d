"""Asks the built programs whether they take what the chart gives them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from chart.objects import container_of, environment_of, of_kind


def settings_problems(objects, binaries):
    """Each program, started with the settings and variables of its container, takes them."""
    (settings,) = (item for item in of_kind(objects, "ConfigMap") if "reveille.toml" in item["data"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "reveille.toml")
        file.write_text(settings["data"]["reveille.toml"])
        for deployment in of_kind(objects, "Deployment"):
            container = container_of(deployment)
            (program,) = container["command"]
            flags = [file if flag == "/etc/reveille/reveille.toml" else flag for flag in container["args"]]
            variables = {
                name: "postgres://reveille@postgres/reveille" if value.startswith("secret:") else value
                for name, value in environment_of(deployment).items()
            }
            listen = next(value for name, value in variables.items() if name.endswith("__LISTEN"))
            yield from refusals([binaries / program, *flags, "--print-config"], variables, listen)


def refusals(command, variables, listen):
    """Why a program does not take its settings, or takes another address than `listen` from them."""
    environment = {**os.environ, **variables}
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        yield f"cannot start: {error}"
        return
    if ran.returncode != 0:
        yield f"{command[0].name} exits {ran.returncode}: {(ran.stderr or ran.stdout).strip()}"
    elif listen not in ran.stdout:
        yield f"{command[0].name} does not listen on {listen}"


# Of their own, so that the ports of the machine are free, its mounts stay as they are, and no process is left.
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]


def can_start():
    """Whether containers can be played here."""
    if os.geteuid() != 0:
        return False
    probe = subprocess.run([*NAMESPACES, "mount", "--bind", "/etc", "/etc"], capture_output=True, check=False)
    return probe.returncode == 0


def start_problems(chart_folder, binaries, variant):
    """Started as by a cluster, every part gets ready, passes the test of the chart, and ends in order."""
    # Beside the programs: a folder for temporary files may be one of which nothing can be executed.
    with tempfile.TemporaryDirectory(dir=binaries) as folder:
        live = [sys.executable, Path(__file__).with_name("live.py"), chart_folder, binaries, folder, variant]
        ran = subprocess.run([*NAMESPACES, *live], capture_output=True, text=True, timeout=600, check=False)
    if ran.returncode != 0:
        yield from (ran.stdout + ran.stderr).splitlines()
