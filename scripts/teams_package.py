"""Builds the Teams app package, and reports everything that Teams would reject.

    make teams-package APP_ID=<bot's app id> HOST=<host of the app> OUT=build/groundwork-teams.zip

Fills in infra/teams/manifest.json, and validates it against Microsoft's schema and against rules that the
schema can't express. If there are faults, all are reported and no file is written.
"""

import argparse
import io
import json
import re
import sys
import zipfile
from pathlib import Path
from string import Template
from typing import Any

import jsonschema_rs
from PIL import Image

from scripts.teams_icons import COLOR_SIZE, OUTLINE_SIZE, color_icon, outline_icon
from scripts.teams_tools import PROJECT, TeamsToolsError, install_teams_tools, manifest_schema

_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NO_GUID = "00000000-0000-0000-0000-000000000000"
_HOST = re.compile(r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}", re.IGNORECASE)
_VERSION = re.compile(r"\d{1,5}\.\d{1,5}\.\d{1,5}")
_PLACES = ("developer.websiteUrl", "developer.privacyUrl", "developer.termsOfUseUrl")
# The modification time of every file in the package. It is constant, so that equal content gives equal bytes.
_STAMP = (2026, 1, 1, 0, 0, 0)
_ICONS = {"color": (COLOR_SIZE, "RGB"), "outline": (OUTLINE_SIZE, "RGBA")}


def filled_manifest(values: dict[str, str]) -> dict[str, Any]:
    """Return the manifest with each ${…} replaced by its value.

    Raises:
        KeyError: if a value is missing.
    """
    template = json.loads((PROJECT / "manifest.json").read_text(encoding="utf-8"))
    filled: dict[str, Any] = _fill(template, values)
    return filled


def faults_of(manifest: dict[str, Any], files: dict[str, bytes], schema: dict[str, Any]) -> list[str]:
    """Return all violations of the schema, and of the rules of Teams for ids, addresses and icons."""
    validator = jsonschema_rs.validator_for(schema)
    faults = [
        f"{'.'.join(map(str, error.instance_path)) or 'manifest'}: {error.message}"
        for error in validator.iter_errors(manifest)
    ]
    return faults + _faults_of_names(manifest) + _faults_of_icons(manifest, files)


def package_of(manifest: dict[str, Any], files: dict[str, bytes]) -> bytes:
    """Return a zip file with manifest.json and the icons. Equal content gives equal bytes."""
    content = {"manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False).encode(), **files}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content_of in content.items():
            package.writestr(zipfile.ZipInfo(name, _STAMP), content_of, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def icons() -> dict[str, bytes]:
    """Return the icons by the file names that the manifest uses."""
    return {"color.png": color_icon(), "outline.png": outline_icon()}


def main(arguments: list[str] | None = None) -> int:
    """Build, check and write the package. Return 0 if it was written, 1 if it has faults, and 2 if npm
    failed.
    """
    options = _parser().parse_args(arguments)
    website = options.website or f"https://{options.host}"
    values = {
        "BOT_APP_ID": options.app_id.lower(),
        "HOST": options.host,
        "NAME": options.name,
        "DEVELOPER": options.developer,
        "VERSION": options.version,
        "WEBSITE": website,
        "PRIVACY": options.privacy or website,
        "TERMS": options.terms or website,
    }
    manifest, files = filled_manifest(values), icons()
    try:
        schema = json.loads(manifest_schema(install_teams_tools()).read_text(encoding="utf-8"))
    except TeamsToolsError as missing:
        print(missing, file=sys.stderr)
        return 2
    if faults := faults_of(manifest, files, schema):
        print("\n".join(f"Teams would reject the package: {fault}" for fault in faults), file=sys.stderr)
        return 1
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(package_of(manifest, files))
    print(f"{out}: {out.stat().st_size} bytes, manifest {manifest['manifestVersion']}, checked.")
    return 0


def _fill(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, str):
        return Template(value).substitute(values) if "${" in value else value
    if isinstance(value, list):
        return [_fill(item, values) for item in value]
    if isinstance(value, dict):
        return {name: _fill(item, values) for name, item in value.items()}
    return value


def _faults_of_names(manifest: dict[str, Any]) -> list[str]:
    ids = [("id", manifest.get("id")), *(("botId", bot.get("botId")) for bot in manifest.get("bots", ()))]
    faults = [
        f"{name}: not the id of an application: {value!r}"
        for name, value in ids
        if not _GUID.fullmatch(str(value)) or value == _NO_GUID
    ]
    faults += [
        f"validDomains: not a host's name alone: {domain!r}"
        for domain in manifest.get("validDomains", ())
        if not _HOST.fullmatch(domain)
    ]
    if not _VERSION.fullmatch(str(manifest.get("version"))):
        faults.append(f"version: not three numbers: {manifest.get('version')!r}")
    for place in _PLACES:
        group, _, name = place.partition(".")
        if not str(manifest.get(group, {}).get(name, "")).startswith("https://"):
            faults.append(f"{place}: not an https address")
    return faults


def _faults_of_icons(manifest: dict[str, Any], files: dict[str, bytes]) -> list[str]:
    faults = []
    for kind, (size, mode) in _ICONS.items():
        content = files.get(str(manifest.get("icons", {}).get(kind)))
        if content is None:
            faults.append(f"icons.{kind}: the file is not in the package")
            continue
        with Image.open(io.BytesIO(content)) as image:
            if (image.format, image.size, image.mode) != ("PNG", (size, size), mode):
                faults.append(
                    f"icons.{kind}: {image.format} {image.size} {image.mode}, not PNG {size} {mode}"
                )
            elif kind == "outline" and not _is_white_on_clear(image):
                faults.append("icons.outline: holds another colour than white, or nothing transparent")
    return faults


def _is_white_on_clear(image: Image.Image) -> bool:
    seen = [pixel for _, pixel in image.getcolors(OUTLINE_SIZE * OUTLINE_SIZE) or ()]
    opaque = [pixel for pixel in seen if isinstance(pixel, tuple) and pixel[3] > 0]
    return bool(opaque) and len(opaque) < len(seen) and all(pixel[:3] == (255, 255, 255) for pixel in opaque)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.teams_package", description=__doc__)
    parser.add_argument("--app-id", required=True, help="application id of the bot (BOT_APP_ID)")
    parser.add_argument("--host", required=True, help="host of the app, such as NAME.azurewebsites.net")
    parser.add_argument("--name", default="Groundwork", help="display name of the app, at most 30 characters")
    parser.add_argument(
        "--developer", default="Groundwork", help="name of the publisher, at most 32 characters"
    )
    parser.add_argument(
        "--version",
        default="1.0.0",
        help="version of the package, such as 1.0.1; Teams installs only a higher one",
    )
    for place in ("website", "privacy", "terms"):
        parser.add_argument(
            f"--{place}", help=f"https URL of the {place} page (default: the address of the app)"
        )
    parser.add_argument(
        "--out",
        default="build/groundwork-teams.zip",
        help="path of the package to write (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
