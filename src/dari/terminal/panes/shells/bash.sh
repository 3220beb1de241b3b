# Crux in bash: where prompts end, where commands begin and how they end, sent as private sequences (OSC 7701)
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
[[ $- == *i* && -n ${CRUX_NONCE-} ]] && . "${BASH_SOURCE[0]%/*}/bash_hooks.sh"
unset CRUX_NONCE CRUX_PLAIN CRUX_LOGIN CRUX_CONTROL
