# The hooks of bash: read by bash.sh at its start, and by a bash that joins a pane later.
__crux_nonce=$CRUX_NONCE
__crux_n=0
__crux_before() {
  local code=$?
  __crux_n=$((__crux_n + 1))
  local place=${PWD//[[:cntrl:]]/?} words
  printf -v words '\e]7701;%s;D;%s;%s;%s\a\e]133;D;%s\a\e]7;file://%s\a\e]133;A\a' \
    "$__crux_nonce" "$__crux_n" "$code" "$place" "$code" "${HOSTNAME}${place//%/%25}"
  # After `exec >log` to the terminal itself; not around a pipe, whose output is to come first.
  if [[ -t 1 || -p /dev/stdout ]]; then printf %s "$words"; else printf %s "$words" >/dev/tty; fi
  return $code
}
__crux_end='\[\e]133;B\a\e]7701;'$__crux_nonce';B\a\]'
__crux_more='\[\e]7701;'$__crux_nonce';P\a\]'
__crux_begin='\e]133;C\a\e]7701;'$__crux_nonce';C;${__crux_n}\a'
# The same from a command of its own, for prompts that bash shows where its stderr goes: after `exec 2>log`.
__crux_more_apart='$(printf "\e]7701;'$__crux_nonce';P\a" >/dev/tty)'
__crux_begin_apart='$(printf "\e]133;C\a\e]7701;%s;C;%s\a" '$__crux_nonce' "$__crux_n" >/dev/tty)'
# A sourced file may set any of these anew; each prompt puts ours back. Descriptor 3 is the shell's stderr.
__crux_after() {
  if [[ -t 3 || (-p /dev/fd/3 && ! -t 1) ]]; then
    [[ ${PS2-} != *"$__crux_more_apart"* ]] || PS2=${PS2//"$__crux_more_apart"/}
    [[ ${PS0-} != *"$__crux_begin_apart"* ]] || PS0=${PS0//"$__crux_begin_apart"/}
    [[ ${PS1-} == *"$__crux_end"* ]] || PS1=${PS1-}$__crux_end
    [[ ${PS2-} == *"$__crux_more"* ]] || PS2=${PS2-}$__crux_more
    [[ ${PS0-} == *"$__crux_begin"* ]] || PS0=$__crux_begin${PS0-}
    # Behind a pipe the end of the command comes later than the prompt: it is told once more there.
    [[ -t 1 || ! -t 3 || ! -p /dev/stdout ]] || printf '\e]7701;%s;B\a' "$__crux_nonce"
  else
    PS0=${PS0-} PS1=${PS1-} PS2=${PS2-}
    PS0=${PS0//"$__crux_begin"/} PS1=${PS1//"$__crux_end"/} PS2=${PS2//"$__crux_more"/}
    [[ $PS2 == *"$__crux_more_apart"* ]] || PS2=$PS2$__crux_more_apart
    [[ $PS0 == *"$__crux_begin_apart"* ]] || PS0=$__crux_begin_apart$PS0
    printf '\e]133;B\a\e]7701;%s;B\a' "$__crux_nonce" >/dev/tty
  fi
}
# In groups without stderr, so that `set -x` does not show them.
[[ ${PROMPT_COMMAND-} == *__crux_before* ]] ||
  PROMPT_COMMAND='{ __crux_before; } 2>/dev/null'${PROMPT_COMMAND:+$'\n'}${PROMPT_COMMAND-}$'\n''{ __crux_after; } 3>&2 2>/dev/null'
set +H # no history expansion of `!` in commands that a program wrote
shopt -s promptvars
bind 'set enable-bracketed-paste on' 2>/dev/null
bind 'set enable-active-region off' 2>/dev/null
if [[ -n ${CRUX_CONTROL-} ]]; then # see dari/terminal/out_of_band.py
  __crux_control=$CRUX_CONTROL
  __crux_quiet() {
    [[ -r $__crux_control/do ]] && . "$__crux_control/do" >"$__crux_control/answer" 2>&1 </dev/null
  }
  for __crux_map in emacs vi-insert vi-command; do
    bind -m "$__crux_map" -x '"\e[7701~":__crux_quiet' 2>/dev/null
  done
  unset __crux_map
fi
