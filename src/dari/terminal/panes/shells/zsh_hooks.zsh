# The hooks of zsh: read by zsh/.zshenv at its start, and by a zsh that joins a pane later.
typeset -g __crux_nonce=$CRUX_NONCE
typeset -gi __crux_n=0
typeset -g __crux_more=$'%{\e]7701;'$__crux_nonce$';P\a%}'
typeset -g __crux_end=$'%{\e]133;B\a\e]7701;'$__crux_nonce$';B\a%}'
zsh-newuser-install() { : }
# After `exec >log` to the terminal itself; not around a pipe, whose output is to come first.
__crux_say() {
  if [[ -t 1 || -p /dev/stdout ]]; then print -rn -- "$1"; else print -rn -- "$1" >/dev/tty; fi
}
__crux_before() {
  {
    local code=$?
    (( __crux_n += 1 ))
    local place=${PWD//[[:cntrl:]]/?}
    __crux_say $'\e]7701;'"$__crux_nonce;D;$__crux_n;$code;$place"$'\a\e]133;D;'"$code"$'\a\e]7;file://'\
"$HOST${place//\%/%25}"$'\a\e]133;A\a'
    return $code
  } 2>/dev/null
}
__crux_after() {
  {
    [[ $PROMPT == *"$__crux_end"* ]] || PROMPT=$PROMPT$__crux_end
    [[ $PROMPT2 == *"$__crux_more"* ]] || PROMPT2=$PROMPT2$__crux_more
    [[ ${preexec_functions[-1]-} == __crux_start ]] || preexec_functions=(${preexec_functions:#__crux_*} __crux_start)
  } 2>/dev/null
}
# zsh gives the line up when ^C comes inside a hook, and tells the exit code of the command before it. No ^C counts
# from the word that a command begins to the end of the last hook: `Pane.interrupt` presses it again.
__crux_start() {
  {
    setopt local_options local_traps
    trap '' INT
    __crux_say $'\e]133;C\a\e]7701;'"$__crux_nonce;C;$__crux_n"$'\a'
  } 2>/dev/null
}
typeset -g __crux_control=${CRUX_CONTROL-}
__crux_quiet() {
  [[ -r $__crux_control/do ]] && . "$__crux_control/do" >"$__crux_control/answer" 2>&1 </dev/null
}
# The first prompt comes after the user's own files: only then are ours first and last in the row.
__crux_setup() {
  local code=$?
  precmd_functions=(__crux_before ${precmd_functions:#__crux_*} __crux_after)
  preexec_functions=(${preexec_functions:#__crux_*} __crux_start)
  setopt interactive_comments no_bang_hist no_prompt_sp no_prompt_cr
  zle_highlight=(${zle_highlight:#paste:*} paste:none)
  if [[ -n $__crux_control ]]; then # see dari/terminal/quiet.py
    zle -N __crux_quiet
    local map
    for map in emacs viins vicmd; do bindkey -M $map '\e[7701~' __crux_quiet; done
  fi
  unfunction __crux_setup
  (exit $code)
  __crux_before
  __crux_after
}
typeset -ga precmd_functions preexec_functions
precmd_functions+=(__crux_setup)
