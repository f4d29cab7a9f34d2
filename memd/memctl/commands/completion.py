"""Print the completion of memctl for a shell: bash, zsh or fish.

    memctl completion bash > ~/.local/share/bash-completion/completions/memctl
    memctl completion zsh > "${fpath[1]}/_memctl"
    memctl completion fish > ~/.config/fish/completions/memctl.fish

Commands, options and the names of notes are completed. Names come from the daemon as you type; without
one there are none, and nothing is said.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from memd.memctl.ctl import Ctl
from memd.memctl.exits import OK, Usage
from memd_client.errors import MemdError

USAGE = "bash|zsh|fish"
WORDS = (1, 1)

NAMING = ("diff", "edit", "forget", "log", "move", "rename", "restore", "show")
"""The commands whose first word is a note's name."""
EVERYWHERE = ("-C", "--scope", "--json", "--no-autostart", "--help")


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code."""
    match words[0]:
        case "bash":
            ctl.out.text(_filled(BASH))
        case "zsh":
            ctl.out.text(_filled(ZSH))
        case "fish":
            ctl.out.text(_filled(FISH))
        case "names":  # what the scripts ask for
            _names(ctl)
        case other:
            raise Usage(f"there is no completion for {other}; bash, zsh and fish have one")
    return OK


def _names(ctl: Ctl) -> None:
    """Write the name of each note; nothing where no daemon answers, since a person is typing."""
    ctl.may_start = False
    try:
        reply = ctl.memory("list")
    except (MemdError, Usage):
        return
    for name in dict.fromkeys(row["name"] for row in reply["notes"]):
        ctl.out.line(name)


def _filled(script: str) -> str:
    """The script with the commands, their options and their lines in the help filled in."""
    from memd.memctl.front import COMMANDS  # the front imports the commands

    lines = {name: summary.replace("'", "") for name, summary in COMMANDS.items()}
    flags = {name: [flag for flag, _ in flags_of(name)] for name in COMMANDS}
    filled = {
        "@COMMANDS@": " ".join(COMMANDS),
        "@EVERYWHERE@": " ".join(EVERYWHERE),
        "@NAMING@": "|".join(NAMING),
        "@NAMING_WORDS@": " ".join(NAMING),
        "@DESCRIBED@": "\n".join(f"        '{name}:{line}'" for name, line in lines.items()),
        "@FLAGS@": "\n".join(f"        {name}) flags='{' '.join(own)}' ;;" for name, own in flags.items() if own),
        "@FISH_COMMANDS@": "\n".join(
            f"complete -c memctl -n __fish_use_subcommand -a {name} -d '{line}'" for name, line in lines.items()
        ),
        "@FISH_FLAGS@": "\n".join(
            f"complete -c memctl -n '__fish_seen_subcommand_from {name}' -l {flag.removeprefix('--')} -d '{line}'"
            for name in COMMANDS
            for flag, line in flags_of(name)
        ),
    }
    for mark, text in filled.items():
        script = script.replace(mark, text)
    return script


def flags_of(command: str) -> list[tuple[str, str]]:
    """A command's own long options and what each does."""
    from importlib import import_module

    from memd.memctl.front import module_name

    parser = ArgumentParser(add_help=False)
    import_module(module_name(command)).options(parser)
    return [
        (flag, (action.help or "").replace("'", ""))
        for action in parser._actions
        for flag in action.option_strings
        if flag.startswith("--")
    ]


