"""The kernel for one project, as other programs use it."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from msgspec.structs import replace

from navigator_kernel.adapters.models.providers import spelled_out
from navigator_kernel.bootstrap.places import find_root
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.bootstrap.routed import routed
from navigator_kernel.bootstrap.turns import MOST, Keep, Turns, refuse_message
from navigator_kernel.config.settings import load_settings
from navigator_kernel.errors import Busy, NotFound, NotLoadable, Refused, UsageProblem
from navigator_kernel.library.calls import Approvals, SkillCalls, chosen_skills
from navigator_kernel.library.run import Run
from navigator_kernel.library.values import Installed, Route, Skill, installed_of, route_of, skill_of
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.tools.places import refuse_closed
from navigator_kernel.turn.message import preprocess
from navigator_kernel.values.request import Message, Said, Session
from navigator_kernel.values.rights import words_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from langchain_core.tools import StructuredTool
    from pydantic_ai.toolsets import AbstractToolset

    from navigator_kernel.events import Listener
    from navigator_kernel.values.approval import Approval
    from navigator_kernel.values.reply import Reply

    Lasting = Literal["once", "session", "always"]
    Asked = Callable[[Turns], tuple[Message, Session]]

_YES = {"once": "yes", "session": "for this session", "always": "always"}


class Kernel:
    """The kernel for the project at `root`, an existing folder. `session` names the conversation of messages that name
    none; without it each message is a conversation of its own. `model` is asked in place of the configured model.

    Turns run side by side in one event loop; turns of one session run one after another. Every failure is a
    KernelError.
    """

    def __init__(
        self, root: str | os.PathLike[str] = ".", *, session: str | None = None, model: str | None = None
    ) -> None:
        self.root = find_root(Path.cwd(), os.fspath(root) or ".")
        self.session = session
        settings = load_settings(self.root)
        if model is not None:
            spelled_out(model, settings.models)  # raises UsageProblem or NotFound for an unusable name
            settings = replace(settings, models=settings.models._replace(default=model))
        self._project = Project(self.root, settings, here=self.root)
        self._turns = Turns(self._project)
        self._approvals = Approvals()
        self._running: dict[str, Run] = {}
        self._guard = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._most = asyncio.Semaphore(MOST)
        self._sessions = WeakValueDictionary[str, asyncio.Lock]()
        self._turns_asked = 0

    def run(self, message: str, *, session: str | None = None, allow: Sequence[str] = ()) -> Run:
        """Returns a turn, which begins when it is iterated or awaited: `async for event in kernel.run("…")`. `allow`
        are the rights that a model's tools have in it without a question: run, scripts, read, edit:FOLDER/.

        A message never counts as a yes: if its session waits for one, the message withdraws that question.
        """
        refuse_message(message)
        name, words = session or self.session, words_in(allow)

        def begin(turns: Turns) -> tuple[Message, Session]:
            stored = replace(turns.session(name), approval=None)
            return Message(text=message, attended=False, allow=words), stored

        return self._begin(begin, "waiting" if name is None else "always", name)

    async def ask(self, message: str, *, session: str | None = None, allow: Sequence[str] = ()) -> Reply:
        """Returns the reply to a message. `reply.approval` is the approval that it waits for, or None."""
        return await self.run(message, session=session, allow=allow)

    def approve(self, approval: str, *, lasting: Lasting = "once") -> Run:
        """Returns the turn that continues after a yes to exactly what was asked, by the id of its approval
        (`reply.approval.id`): for this once, for its session, or always. NotFound if that approval no longer waits."""
        return self._answer(approval, _YES[lasting])

    def deny(self, approval: str) -> Run:
        """Returns the turn that follows a no to an approval, by its id."""
        return self._answer(approval, "no")

    async def cancel(self, run: str) -> None:
        """Ends the run with its processes, and waits until it has ended. NotFound if it is not under way."""
        if run not in self._running:
            raise NotFound(f"no run {run!r} is under way here", hint="it may have ended: navigator why")
        await self._running[run].aclose()

    def route(self, message: str, *, k: int = 5) -> Route:
        """Returns the route of a message, without asking a model and without running anything."""
        return route_of(routed(self._project, message), k)

    def skills(self) -> list[Skill]:
        """Returns every skill, by name, including disabled ones."""
        held = self._project.catalogue.list_resources(enabled_only=False)
        return [skill_of(one) for one in held if one.type == "skill"]

    def history(self, session: str, *, last: int | None = None) -> list[Said]:
        """Returns the entries of a stored session, oldest first; with `last` only so many. NotFound for an unknown
        session."""
        self._project.sessions.load(session)
        return self._project.sessions.history(session, last)

    def install(
        self,
        source: str,
        *,
        skills: Sequence[str] = (),
        all: bool = False,  # noqa: A002 - the option's name
        ref: str = "",
        user: bool = False,
    ) -> Installed:
        """Installs from a repository, a folder or an archive, for the project, or with `user` for the person. The call
        is the person's yes to what the skills declare; a skill that the scanner blocks is Refused. It blocks while it
        fetches."""
        names = [skills] if isinstance(skills, str) else skills
        options = InstallOptions(everything=all, ref=ref, user=user)
        return installed_of(self._project.lifecycle.install(source, names, options))

    def as_pydantic_ai(self, *skills: str, files: Sequence[str] = ()) -> AbstractToolset[Any]:
        """Returns the tools of `skills` for an agent of pydantic-ai; without names, those of all skills that the person
        accepts. They may read `files` of the project without a question. NotLoadable without pydantic-ai."""
        calls = self._calls(skills, files)
        try:
            from navigator_kernel.library.pydantic_ai_tools import KernelToolset
        except ImportError as error:
            raise _missing("pydantic-ai-slim") from error
        return KernelToolset(calls)

    def as_langchain(self, *skills: str, files: Sequence[str] = ()) -> list[StructuredTool]:
        """Returns the same tools for agents of LangChain and LangGraph. NotLoadable without langchain-core."""
        calls = self._calls(skills, files)
        try:
            from navigator_kernel.library.langchain_tools import langchain_tools
        except ImportError as error:
            raise _missing("langchain-core") from error
        return langchain_tools(calls)

    def approvals(self) -> tuple[Approval, ...]:
        """Returns the calls of other agents' models that wait because the person has to agree first, oldest first."""
        return self._approvals.waiting()

    def allow(self, approval: str, *, lasting: Literal["once", "session"] = "once") -> None:
        """Says yes to exactly the call that was asked about, by the id of its approval: the model may make it once.
        With "session" the yes is for all calls of the same subject, if that is bound to bytes. NotFound if no such call
        waits."""
        self._approvals.allow(approval, lasting)

    def _answer(self, approval: str, said: str) -> Run:
        return self._begin(lambda turns: turns.answered(approval, said), "always", approval.rpartition(":")[0])

    def _begin(self, asked: Asked, keep: Keep, session: str | None, agreed: Sequence[str] = ()) -> Run:
        name = self._project.ids.new()

        def missed(error: Busy) -> None:
            logging.getLogger("navigator").warning("%s; this turn is not in its history", error.message)

        async def take(told: Listener) -> Reply:
            self._running[name] = run
            try:
                async with self._turn(session):
                    return await self._turns.take(
                        *asked(self._turns), (told,), keep=keep, run=name, agreed=agreed, missed=missed
                    )
            finally:
                del self._running[name]

        run = Run(name, take)
        return run

    @asynccontextmanager
    async def _turn(self, session: str | None) -> AsyncIterator[None]:
        """Takes one turn at a time in a session that has a name; Busy if another event loop has a turn."""
        loop = asyncio.get_running_loop()
        with self._guard:
            if loop is not self._loop:
                if self._turns_asked:
                    raise Busy("this Kernel is used in another event loop", hint="open a Kernel for each loop")
                self._loop, self._most, self._sessions = loop, asyncio.Semaphore(MOST), WeakValueDictionary()
            self._turns_asked += 1
        try:
            one = asyncio.Lock() if session is None else self._sessions.setdefault(session, asyncio.Lock())
            async with one, self._most:
                yield
        finally:
            with self._guard:
                self._turns_asked -= 1

    async def _run_skill(self, name: str, arguments: str, agreed: Sequence[str]) -> Reply:
        """Runs the command of a skill in a turn of its own; the caller asks its question, not a session."""
        message = Message(text=f"/{name} {arguments}".strip(), attended=False)
        request = preprocess(message, self._project.files)
        if request.files or [one.name for one in request.commands] != [name]:
            raise UsageProblem("arguments hold no @file and no command", hint="name files by their paths")
        session = Session(id=self._project.ids.new(), notice_shown=True)
        return await self._begin(lambda _: (message, session), "never", None, agreed)

    def _calls(self, skills: Sequence[str], files: Sequence[str]) -> SkillCalls:
        project = self._project
        return SkillCalls(
            skills=chosen_skills(project.catalogue, skills),
            tools=project.tools,
            run_skill=self._run_skill,
            approvals=self._approvals,
            catalogue=project.catalogue,
            consents=project.consents,
            ids=project.ids,
            project=self.root,
            workspace=project.box / "workspace" / self._project.ids.new(),
            named=tuple(_named(self.root, name) for name in files),
            mentioned=project.files.named,
        )


def _named(root: Path, name: str) -> Path:
    """The real path of a file of the project; NotFound if there is none, Refused if it is closed to tools."""
    path = Path(os.path.realpath(root / name))
    if not path.is_relative_to(root):
        raise Refused(f"{name!r} is outside the project", hint="copy the file into the project", reason="outside")
    refuse_closed(path.relative_to(root).parts, name)
    if not path.is_file():
        raise NotFound(f"no file is called {name!r}", hint="paths start at the project's folder")
    return path


def _missing(package: str) -> NotLoadable:
    return NotLoadable(f"{package} is not installed", hint=f"pip install {package}")
