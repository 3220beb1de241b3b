# Crux in bash: where prompts end, where commands begin and how they end, told in private sequences (OSC 7701)
# that carry a secret word, so that nothing a command prints can be taken for them; and as OSC 133 for others.
if [[ -n ${CRUX_LOGIN-} ]]; then # what login shells read of the user's, and .bashrc once
  for __crux_file in ~/.bash_profile ~/.bash_login ~/.profile; do
    [[ -r $__crux_file ]] || continue
    [[ $(<"$__crux_file") == *bashrc* ]] && CRUX_PLAIN=1
    . "$__crux_file"
    break
  done
  unset __crux_file
fi
[[ -r ~/.bashrc && -z ${CRUX_PLAIN-} ]] && . ~/.bashrc
if [[ $- == *i* && -n ${CRUX_NONCE-} ]]; then
  __crux_nonce=$CRUX_NONCE
  __crux_n=0
  __crux_before() {
    local code=$?
    __crux_n=$((__crux_n + 1))
    local place=${PWD//[[:cntrl:]]/?}
    printf '\e]7701;%s;D;%s;%s;%s\a\e]133;D;%s\a\e]7;file://%s\a\e]133;A\a' \
      "$__crux_nonce" "$__crux_n" "$code" "$place" "$code" "${HOSTNAME}${place//%/%25}"
    return $code
  }
  __crux_end='\[\e]133;B\a\e]7701;'$__crux_nonce';B\a\]'
  __crux_after() {
    [[ $PS1 == *"$__crux_end"* ]] || PS1=$PS1$__crux_end
  }
  PS0='\e]133;C\a\e]7701;'$__crux_nonce';C;${__crux_n}\a'${PS0-}
  # In groups without stderr, so that `set -x` does not show them.
  PROMPT_COMMAND='{ __crux_before; } 2>/dev/null'${PROMPT_COMMAND:+$'\n'}${PROMPT_COMMAND-}$'\n''{ __crux_after; } 2>/dev/null'
  set +H # `!` is no history word in commands that were written by a program
  shopt -s promptvars
  bind 'set enable-bracketed-paste on' 2>/dev/null
  bind 'set enable-active-region off' 2>/dev/null
  if [[ -n ${CRUX_CONTROL-} ]]; then # see dari/terminal/quiet.py
    __crux_control=$CRUX_CONTROL
    __crux_quiet() {
      [[ -r $__crux_control/do ]] && . "$__crux_control/do" >"$__crux_control/answer" 2>&1 </dev/null
    }
    for __crux_map in emacs vi-insert vi-command; do
      bind -m "$__crux_map" -x '"\e[7701~":__crux_quiet' 2>/dev/null
    done
    unset __crux_map
  fi
fi
unset CRUX_NONCE CRUX_PLAIN CRUX_LOGIN CRUX_CONTROL
