# Crux in fish; see bash.sh for what is sent.
if status is-interactive; and set -q CRUX_NONCE
    set -g __crux_nonce $CRUX_NONCE
    set -g __crux_n 0
    set -g __crux_code 0
    function __crux_start --on-event fish_preexec
        printf '\e]133;C\a\e]7701;%s;C;%s\a' $__crux_nonce $__crux_n
    end
    function __crux_tell
        set -g __crux_n (math $__crux_n + 1)
        set -l place (string replace -ra '[[:cntrl:]]' '?' -- $PWD)
        printf '\e]7701;%s;D;%s;%s;%s\a\e]133;D;%s\a\e]7;file://%s%s\a' $__crux_nonce $__crux_n $argv[1] $place \
            $argv[1] $hostname (string escape --style=url -- $place)
    end
    # At once, since fish marks a missing line end before its prompt; a line without a command has no such event.
    function __crux_done --on-event fish_postexec
        set -g __crux_code $status
        set -g __crux_told 1
        __crux_tell $__crux_code
    end
    function __crux_before --on-event fish_prompt
        set -q __crux_told; or __crux_tell $__crux_code
        set -e __crux_told
        printf '\e]133;A\a'
    end
    functions -q fish_prompt; or function fish_prompt
        printf '%s> ' (prompt_pwd)
    end
    if not functions fish_prompt | string match -q '*__crux_prompt*'
        functions -e __crux_prompt
        functions -c fish_prompt __crux_prompt
        function fish_prompt
            __crux_prompt
            printf '\e]133;B\a\e]7701;%s;B\a' $__crux_nonce
        end
    end
    # Enter for a command that may be incomplete, for which fish would only open another line.
    function __crux_enter
        if commandline --is-valid; or test -z (commandline | string trim | string collect)
            commandline -f execute
        else
            commandline -r ''
            printf '\e]7701;%s;P\a' $__crux_nonce
        end
    end
    for map in default insert
        bind -M $map \e\[7702~ __crux_enter
    end
    if set -q CRUX_CONTROL # see dari/terminal/quiet.py
        set -g __crux_control $CRUX_CONTROL
        function __crux_quiet
            test -r $__crux_control/do; and source $__crux_control/do >$__crux_control/answer 2>&1 </dev/null
        end
        for map in default insert
            bind -M $map \e\[7701~ __crux_quiet
        end
    end
end
set -e CRUX_CONTROL
set -e CRUX_NONCE
set -e CRUX_PLAIN
set -e CRUX_LOGIN
