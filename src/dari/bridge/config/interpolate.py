"""Replace `${…}` in a profile when it is used. No command is ever run to get a value.

${NAME}  ${NAME:-default}  ${env:NAME}      our environment; a default counts when it is unset or empty
${file:path}  ${keyring:service/name}       a file beside the profile's own, the system's keyring
${input:id}                                 what a person was asked for, or DARI_INPUT_<ID>
${PWD}  ${workspaceFolder}  ${userHome} …   folders
$${…}                                       stands for itself
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from msgspec import Struct, structs

from dari.bridge.config.errors import FieldProblem
from dari.bridge.config.normalize import check_allowed_path, check_url
from dari.bridge.config.profile import AllowedPath, AuthSettings, HttpSettings, Input, Profile, StdioSettings
from dari.bridge.config.secret import Mask, Secret, is_sensitive
from dari.errors import DariError, InvalidInput, NotFound, Unavailable
from dari.installation import install_extra
from dari.paths import read_regular

MAX_DOTENV_BYTES = 1024 * 1024
_DOTENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*?)\s*")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_dotenv(path: Path) -> dict[str, str]:
    """The variables of the file; an error names the file and the line, never its text."""
    try:
        text = read_regular(path, MAX_DOTENV_BYTES).decode()
    except (OSError, ValueError) as error:
        fact = f"{path} cannot be read: {_describe_unreadable(error)}"
        raise FieldProblem(("envFile",), fact, "name a file of variables, or remove the field") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _DOTENV_LINE.fullmatch(line)
        if match is None:
            raise FieldProblem(("envFile",), f"{path}:{number} must be NAME=value", "correct the line")
        found[match[1]] = _dotenv_value(match[2])
    return found


def _dotenv_value(text: str) -> str:
    if double := _DOUBLE.fullmatch(text):
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), double[1])
    if single := _SINGLE.fullmatch(text):
        return single[1]
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


MAX_VALUE_FILE_BYTES = 1024 * 1024
MAX_REFERENCE_DEPTH = 5
KeyringLookup = Callable[[str, str], str | None]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPEN = re.compile(r"\$?\$\{")
_COMMANDS = ("cmd", "command", "shell", "exec")


class InterpolationContext(Struct, frozen=True, kw_only=True):
    """What references are filled in from."""

    environ: Mapping[str, str]
    cwd: Path
    home: Path
    workspace: Path
    """The project of the file: the folder that holds `.crewx`, else the working folder."""
    inputs: tuple[Input, ...] = ()
    answers: Mapping[str, str] = {}
    keyring: KeyringLookup | None = None
    """None: the `keyring` package, imported when the first reference needs it."""


class ResolvedProfile(Struct, frozen=True):
    """A profile to run with, and the mask for everything that is printed on its behalf."""

    profile: Profile
    mask: Mask


def resolve_profile(profile: Profile, context: InterpolationContext) -> ResolvedProfile:
    """The profile with all references filled in; an error names file, line, profile and field, never a value."""
    filler = _Interpolator(context, Path(profile.source.file).parent)
    try:
        if isinstance(profile.connection, StdioSettings):
            connection: StdioSettings | HttpSettings = filler.stdio(profile.connection)
        else:
            connection = filler.http(profile.connection)
    except FieldProblem as problem:
        field = ".".join(str(step) for step in problem.path)
        raise InvalidInput(f"{profile.source}: {profile.id}: {field}: {problem.fact}", problem.hint) from None
    return ResolvedProfile(structs.replace(profile, connection=connection), Mask(filler.secrets))


class _Interpolator:
    def __init__(self, context: InterpolationContext, folder: Path) -> None:
        self._context = context
        self._folder = folder
        self.secrets: set[str] = set()

    def stdio(self, settings: StdioSettings) -> StdioSettings:
        context = self._context
        env_file = self.text(settings.env_file, "envFile") if settings.env_file else None
        env: dict[str, Secret] = {}
        if env_file:
            for name, value in read_dotenv(self._path(env_file)).items():
                env[name] = self._hidden(value, name)
        for name, secret in settings.env.items():
            env[name] = self._secret(secret, "env", name)
        cwd = self.text(settings.cwd, "cwd") if settings.cwd else ""
        return structs.replace(
            settings,
            command=self._expanded(self.text(settings.command, "command")),
            args=tuple(self.text(text, "args", index) for index, text in enumerate(settings.args)),
            cwd=os.path.normpath(context.workspace / self._expanded(cwd)),
            env=env,
            env_file=env_file,
            allowed_paths=self._allowed_paths(settings.allowed_paths),
            network=structs.replace(
                settings.network, hosts=tuple(self.text(host, "network") for host in settings.network.hosts)
            ),
        )

    def _allowed_paths(self, given: tuple[AllowedPath, ...] | None) -> tuple[AllowedPath, ...] | None:
        if given is None:
            return None
        paths = []
        for index, one in enumerate(given):
            path = self._expanded(self.text(one.path, "allowedPaths", index))
            if fact := check_allowed_path(path):
                raise FieldProblem(("allowedPaths", index), fact, "write the whole path")
            paths.append(AllowedPath(os.path.normpath(path), one.mode))
        return tuple(paths)

    def http(self, settings: HttpSettings) -> HttpSettings:
        headers = {name: self._secret(value, "headers", name) for name, value in settings.headers.items()}
        for name, value in headers.items():
            if re.search(r"[\r\n\0]", value.reveal()):
                raise FieldProblem(("headers", name), "a header is one line", "check the value behind the reference")
        return structs.replace(
            settings,
            url=self._url(settings.url, "url", settings.is_base),
            fallback_url=(
                self._url(settings.fallback_url, "fallbackUrl", settings.is_base) if settings.fallback_url else None
            ),
            is_base=False,
            headers=headers,
            auth=self._auth(settings.auth),
        )

    def _url(self, template: str, field: str, is_base: bool) -> str:
        url = self.text(template, field)
        check_url(url.replace("${", ""), field)
        return base_to_endpoint(url) if is_base else url

    def _auth(self, auth: AuthSettings) -> AuthSettings:
        changed: dict[str, object] = {}
        for name in ("token", "client_secret"):
            if (value := getattr(auth, name)) is not None:
                changed[name] = self._secret(value, "auth", name)
        for name in ("client_id", "client_metadata_url", "authorization_url", "token_url", "metadata_url", "resource"):
            if (value := getattr(auth, name)) is not None:
                changed[name] = self.text(value, "auth", name)
        return structs.replace(auth, **changed)

    def text(self, template: str, *path: str | int) -> str:
        return self._fill(template, path, 0)

    def _secret(self, template: Secret, *path: str) -> Secret:
        value = self._fill(template.reveal(), path, 0)
        return self._hidden(value, path[-1])

    def _hidden(self, value: str, name: str) -> Secret:
        if is_sensitive(name):
            self.secrets.add(value)
            self.secrets.update(part for part in value.split()[1:] if value.lower().startswith(("bearer ", "basic ")))
        return Secret(value)

    def _fill(self, template: str, path: tuple[str | int, ...], depth: int) -> str:
        if "${" not in template:
            return template
        if depth > MAX_REFERENCE_DEPTH:
            raise FieldProblem(
                path, f"references are nested deeper than {MAX_REFERENCE_DEPTH} levels", "write them out"
            )
        filled, at = [], 0
        while match := _OPEN.search(template, at):
            filled.append(template[at : match.start()])
            end = _closing(template, match.end())
            if end is None:
                raise FieldProblem(path, "a '${' has no '}'", "close it, or write '$${' for the characters")
            if match.group() == "$${":
                filled.append(template[match.start() + 1 : end + 1])
            else:
                filled.append(self._value(template[match.end() : end], path, depth))
            at = end + 1
        return "".join(filled) + template[at:]

    def _value(self, reference: str, path: tuple[str | int, ...], depth: int) -> str:
        body, mark, default = reference.partition(":-")
        try:
            value = self._lookup(body, path)
        except DariError as error:
            if not (mark and isinstance(error, NotFound)):
                raise FieldProblem(path, error.message, error.hint) from None
            value = ""
        if value or not mark:
            return value
        return self._fill(default, path, depth + 1)

    def _lookup(self, body: str, path: tuple[str | int, ...]) -> str:
        kind, colon, rest = body.partition(":")
        if not colon:
            return self._folder_or_variable(body, path)
        if kind == "env":
            return self._variable(rest, path)
        if kind == "file":
            return self._kept(_file_text(self._path(rest)))
        if kind == "keyring":
            return self._kept(_from_keyring(rest, self._context.keyring))
        if kind == "input":
            return self._input(rest)
        if kind in _COMMANDS:
            raise InvalidInput(f"${{{kind}:…}} would run a command, which is never done", "use ${keyring:…}")
        raise InvalidInput(f"${{{kind}:…}} is not a known reference", "known: env, file, keyring, input")

    def _folder_or_variable(self, name: str, path: tuple[str | int, ...]) -> str:
        context = self._context
        folders = {
            "PWD": str(context.cwd),
            "cwd": str(context.cwd),
            "workspaceFolder": str(context.workspace),
            "workspaceFolderBasename": context.workspace.name,
            "userHome": str(context.home),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        return folders[name] if name in folders else self._variable(name, path)

    def _variable(self, name: str, path: tuple[str | int, ...]) -> str:
        if not _NAME.fullmatch(name):
            raise InvalidInput("a reference must name a variable", "a name has letters, digits and '_'")
        value = self._context.environ.get(name)
        if value is None:
            raise NotFound(f"the variable {name} is not set", f"set {name}, or write ${{{name}:-default}}")
        return self._kept(value) if is_sensitive(name) or is_sensitive(str(path[-1])) else value

    def _input(self, id: str) -> str:
        context = self._context
        variable = "DARI_INPUT_" + re.sub(r"[^A-Za-z0-9]", "_", id).upper()
        known = next((one for one in context.inputs if one.id == id), None)
        value = context.answers.get(id) or context.environ.get(variable) or (known.default if known else None)
        if value is None:
            asked = f" ({known.description})" if known and known.description else ""
            raise NotFound(f"the input '{id}'{asked} has no value", f"set {variable}")
        return self._kept(value)

    def _kept(self, value: str) -> str:
        self.secrets.add(value)
        return value

    def _path(self, text: str) -> Path:
        return self._folder / self._expanded(text)

    def _expanded(self, text: str) -> str:
        if text == "~" or text.startswith("~/"):
            return str(self._context.home) + text[1:]
        return text


def base_to_endpoint(url: str) -> str:
    """A base URL counts with and without its final `/mcp` (design 001 §5 and the client behind it)."""
    head, mark, query = url.partition("?")
    head = head.rstrip("/")
    return (head if head.endswith("/mcp") else f"{head}/mcp") + mark + query


def _closing(text: str, at: int) -> int | None:
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return None


def _file_text(path: Path) -> str:
    try:
        return read_regular(path, MAX_VALUE_FILE_BYTES).decode().rstrip("\r\n")
    except FileNotFoundError:
        raise NotFound(f"the file {path} does not exist", "make it, or correct the path") from None
    except (OSError, ValueError) as error:
        fact = f"the file {path} cannot be read: {_describe_unreadable(error)}"
        raise InvalidInput(fact, "name a file that holds one value") from None


def _describe_unreadable(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "no UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)  # a NUL in its name


def _from_keyring(body: str, ask: KeyringLookup | None) -> str:
    service, slash, name = body.rpartition("/")
    if not (slash and service and name):
        raise InvalidInput("a keyring reference is ${keyring:service/name}", "name the service and the entry")
    if ask is None:
        try:
            ask = import_module("keyring").get_password
        except ImportError:
            raise Unavailable("the package 'keyring' is not installed", install_extra("keyring")) from None
    try:
        value = ask(service, name)
    except Exception as error:
        raise Unavailable(f"the keyring did not answer ({type(error).__name__})", "unlock it, then try again") from None
    if value is None:
        raise NotFound(f"the keyring has no '{service}/{name}'", f"store it: keyring set {service} {name}")
    return value
