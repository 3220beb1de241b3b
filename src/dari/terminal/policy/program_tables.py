"""Commands that run other commands: where the inner command starts, as data.

`PREFIXES`: the words after the options are a command. The value is (options that take a value, how many plain
words come first). `STRINGS`: the value of an option is a shell text. `CODE`: the value of an option is a program
in another language. `DOUBTFUL`: an option that makes the command run something we cannot read.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = {
    "sh": "sh",
    "dash": "sh",
    "ash": "sh",
    "ksh": "sh",
    "mksh": "sh",
    "yash": "sh",
    "bash": "bash",
    "rbash": "bash",
    "zsh": "zsh",
    "fish": "fish",
}

PREFIXES: dict[str, tuple[str, int]] = {
    "sudo": ("-u -g -p -C -h -r -t -T -U -D -R --user --group --prompt --chdir --host --role --type --chroot", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C -a --unset --chdir --argv0", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "noglob": ("", 0),
    "nocorrect": ("", 0),
    "-": ("", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p -P -u --class --classdata", 0),
    "chrt": ("-p -T -P -D", 1),
    "taskset": ("", 1),
    "numactl": ("-C -m -N -i -p --cpunodebind --membind --interleave", 0),
    "time": ("-f -o --format --output", 0),
    "gtime": ("-f -o --format --output", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k --signal --kill-after", 1),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "unbuffer": ("", 0),
    "chroot": ("--userspec --groups", 1),
    "unshare": (
        "-w -S -G -R --propagation --map-user --map-group --setgroups --setuid --setgid --root --wd "
        "--boottime --monotonic --map-users --map-groups",
        0,
    ),
    "nsenter": ("-t -S -G --target --setuid --setgid", 0),
    "setpriv": ("--reuid --regid --groups --bounding-set --inh-caps", 0),
    "prlimit": ("", 0),
    "setarch": ("", 1),
    "linux64": ("", 0),
    "strace": ("-a -b -e -E -I -o -O -p -P -s -S -u -X", 0),
    "ltrace": ("-a -A -D -e -F -l -n -o -p -s -u -w -x", 0),
    "valgrind": ("", 0),
    "xargs": (
        "-a -d -E -I -L -l -n -P -s --arg-file --delimiter --max-args --max-procs --max-chars --replace --max-lines",
        0,
    ),
    "flock": ("-w -E --wait --timeout --conflict-exit-code", 1),
    "pkexec": ("--user", 0),
    "fakeroot": ("-l -s -i -b --lib --faked", 0),
    "ssh-agent": ("-a -E -P -t", 0),
    "chronic": ("", 0),
    "ifne": ("", 0),
    "rlwrap": ("-b -c -C -D -f -H -l -O -p -P -q -S -s -t -w -z", 0),
    "torsocks": ("-a -P -u -p", 0),
    "eatmydata": ("", 0),
    "cgexec": ("-g", 0),
    "setlock": ("", 1),
    "envdir": ("", 1),
    "softlimit": ("-a -c -d -f -l -m -o -p -r -s -t", 0),
    "parallel": ("-j -a -I -n -N --jobs --joblog --results --colsep --arg-file", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "setuidgid": ("", 1),
    "chpst": ("-u -U -b -/ -n -l -L -m -d -o -p -f -c -r -t -e", 0),
    "systemd-run": (
        "-p -u -H -M -E --description --on-calendar --on-active --service-type --nice "
        "--machine --unit --property --uid --gid --slice --setenv --working-directory",
        0,
    ),
    "dbus-run-session": ("--config-file", 0),
    "xvfb-run": ("-n -s -e -f -p -w", 0),
    "faketime": ("", 1),
    "direnv": ("", 2),
    "firejail": ("", 0),
    "proxychains": ("-f", 0),
    "proxychains4": ("-f", 0),
    "caffeinate": ("-t -w", 0),
    "entr": ("", 0),
    "coproc": ("", 0),
}

# The words after the options, joined by blanks, are a text for `sh -c`.
JOINED: dict[str, tuple[str, int]] = {
    "eval": ("", 0),
    "watch": ("-n --interval -q --equexit", 0),
    "ssh": (
        "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B",
        1,
    ),
    "hyperfine": ("-w -r -m -M -p -c -n -L -P -s -u --warmup --runs", 0),
    "at": ("-f -q -t", 0),
    "batch": ("-f -q -t", 0),
    "run-parts": ("", 0),
    "sched": ("", 1),
}

STRINGS: dict[str, str] = {
    "su": "-c --command --session-command -s --shell",
    "runuser": "-c --command --session-command -s --shell",
    "sg": "-c",
    "newgrp": "-c",
    "emulate": "-c",
    "fzf": "--preview --bind",
    "sk": "--preview --bind -c --cmd",
    "tcpdump": "-z",
    "bpftrace": "-c",
    "hyperfine": "-p --prepare -s --setup -c --cleanup -C --conclude",
    "npx": "-c --call",
    "mosh": "--ssh --server",
    "rclone": "--password-command",
    "restic": "--password-command",
    "borg": "--rsh",
    "lftp": "-c -e",
    "wget": "--use-askpass",
    "script": "-c --command",
    "flock": "-c --command",
    "watchexec": "--shell",
    "nodemon": "--exec -x",
    "split": "--filter",
    "dpkg": "--pre-invoke --post-invoke --status-logger",
    "go": "-exec -toolexec -vettool",
    "tar": "--to-command --use-compress-program -I --rsh-command --info-script --new-volume-script -F",
    "gtar": "--to-command --use-compress-program -I --rsh-command --info-script --new-volume-script -F",
    "bsdtar": "--use-compress-program",
    "rsync": "-e --rsh --rsync-path",
    "zip": "-TT --unzip-command",
    "man": "-P --pager -H --html",
    "sort": "--compress-program",
    "rg": "--pre --hostname-bin",
    "ag": "--pager",
    "bat": "--pager",
    "scp": "-S",
    "sftp": "-S",
    "nc": "-e -c --exec --sh-exec",
    "ncat": "-e -c --exec --sh-exec",
    "netcat": "-e -c",
    "npm": "--script-shell -c --call",
    "mapfile": "-C",
    "readarray": "-C",
    "compgen": "-C -F",
}

# Options whose value is a program in the tool's own language, or a file with one; the tools are not interpreters.
CODE: dict[str, str] = {
    "emacs": "--eval -eval --execute -execute -l --load -f --funcall --batch",
    "vim": "-c --cmd -S -s -u",
    "vi": "-c --cmd -S -s -u",
    "nvim": "-c --cmd -S -s -u -l",
    "view": "-c --cmd -S -s -u",
    "ex": "-c --cmd -S -s -u",
    "gdb": "-ex --args -args -x --eval-command -iex -ix",
    "lldb": "-o -O -s -b",
    "make": "--eval -E -f --file --makefile",
    "gmake": "--eval -E -f --file --makefile",
    "nmap": "--script",
    "openssl": "-engine",
    "gcc": "-wrapper -fplugin",
    "cc": "-wrapper -fplugin",
    "clang": "-fplugin",
    "curl": "-K --config",
    "ssh": "-F",
    "scp": "-F -o",
    "sftp": "-F -o -b",
    "apt": "-o",
    "apt-get": "-o",
    "cargo": "--config",
}

# They run code whatever their arguments are, so their name decides.
INTERPRETERS = _words(
    "python pypy perl ruby node nodejs deno bun php lua luajit tclsh expect Rscript R osascript pry sqlite3 psql mysql"
)
FETCHERS = _words("curl wget fetch http https xh aria2c nc ncat netcat socat ssh")

# Builtins that run nothing by themselves: they need no place on a list of allowed commands.
BUILTINS = _words(
    "cd pushd popd dirs pwd echo printf true false : test [ exit logout return break continue shift wait jobs fg bg "
    "disown set shopt setopt unsetopt export declare typeset local readonly unset let read getopts umask times type "
    "ulimit emulate and or not math string count contains status random begin end"
)

# What they run is judged in their place.
TRANSPARENT = _words(
    "env command builtin exec noglob nocorrect - nohup setsid nice ionice chrt taskset time gtime timeout gtimeout "
    "stdbuf unbuffer xargs parallel eval watch trap"
)

# Somewhere among their words a command begins, behind options of their own: every word may be its first.
CARRYING: dict[str, tuple[str, ...]] = {
    "docker": ("exec", "run"),
    "podman": ("exec", "run"),
    "nerdctl": ("exec", "run"),
    "docker-compose": ("exec", "run"),
    "kubectl": ("exec", "run", "debug"),
    "oc": ("exec", "run", "rsh"),
    "uv": ("run",),
    "uvx": (),
    "poetry": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "pipenv": ("run",),
    "rye": ("run",),
    "conda": ("run",),
    "mamba": ("run",),
    "bundle": ("exec",),
    "npx": (),
    "bunx": (),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "npm": ("exec", "x", "explore"),
    "bun": ("x", "exec", "run"),
    "rustup": ("run",),
    "pipx": ("run",),
    "ip": ("exec",),
    "perf": ("record", "stat", "trace", "kvm", "mem", "lock", "c2c"),
    "aws-vault": ("exec",),
    "op": ("run",),
    "doppler": ("run",),
    "rr": ("record",),
    "nix": ("run", "shell", "develop"),
    "nix-shell": (),
    "mise": ("exec", "x"),
    "asdf": ("exec",),
    "devcontainer": ("exec",),
    "vagrant": ("ssh",),
    "lxc": ("exec",),
    "machinectl": ("shell",),
    "gosu": (),
    "tini": (),
    "dumb-init": (),
    "bwrap": (),
    "cmake": ("-E",),
}

# Without a command of their own they open a shell, which reads what they are given.
OPENS_SHELL = _words("ssh su newgrp chroot unshare nsenter script sg runuser")

# A line of their input can start a program, as `!rm x` does in ed.
ESCAPING = _words("ed ex vi vim nvim view make gmake dc m4 gdb ftp sftp lftp")

# Names of an option value or a plain word that start something: shown as the reason.
DOUBTFUL: dict[str, tuple[str, ...]] = {
    "tar": ("--checkpoint-action", "--checkpoint-exec"),
    "gtar": ("--checkpoint-action", "--checkpoint-exec"),
    "less": ("+!",),
    "ssh": ("-oProxyCommand", "-oLocalCommand", "-oPermitLocalCommand", "-oKnownHostsCommand"),
    "gh": ("alias",),
    "crontab": ("-e",),
}

# Settings of git whose value is run, or names a file or directory of things that are run.
GIT_RUNS = _words(
    "core.pager core.editor core.sshcommand core.askpass core.fsmonitor core.gitproxy core.alternaterefscommand "
    "sequence.editor pager.* alias.* diff.external diff.*.command diff.*.textconv merge.*.driver difftool.*.cmd "
    "mergetool.*.cmd difftool.*.path mergetool.*.path filter.*.clean filter.*.smudge filter.*.process "
    "credential.helper credential.*.helper gpg.program gpg.*.program browser.*.cmd browser.*.path man.*.cmd man.*.path "
    "sendemail.*cmd sendemail.smtpserver uploadpack.packobjectshook remote.*.uploadpack remote.*.receivepack "
    "remote.*.vcs submodule.*.update instaweb.* imap.tunnel guitool.*.cmd web.browser trailer.*.command trailer.*.cmd "
    "interactive.difffilter init.templatedir core.hookspath include.path includeif.* gpg.ssh.defaultkeycommand"
)
GIT_FILES = frozenset(("init.templatedir", "core.hookspath", "include.path"))

# Options of git before the subcommand, and of a subcommand, that run what they are given.
GIT_GLOBAL = ("--config-env", "--exec-path")
GIT_OPTIONS: dict[str, str] = {
    "clone": "-u --upload-pack --template",
    "fetch": "--upload-pack",
    "pull": "--upload-pack",
    "ls-remote": "--upload-pack --exec",
    "push": "--receive-pack --exec",
    "archive": "--exec",
    "fetch-pack": "--upload-pack --exec",
    "send-pack": "--receive-pack --exec",
    "rebase": "-x --exec",
    "grep": "-O --open-files-in-pager",
    "diff": "--ext-diff",
    "log": "--ext-diff",
    "show": "--ext-diff",
    "send-email": "--smtp-server --sendmail-cmd --to-cmd --cc-cmd",
    "init": "--template",
}
GIT_RUNNERS = frozenset(
    ["filter-branch", "difftool", "mergetool", "hook", "daemon", "shell", "fast-import", "web--browse"]
)

# Setting one of these makes a shell or the linker run something, or changes how a line is read.
DECIDING_NAMES = _words(
    "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV ZDOTDIR PROMPT_COMMAND PS0 PS1 PS2 PS4 PROMPT RPROMPT "
    "SHELLOPTS BASHOPTS BASH_FUNC LESSOPEN LESSCLOSE GIT_EXEC_PATH GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM "
    "GIT_CONFIG_COUNT GIT_TEMPLATE_DIR PYTHONSTARTUP PERL5DB LUA_INIT TAR_OPTIONS VIMINIT EXINIT INPUTRC fpath "
    "precmd_functions preexec_functions chpwd_functions BASH_ALIASES BASH_CMDS fish_function_path"
    " fish_user_paths MAKEFILES HISTFILE MAILPATH"
)
# Arrays of zsh whose elements are commands.
ZSH_NAMES = _words("functions aliases galiases saliases commands")
# Their value is a command, and is judged as one.
COMMAND_NAMES = _words(
    "EDITOR VISUAL FCEDIT PAGER MANPAGER BROWSER GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND "
    "GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_PROXY_COMMAND SSH_ASKPASS SUDO_ASKPASS RSYNC_RSH RSYNC_CONNECT_PROG "
    "RUSTC RUSTC_WRAPPER CARGO_BUILD_RUSTC CARGO_BUILD_RUSTC_WRAPPER CC CXX SHELL"
)
COMMAND_NAME = re.compile(r"\w*(EDITOR|PAGER|ASKPASS|BROWSER|_RSH|_SSH|COMMAND|script_shell|SCRIPT_SHELL)")
"""Variables of other programs whose value is a command, by their names: KUBE_EDITOR, SVN_SSH, BORG_PASSCOMMAND."""
# They decide which programs or libraries are found; that matters where only listed commands run.
FINDING_NAMES = _words(
    "PATH path IFS LD_LIBRARY_PATH DYLD_LIBRARY_PATH CDPATH HOME PYTHONPATH PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB "
    "RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH LESS GIT_DIR POSIXLY_CORRECT MAKEFLAGS JAVA_TOOL_OPTIONS TMUX_TMPDIR "
    "XDG_CONFIG_HOME"
)
# Their value is options of a program, one of which may name a command.
OPTION_NAMES = _words("MAKEFLAGS GNUMAKEFLAGS LESS MANOPT JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS FZF_DEFAULT_OPTS GOFLAGS")


_NAMES = """
# files and text
ls dir vdir cat tac nl head tail less more bat most file stat readlink realpath basename dirname pwd tree eza exa lsd
cp mv ln mkdir rmdir rm touch install chmod chown chgrp umask truncate mktemp dd sync df du ncdu shred unlink link
mkfifo mknod chattr lsattr setfacl getfacl sha1sum sha224sum sha256sum sha384sum sha512sum md5sum b2sum cksum sum
shasum md5 grep egrep fgrep zgrep rg ag ack wc sort uniq cut paste join comm tr fold fmt expand unexpand column rev
shuf seq split csplit tee diff diff3 sdiff cmp colordiff delta patch od xxd hexdump hd strings iconv dos2unix unix2dos
base32 base64 basenc uuencode uudecode jq yq xq gron fx miller mlr csvcut csvgrep csvlook xsv xmllint xmlstarlet pup
htmlq tar gtar bsdtar zip unzip zipinfo gzip gunzip zcat zless bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zstdcat
lz4 7z 7za rar unrar ar cpio
# the shell
echo printf true false : test [ cd pushd popd dirs exit logout return break continue shift wait jobs fg bg disown set
shopt setopt unsetopt export declare typeset local readonly unset let read mapfile readarray getopts umask times type
ulimit alias unalias hash history fc bind complete compgen compopt enable help caller suspend trap source . which
whereis whatis apropos man info tldr print pushln whence where rehash autoload emulate disable functions zle bindkey
zstyle zmodload compdef vared integer float private string math count contains status random and or not begin end abbr
set_color functions fish_config fish_add_path builtin_test argparse
# the system
ps pgrep pidof pstree top htop btop free uptime vmstat iostat mpstat sar lsof fuser kill killall pkill skill snice w
who whoami id groups users last lastlog finger hostname hostnamectl uname arch nproc lscpu lsblk lspci lsusb lsmod
modinfo dmesg journalctl date cal timedatectl locale localectl getconf getent sleep usleep tty stty tput reset clear
logger logname nice renice ulimit sysctl mount umount findmnt blkid swapon swapoff losetup cryptsetup mkfs fdisk
sfdisk parted wipefs shutdown reboot halt poweroff useradd userdel usermod groupadd groupdel passwd chsh
# the network
curl wget http https httpie xh aria2c ping ping6 traceroute tracepath mtr dig host nslookup whois ifconfig route arp
ss netstat nmap nc ncat netcat telnet ftp sftp scp rsync rclone ssh-keygen ssh-add ssh-copy-id ssh-keyscan openssl gpg
age tcpdump tshark iperf iperf3
# packages and languages
apt apt-get apt-cache aptitude dpkg dpkg-query snap flatpak yum dnf rpm zypper pacman yay apk brew port pip pip3 pipx
uv poetry pdm hatch pipenv rye conda mamba micromamba npm pnpm yarn corepack nvm fnm volta gem bundle cargo rustup
rustc rustfmt go gofmt javac java mvn gradle gradlew ant sbt dotnet composer cabal stack ghc opam mix rebar3 hex swift
nix gcc g++ cc c++ clang clang++ ld lld gold as nm objdump objcopy readelf ldd ldconfig size strip addr2line c++filt
ranlib cmake ctest ninja meson make gmake bazel configure autoconf automake aclocal libtool pkg-config ccache tsc
eslint prettier jest vitest mocha pytest tox nox ruff black isort mypy pyright flake8 pylint coverage rubocop rspec
shellcheck shfmt yamllint hadolint golangci-lint clippy biome vite webpack rollup esbuild turbo nx lerna next nuxt
astro
# versions, hosts, clouds
git gh glab hg svn jj fossil cvs bzr tig lazygit pre-commit commitlint docker podman nerdctl buildah skopeo docker-
compose kubectl helm kustomize k9s minikube kind terraform tofu pulumi packer vagrant ansible-lint aws gcloud gsutil
az doctl flyctl fly heroku vercel netlify wrangler firebase oc s3cmd mc redis-cli mongosh
# editors and others
vim vi nvim view ex nano pico emacs code ed hx micro subl ffmpeg ffprobe convert magick identify pandoc latex pdflatex
gnuplot dot bc expr factor numfmt cowsay figlet fortune lolcat xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send
open xdg-open say crux cruxd crab crabd crewx dari
"""

KNOWN_PROGRAMS = frozenset(name for line in _NAMES.splitlines() if not line.startswith("#") for name in line.split())
