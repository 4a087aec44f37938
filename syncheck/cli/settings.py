"""Settings of a server beside its flags: a file, and environment variables, which come before the file."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from syncheck.base.errors import InputError
from syncheck.cli.options import Options

PREFIX = "SYNCHECK_"
FILE = "SYNCHECK_CONFIG"
SECRETS = frozenset({"SYNCHECK_API_KEY", "SYNCHECK_UPSTREAM_KEY"})
"""Variables that hold a key; they are not printed, and no file holds them."""
_SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class Setting(NamedTuple):
    """A value that stands in place of the default of an option."""

    option: str
    value: Any
    origin: str
    """The variable, or the file."""


def add_settings(add: Options) -> None:
    """Add ``--config``, and let the other options of a command be set by variables and by that file."""
    about = f"TOML file with options by name, such as stop-below = 0.3; $SYNCHECK_STOP_BELOW is before it (${FILE})"
    add("--config FILE", about)
    parser: Any = add.parser
    parser.prepare = lambda given: _prepare(parser, given)


def settings_of(parser: argparse.ArgumentParser, file: str | None) -> list[Setting]:
    """Read what variables and a file say of the options of a command.

    A value that an option does not take, or a name in the file that is none of an option, raises InputError.
    """
    actions = {action.dest: action for action in parser._actions if action.dest not in ("help", "config")}
    settings: dict[str, Setting] = {}
    for name, value in _read(file).items() if file is not None else ():
        dest = name.replace("-", "_")
        if dest not in actions:
            near = get_close_matches(dest, actions, n=1)
            hint = f"; did you mean {near[0].replace('_', '-')}?" if near else ""
            raise InputError(f"{file} has {name}, which is no option of {parser.prog.split()[-1]}{hint}")
        settings[dest] = _setting(parser, actions[dest], value, str(file))
    for dest, action in actions.items():
        if value := os.environ.get(variable := f"{PREFIX}{dest.upper()}"):
            settings[dest] = _setting(parser, action, value, f"${variable}")
    return list(settings.values())


def unknown_variables(parsers: Sequence[argparse.ArgumentParser]) -> list[str]:
    """List the variables that begin as ours do, and set nothing in these commands."""
    known = {f"{PREFIX}{action.dest.upper()}" for parser in parsers for action in parser._actions}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known | SECRETS)


def _prepare(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Set the defaults of a command by variables and the file, before its flags are parsed."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config", default=os.environ.get(FILE) or None)
    try:
        settings = settings_of(parser, finder.parse_known_args(list(given))[0].config)
    except InputError as error:
        parser.error(str(error))
    actions = {action.dest: action for action in parser._actions}
    for setting in settings:
        action = actions[setting.option.replace("-", "_")]
        action.default, action.required = setting.value, False


def _read(file: str) -> Mapping[str, Any]:
    try:
        with open(file, "rb") as opened:
            return tomllib.load(opened)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read the settings in {file!r}: {error}") from error


def _setting(parser: argparse.ArgumentParser, action: argparse.Action, value: object, origin: str) -> Setting:
    """Read a value as its option does."""
    name = action.dest.replace("_", "-")
    if action.nargs == 0:
        switch = value if isinstance(value, bool) else _SWITCHES.get(str(value).lower())
        if switch is None:
            raise InputError(f"{origin}: {name} must be true or false; found {value}")
        return Setting(name, switch, origin)
    if isinstance(value, dict | list | bool):
        raise InputError(f"{origin}: {name} must be one value; found {value}")
    try:
        return Setting(name, parser._get_values(action, [str(value)]), origin)
    except argparse.ArgumentError as error:
        raise InputError(f"{origin}: {name}: {error.message}") from error
