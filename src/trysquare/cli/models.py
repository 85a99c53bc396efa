"""`trysquare models`: list, install, check and remove local models."""

from __future__ import annotations

import argparse

from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON
from trysquare.cli.terminal import print_listing
from trysquare.core.errors import ToolError
from trysquare.models.local import install
from trysquare.search.vectors import models_folder


def _list(arguments: argparse.Namespace) -> None:
    rows = [
        (model.name, "yes" if install.is_installed(model) else "no", f"{model.size // 1_000_000} MB", model.about)
        for model in install.KNOWN.values()
    ]
    report, headings = [_entry(model) for model in install.KNOWN.values()], ("NAME", "INSTALLED", "SIZE", "ABOUT")
    then = f"Models are stored in {models_folder()}. Use one with --model local:NAME; search uses minilm by itself."
    print_listing(report, headings, rows, json=arguments.json, then=then)


def _entry(model: install.KnownModel) -> dict[str, object]:
    return {
        "name": model.name,
        "installed": install.is_installed(model),
        "bytes": model.size,
        "sha256": model.sha256,
        "licence": model.licence,
        "about": model.about,
    }


def _install(arguments: argparse.Namespace) -> None:
    model = install.find_known(arguments.name)
    if _is_whole(model):
        print(f"{model.name} is already installed.")
        return
    path = install.install_model(model, print)
    use = (
        f"Use it with --model local:{model.name}."
        if model.convert is None
        else "Search uses it from the next start on."
    )
    print(f"Installed {model.name} in {path}. {use}")


def _is_whole(model: install.KnownModel) -> bool:
    if not install.is_installed(model):
        return False
    try:
        install.check_weights(model)
    except ToolError as error:
        print(error.message)
        return False
    return True


def _check(arguments: argparse.Namespace) -> int:
    present = [
        each
        for each in install.KNOWN.values()
        if install.is_installed(each) or install.weights_file(each.name).exists()
    ]
    models = [install.find_known(arguments.name)] if arguments.name else present
    if not models:
        print("No model is installed.")
    return max((_check_model(model) for model in models), default=0)


def _check_model(model: install.KnownModel) -> int:
    try:
        path = install.check_weights(model)
    except ToolError as error:
        print(f"{model.name}: {error.message} {error.instruction}")
        return 1
    print(f"{model.name}: {path} matches the pinned SHA-256.")
    return 0


def _remove(arguments: argparse.Namespace) -> None:
    model = install.find_known(arguments.name)
    print(f"Removed {model.name}." if install.remove_model(model) else f"{model.name} is not installed.")


_NAME = option("name", metavar="NAME", help="the model's name", complete=install.KNOWN)
_ABOUT_ANY = "the model's name (default: every installed model)"
_ANY = option("name", nargs="?", metavar="NAME", help=_ABOUT_ANY, complete=install.KNOWN)
COMMAND = Command(
    subcommands={
        "list": Command(
            _list,
            (JSON,),
            "show the models that can be installed, and which are",
            examples=(
                "trysquare models list",
                "trysquare models list --json",
            ),
        ),
        "install": Command(
            _install,
            (_NAME,),
            "download a model's pinned weights and check every byte",
            examples=(
                "trysquare models install smollm2-135m",
                "trysquare models install minilm",
                'trysquare run reviewer "Review README.md" --model local:smollm2-135m',
            ),
        ),
        "check": Command(
            _check,
            (_ANY,),
            "check installed weights against their pinned digests",
            examples=(
                "trysquare models check",
                "trysquare models check smollm2-135m",
            ),
        ),
        "remove": Command(
            _remove,
            (_NAME,),
            "delete a model's weights",
            examples=(
                "trysquare models remove smollm2-135m",
                "trysquare models list",
            ),
        ),
    },
    examples=(
        "trysquare models list",
        "trysquare models install smollm2-135m",
    ),
)
