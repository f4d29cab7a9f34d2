"""The front door. Law: it finds the command's word and imports that command's file, and no other's.

The options of `OPTIONS` are accepted before and after the word. Every failure of a command ends here, as a
line on stderr and an exit code of `exits` (SPEC section 14).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

from memd.memctl import exits
from memd.memctl.ctl import SCOPES, Ctl
from memd.memctl.exits import Stop, Usage
from memd.memctl.terminal import RED, CannotWrite, ErrorStream, ReaderGone, Stream
from memd_client.errors import MemdError

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from types import ModuleType
    from typing import NoReturn

COMMANDS = {
    "list": "the notes of both stores; also without a command",
    "show": "one note's exact text, now or at a version",
    "search": "every note that shares a word, best first",
    "focus": "the block of notes that a prompt earns",
    "index": "a row for every note, as a prompt may carry it",
    "save": "save a note from a file or standard input",
    "remember": "save a line as a note; its name and hook are made from it",
    "edit": "edit a note in your editor",
    "forget": "delete a note and every version of it, after asking",
    "rename": "give a note another name",
    "move": "move a note to the other store",
    "log": "who did what to the notes, newest first",
    "diff": "what changed in a note, from one version to another",
    "restore": "make an old version of a note its text again",
    "import": "copy the notes of a directory into the repo store",
    "history": "what was said in past sessions: search, or show an entry",
    "import-claude": "bring Claude Code's notes here now",
    "import-kimi": "bring Kimi Code's notes here now",
    "stores": "every store there is, and whose it is",
    "adopt": "bring here the notes of a repository that was moved",
    "stats": "how much the stores hold and are used",
    "check": "what is wrong with the notes; exits 1 if anything is",
    "verify": "what rebuild would find, changing nothing; exits 1 if anything",
    "rebuild": "bring back every note the journal holds",
    "reconcile": "take in what was edited, added or deleted by hand",
    "completion": "the completion of bash, zsh or fish",
    "browse": "look through the notes on the whole screen",
    "doctor": "look at everything and say what is wrong and what mends it",
    "status": "how the daemon is",
    "start": "start the daemon, if none answers",
    "stop": "stop the daemon and wait until it is gone",
    "restart": "stop the daemon and start it again, after an upgrade say",
    "logs": "what the daemon said of itself",
    "service": "have systemd run the daemon, or not any more",
    "mcp": "serve an agent that speaks MCP, over standard input and output",
    "setup": "have an agent use memd: hooks, MCP entry, permission",
    "hook": "what the hooks of an agent call",
    "version": "the versions of memctl and of the daemon",
}
"""Every command and its line in the help."""

HELP = """\
usage: memctl [OPTION…] [COMMAND] [ARGUMENT…]

Read and keep the notes that coding agents work with: one markdown file a fact. There are two
stores: `repo` is the repository you are in, shared by its worktrees; `global` is everywhere.

commands (`memctl COMMAND --help` says more):
{commands}

options, before or after the command:
  -C DIR               work as if started in DIR
  --scope repo|global  one store instead of both (`save` saves to repo without it)
  --json               the daemon's reply as JSON
  --no-autostart       do not start a daemon when none answers
  -h, --help           this text, or that of the command
  --version            the same as the command `version`

examples:
  memctl save --type feedback --description "Buildhost /tmp is RAM; never scratch there"
  memctl search scratch tmp
  memctl show buildhost-tmp-is-ram-never
  memctl diff buildhost-tmp-is-ram-never
  memctl restore buildhost-tmp-is-ram-never 1f0c9a2b
  memctl move buildhost-tmp-is-ram-never global
  memctl import ~/notes --dry-run
  memctl forget buildhost-tmp-is-ram-never

  printf 'Run it with -j1.\\n' |
    memctl save --name flaky-tests --type project --description "The test suite is flaky in parallel"

exit codes: 0 ok; 1 a finding, or you said no; 2 wrong usage; 3 not found; 4 refused; 5 no daemon;
6 the store cannot be read or written, or is busy.
"""

HELP_WIDTH = 100

_VALUED = ("-C", "--scope")
_BARE = ("--json", "--no-autostart", "-h", "--help", "--version")
_STORE_KEY = re.compile(r"--.*--(-[0-9a-f]{8})?", re.DOTALL)
"""A store's key (SPEC 1), which is a word although it looks like an option."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that is told its width: to find one out, as it does for every option, imports shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_WIDTH)


class Parser(argparse.ArgumentParser):
    """The parser of one command's options; what it refuses is a `Usage`."""

    def error(self, message: str) -> NoReturn:
        """Raise `Usage`."""
        raise Usage(message)


