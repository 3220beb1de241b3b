"""Programs that run none of their words: a `rm` among these is a file, a pattern, a package or a subcommand.

Any other program that is not described in `wrappers` may be one that runs commands. There, the name of a dangerous
command among the words asks a person.
"""

from __future__ import annotations

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
