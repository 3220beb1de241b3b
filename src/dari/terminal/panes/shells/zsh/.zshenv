# Crux in zsh; see ../bash.sh for what is sent. This file stands in for the user's own, which it reads first.
if [[ -n ${CRUX_ZDOTDIR+set} ]]; then
  export ZDOTDIR=$CRUX_ZDOTDIR
  unset CRUX_ZDOTDIR
else
  unset ZDOTDIR
fi
if [[ -n ${CRUX_PLAIN-} ]]; then
  setopt no_rcs
elif [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then
  source ${ZDOTDIR-$HOME}/.zshenv
fi
if [[ -n ${CRUX_LOGIN-} && -r ${ZDOTDIR-$HOME}/.zprofile ]]; then
  source ${ZDOTDIR-$HOME}/.zprofile
fi
[[ -o interactive && -n ${CRUX_NONCE-} ]] && source ${${(%):-%x}:A:h:h}/zsh_hooks.zsh
unset CRUX_NONCE CRUX_PLAIN CRUX_LOGIN CRUX_CONTROL