def run(argv: Sequence[str]) -> int:
    """Run the command of `argv`; gives its exit code. Only Ctrl-C, and what is a bug, passes through."""
    out = Stream(sys.stdout, os.environ)
    err = ErrorStream(sys.stderr, os.environ, out)
    try:
        code = _run(argv, out, err)
        out.flush()
    except ReaderGone:
        out.drop()
        return exits.READER_GONE
    except CannotWrite as error:
        out.drop()
        _complain(err, f"cannot write the output: {error}")
        return exits.STORAGE
    return code


def split(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command's word, None where there is none, and all the other arguments in their order."""
    rest = list(argv)
    index = 0
    while index < len(rest):
        argument = rest[index]
        if not argument.startswith("-"):
            return rest.pop(index), rest
        if argument in _VALUED:
            index += 1
        elif argument not in _BARE and not argument.startswith(("-C", "--scope=")):
            break  # an option of `list`, which is what runs without a word
        index += 1
    return None, rest


def module_name(command: str) -> str:
    """The module that holds a command: its word, each `-` a `_`, with a `_` after one that is Python's own."""
    return f"memd.memctl.commands.{command.replace('-', '_')}" + "_" * iskeyword(command)


def _run(argv: Sequence[str], out: Stream, err: ErrorStream) -> int:
    name, rest = None, list(argv)
    try:
        name, rest = _command(argv)
        if name is None:
            out.text(_help())
            return exits.OK
        return _run_command(name, rest, out, err)
    except Stop as stop:
        _complain(err, stop.text)
        if isinstance(stop, Usage):
            err.line(f"try: memctl {name} --help" if name is not None else "try: memctl --help")
        return stop.code
    except MemdError as error:
        if "--json" in rest:
            err.json({"code": error.code, "message": error.message, "data": error.data})
        else:
            _complain(err, error.message, *getattr(error, "__notes__", ()))
        return exits.code_of(error)


def _command(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command and its arguments; None where memctl's own help is wanted. Raises `Usage`."""
    word, rest = split(argv)
    if word == "help":
        word, rest = split(rest)
        rest = ["--help", *rest]
    if word is None:
        if "-h" in rest or "--help" in rest:
            return None, rest
        if "--version" in rest:
            rest.remove("--version")
            return "version", rest
        return "list", rest
    if word not in COMMANDS:
        raise Usage(f"there is no command {word}{_meant(word)}")
    return word, rest


def _run_command(name: str, argv: list[str], out: Stream, err: ErrorStream) -> int:
    module = import_module(module_name(name))
    parser = _parser(name, module)
    options, words = _parsed(parser, argv)
    if options.help:
        out.text(parser.format_help())
        return exits.OK
    fewest, most = module.WORDS
    if len(words) < fewest:
        raise Usage(f"{name} needs {module.USAGE.split()[0]}")
    if most is not None and len(words) > most:
        raise Usage(f"{name} takes no {words[most]}")
    with Ctl(
        out,
        err,
        directory=options.directory,
        scope=options.scope,
        is_json=options.json,
        may_start=not options.no_autostart,
    ) as ctl:
        out.pages = getattr(module, "PAGES", False) and ctl.has_person()
        code: int = module.run(ctl, options, words)
    return code


def _parser(name: str, module: ModuleType) -> Parser:
    parser = Parser(
        usage=f"memctl {name} {module.USAGE}".rstrip(),
        description=module.__doc__,
        formatter_class=_Formatter,
        add_help=False,
        allow_abbrev=False,
    )
    module.options(parser)
    everywhere = parser.add_argument_group("options, before or after the command")
    everywhere.add_argument("-C", dest="directory", metavar="DIR", help="work as if started in DIR")
    everywhere.add_argument("--scope", choices=SCOPES, help="one store instead of both")
    everywhere.add_argument("--json", action="store_true", help="the daemon's reply as JSON")
    everywhere.add_argument("--no-autostart", action="store_true", help="do not start a daemon when none answers")
    everywhere.add_argument("-h", "--help", action="store_true", help="this text")
    return parser


def _parsed(parser: Parser, argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options and the words between and after them; what follows `--` is words. Raises `Usage`."""
    end = argv.index("--") if "--" in argv else len(argv)
    options, words = parser.parse_known_args(argv[:end])
    unknown = [word for word in words if word.startswith("-") and word != "-" and not _STORE_KEY.fullmatch(word)]
    if unknown:
        raise Usage(f"there is no option {unknown[0]}; words that begin with a dash go after --")
    return options, words + argv[end + 1 :]


def _complain(err: ErrorStream, text: str, *more: str) -> None:
    err.line(("memctl: ", RED), text)
    for line in more:
        err.line(line)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = (f"  {name:{width}}  {summary}" for name, summary in COMMANDS.items())
    return HELP.format(commands="\n".join(lines))


def _meant(word: str) -> str:
    """The nearest command, as the end of a sentence; nothing when none is near."""
    import difflib

    near = difflib.get_close_matches(word, COMMANDS, 1)
    return f"; did you mean {near[0]}?" if near else ""