BASH = r"""# bash completion for memctl
_memctl() {
    local current=${COMP_WORDS[COMP_CWORD]} command= ended= index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        case ${COMP_WORDS[index]} in
            -C|--scope) ((index++)) ;;
            --) ended=1 ;;
            -*) ;;
            *) command=${command:-${COMP_WORDS[index]}} ;;
        esac
    done
    [[ $ended ]] || case ${COMP_WORDS[COMP_CWORD-1]} in
        -C) COMPREPLY=($(compgen -d -- "$current")); return ;;
        --scope) COMPREPLY=($(compgen -W "repo global" -- "$current")); return ;;
        --type) COMPREPLY=($(compgen -W "user feedback project reference" -- "$current")); return ;;
    esac
    if [[ $current == -* && ! $ended ]]; then
        local flags=
        case $command in
@FLAGS@
        esac
        COMPREPLY=($(compgen -W "@EVERYWHERE@ $flags" -- "$current"))
        return
    fi
    case $command in
        "") COMPREPLY=($(compgen -W "@COMMANDS@" -- "$current")) ;;
        completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$current")) ;;
        import|save) COMPREPLY=($(compgen -f -- "$current")) ;;
        @NAMING@) _memctl_names "$current" "$ended" ;;
    esac
}
# A name may hold anything, so it is never a word list, which bash would expand: it is quoted as the word was begun.
_memctl_names() {
    local begun=$1 quote= name
    case $begun in
        \"*|\'*) quote=${begun:0:1} begun=${begun:1} ;;
        *) begun=${begun//\\/} ;;
    esac
    while IFS= read -r name; do
        [[ $name == "$begun"* && ( $2 || $name != -* ) ]] || continue
        case $quote in
            \") name=${name//\\/\\\\} name=${name//\"/\\\"} name=${name//\$/\\\$} name=${name//\`/\\\`} ;;
            \') name=${name//\'/\'\\\'\'} ;;
            *) printf -v name %q "$name"; name=${name//:/\\:} name=${name//=/\\=} ;;
        esac
        COMPREPLY+=("$name")
    done < <(memctl completion names 2>/dev/null)
}
complete -F _memctl memctl
"""

ZSH = """\
#compdef memctl
# zsh completion for memctl
_memctl() {
    local curcontext=$curcontext state state_descr line
    local -a commands names
    typeset -A opt_args
    commands=(
@DESCRIBED@
    )
    _arguments -C -S \\
        '-C[work as if started in DIR]:directory:_directories' \\
        '--scope[one store instead of both]:scope:(repo global)' \\
        '--json[the reply as JSON]' \\
        '--no-autostart[do not start a daemon]' \\
        '--help[help]' \\
        '1:command:->command' \\
        '*:argument:->argument'
    case $state in
        command) _describe command commands ;;
        argument)
            local flags=
            case $line[1] in
@FLAGS@
            esac
            [[ $PREFIX == -* ]] && (( ! $words[(I)--] )) && { compadd -- ${=flags} @EVERYWHERE@; return }
            case $line[1] in
                @NAMING@)
                    names=(${(f)"$(memctl completion names 2>/dev/null)"})
                    (( $words[(I)--] )) || names=(${names:#-*})
                    compadd -a names ;;
                completion) compadd bash zsh fish ;;
                *) _files ;;
            esac ;;
    esac
}
if [ "$funcstack[1]" = "_memctl" ]; then _memctl "$@"; else compdef _memctl memctl; fi
"""

FISH = """\
# fish completion for memctl
complete -c memctl -f
complete -c memctl -s C -d 'work as if started in DIR' -xa '(__fish_complete_directories)'
complete -c memctl -l scope -d 'one store instead of both' -xa 'repo global'
complete -c memctl -l json -d 'the reply as JSON'
complete -c memctl -l no-autostart -d 'do not start a daemon'
complete -c memctl -l help -d 'help'
@FISH_COMMANDS@
@FISH_FLAGS@
function __memctl_names
    set -l dashed -v
    contains -- -- (commandline -opc); and set dashed
    memctl completion names 2>/dev/null | string match $dashed -- '-*'
end
complete -c memctl -n '__fish_seen_subcommand_from @NAMING_WORDS@' -a '(__memctl_names)'
complete -c memctl -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
complete -c memctl -n '__fish_seen_subcommand_from import save' -F
"""
