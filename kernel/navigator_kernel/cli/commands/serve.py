"""`navigator serve`: the kernel over HTTP, and the tokens of its clients."""

from __future__ import annotations

import html
import sys
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, NotLoadable, UsageProblem
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.gateway.tokens import TokenStore
    from navigator_kernel.values.http.endpoint import Role

_TIME = lazy_compile(r"(\d{1,5})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


_LOGS = "What stderr gets: text for what went wrong, or JSON lines, one for each answer, too."
_SECONDS = "Seconds that turns have to end on SIGTERM."
_NAMES = "A name that clients have for this server, such as a proxy's, with its port if they give one; may be repeated."
_ROLES = click.Choice(["read", "chat", "approve", "admin"])
_ROLE = "What a new token may do; each role may do what those before it may."
_LIFE = "How long a new token lives: 30m, 12h, 90d."


@click.command("serve")
@click.option("--open", "is_shown", is_flag=True, help="Open the page in a browser, signed in for 12 hours.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8766, show_default=True, help="0 for any.")
@click.option("--name", "names", multiple=True, metavar="HOST", help=_NAMES)
@click.option("--certificate", type=click.Path(exists=True, dir_okay=False), help="A TLS certificate, in PEM.")
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="The certificate's key, in PEM.")
@click.option("--insecure", is_flag=True, help="Allow an address that other machines can reach, without TLS.")
@click.option(
    "--publish", is_flag=True, help="Publish the project's skills without a token: navigator install URL reads them."
)
@click.option("--patience", type=click.FloatRange(0, 600), default=10.0, show_default=True, help=_SECONDS)
@click.option("--logs", type=click.Choice(["text", "json"]), default="text", show_default=True, help=_LOGS)
@click.option("--new-token", is_flag=True, help="Make a token, print it once, and exit.")
@click.option("--role", type=_ROLES, default="admin", show_default=True, help=_ROLE)
@click.option("--expires", default="90d", show_default=True, metavar="TIME", help=_LIFE)
@click.option("--label", default="", help="A note for a new token.")
@click.option("--list-tokens", is_flag=True, help="List the tokens of this project, and exit.")
@click.option("--revoke", metavar="ID", help="Remove a token, and exit.")
@json_option
@pass_app
def command(
    app: App,
    *,
    is_shown: bool,
    host: str,
    port: int,
    names: Sequence[str],
    certificate: str | None,
    key: str | None,
    insecure: bool,
    publish: bool,
    patience: float,
    logs: str,
    new_token: bool,
    role: Role,
    expires: str,
    label: str,
    list_tokens: bool,
    revoke: str | None,
    as_json: bool,
) -> None:
    """Serve this project over HTTP: chat as an event stream, runs, sessions, skills, and OpenAI's API.

    Every request needs a token. `navigator serve --new-token` prints one.
    """
    if new_token:
        time = _TIME.fullmatch(expires)
        if time is None:
            raise UsageProblem(f"{expires!r} is not a time", hint="30m, 12h or 90d")
        new, text = _tokens(app).create(role, label, timedelta(**{_UNITS[time[2]]: int(time[1])}))
        if as_json:
            document({"id": new.id, "role": new.role, "expires": new.expires, "token": text})
            return
        lines(text)
        note(f"{new.role}, until {new.expires}; it is not shown again")
    elif list_tokens:
        keys = ("id", "role", "label", "created", "expires")
        tokens = [{key: getattr(token, key) for key in keys} for token in _tokens(app).listed()]
        if as_json:
            document({"tokens": tokens})
        else:
            table(keys, [tuple(map(str, token.values())) for token in tokens])
    elif revoke is not None:
        _tokens(app).revoke(revoke)
        document({"revoked": revoke}) if as_json else say_lines(f"revoked {revoke}")
    else:
        if (certificate is None) is not (key is None):
            raise UsageProblem("a certificate needs its key", hint="give --certificate and --key")
        if logs == "json":
            from navigator_kernel.gateway.logs import log_as_json

            log_as_json()
        tls = (certificate, key) if certificate is not None and key is not None else None
        _serve(
            app,
            _tokens(app),
            host,
            port,
            tls,
            names=names,
            is_shown=is_shown,
            is_open=insecure,
            publishes=publish,
            patience=patience,
            as_json=as_json,
        )


def _serve(
    app: App,
    tokens: TokenStore,
    host: str,
    port: int,
    tls: tuple[str, str] | None,
    *,
    names: Sequence[str],
    is_shown: bool,
    is_open: bool,
    publishes: bool,
    patience: float,
    as_json: bool,
) -> None:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.gateway.server import serve

    def ready(url: str) -> None:
        if as_json:
            document({"url": url})
            sys.stdout.flush()
        else:
            note(f"serving {app.root} at {url}")
        if is_shown and not opener.open(url):
            note("no browser was found: open the address, and sign in with a token of navigator serve --new-token")

    if not is_shown and not tokens.listed():
        note("there is no token yet: navigator serve --new-token")
    project = Project(app.root, app.settings, here=app.root, stays=True)
    gateway, opener = Gateway(project, publishes=publishes), PageOpener(project)
    gateway.endings.append(opener.close)
    serve(gateway, host, port, ready, certificate=tls, is_open=is_open, patience=patience, names=names)


def _tokens(app: App) -> TokenStore:
    try:
        from navigator_kernel.gateway.gateway import open_tokens
    except ImportError as error:
        hint = "pip install 'navigator-kernel[gateway]'"
        raise NotLoadable("serve needs the extra 'gateway', which is not installed", hint=hint) from error
    return open_tokens(app.bare)


# Opens the page in the person's browser, signed in. The token is in a file that only the person can read, and the
# browser gets the file's name: everybody on the machine can read an argument of a process.

LIFE = timedelta(hours=12)
_FORM = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>Navigator</title>\n'


class PageOpener:
    """Opens the page of one project; `close` removes what `open` made."""

    def __init__(self, project: Project) -> None:
        from navigator_kernel.gateway.gateway import open_tokens

        self._tokens, self._writer = open_tokens(project), project.state_writer
        self._file = project.state.folder / "open-page.html"
        self._made: list[str] = []

    def open(self, url: str) -> bool:
        """Opens the page and returns whether a browser was found."""
        import webbrowser

        held, text = self._tokens.create("admin", "page", LIFE)
        self._made.append(held.id)
        form = _FORM.format(html.escape(f"{url}/#token={text}"))
        self._writer.write(self._file, form.encode(), mode=0o600)
        return webbrowser.open(self._file.as_uri())

    def close(self) -> None:
        """Removes the token and the file."""
        for name in self._made:
            with suppress(NotFound):
                self._tokens.revoke(name)
        if self._made:
            self._writer.remove(self._file)
