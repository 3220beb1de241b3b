# Crux in dash, ash and other shells that read $ENV; see bash.sh for what is sent. They have no hook before a
# command, so only its end is sent, by the prompt. No process is started for it: the prompt is only expanded.
[ -n "${CRUX_LOGIN-}" ] && [ -r ~/.profile ] && . ~/.profile
if [ -n "${CRUX_ENV-}" ]; then
  ENV=$CRUX_ENV
  export ENV
  [ -z "${CRUX_PLAIN-}" ] && [ -r "$ENV" ] && . "$ENV"
else
  unset ENV
fi
case $- in
*i*)
  if [ -n "${CRUX_NONCE-}" ]; then
    __crux_n=0
    __crux_e=$(printf '\033')
    __crux_a=$(printf '\007')
    PS1="${__crux_e}]7701;${CRUX_NONCE};D;\$((__crux_n=__crux_n+1));\$?;\$PWD${__crux_a}${__crux_e}]133;D;\$?${__crux_a}${__crux_e}]7;file://\$PWD${__crux_a}${__crux_e}]133;A${__crux_a}${PS1-$ }${__crux_e}]133;B${__crux_a}${__crux_e}]7701;${CRUX_NONCE};B${__crux_a}"
    PS2="${PS2-> }${__crux_e}]7701;${CRUX_NONCE};P${__crux_a}"
    unset __crux_e __crux_a
  fi
  ;;
esac
unset CRUX_NONCE CRUX_ENV CRUX_PLAIN CRUX_LOGIN
