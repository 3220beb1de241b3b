"""`completion`: a script that lets a shell ask us what fits. The answers (`__complete`) come from the cache alone."""

from __future__ import annotations

import argparse

from dari.cli.remote.failures import OK
from dari.cli.remote.world import World

NAME = "completion"
HELP = "Print a completion script: commands, options, servers, tools, and a tool's own flags."
EXAMPLES = (
    ("completion bash >> ~/.bashrc", "bash"),
    ("completion zsh >> ~/.zshrc", "zsh, after compinit"),
    ("completion fish > ~/.config/fish/conf.d/dari_remote.fish", "fish"),
)

_BASH = r"""# Completion of `crewx mcp remote` and `dari remote` for bash.
_dari_remote() {
    local line=${COMP_LINE:0:COMP_POINT} candidate ask=("$1" remote)
    local cur=${line##*[[:space:]]}
    [[ ${1##*/} == crewx ]] && ask=("$1" mcp remote)
    # readline replaces what follows the last of its own breaks, which stand inside our words.
    local before=${cur%"${cur##*[=:@]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        [[ $candidate == "$cur"* ]] && COMPREPLY+=("${candidate#"$before"}")
    done < <("${ask[@]}" __complete "$line" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _dari_remote crewx dari
"""

_ZSH = r"""#compdef crewx dari
# Completion of `crewx mcp remote` and `dari remote` for zsh.
_dari_remote() {
    local -a ask found
    local line
    ask=("${words[1]}" remote)
    [[ ${words[1]:t} == crewx ]] && ask=("${words[1]}" mcp remote)
    for line in ${(f)"$("${ask[@]}" __complete "${(j: :)words[1,CURRENT]}" 2>/dev/null)"}; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#found} )); then
        _describe -V 'dari remote' found
    else
        _files
    fi
}
compdef _dari_remote crewx dari
"""

_FISH = r"""# Completion of `crewx mcp remote` and `dari remote` for fish.
function __dari_remote
    set -l line (commandline -cp | string collect)
    $argv __complete $line 2>/dev/null
end
complete -c crewx -f -a '(__dari_remote crewx mcp remote)'
complete -c dari -f -a '(__dari_remote dari remote)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="which shell it is for")


async def run(arguments: argparse.Namespace, world: World) -> int:
    world.terminal.out(SCRIPTS[arguments.shell])
    return OK
