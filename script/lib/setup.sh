# What every script/… needs before it can run: system packages, the virtual environment, the locked Python packages.
#
# Only what is missing is installed, so that a second call takes no time. Source this file from the checkout's root and call
# `setup run` or `setup test`. All of it is safe to run twice, and by two scripts at once.

readonly OLDEST_PYTHON=3.11

say() { printf 'headrace: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

# setup run|test
setup() {
  mkdir -p .local 2>/dev/null && [ -w .local ] || die "The folder $PWD/.local is not writable; grant this user write permission."
  # One setup at a time. The lock goes with this process, or at the end.
  exec 9>.local/setup.lock
  flock 9
  setup_python
  setup_packages "$1"
  setup_database_programs "$1"
  if [ "$1" = test ]; then setup_test_programs; fi
  exec 9>&-
}

# A port that is taken is told before a first installation, which takes a while. The start itself looks again, and more closely.
refuse_taken_port() {
  if [ -x .venv/bin/python ]; then return; fi
  local bind=${HEADRACE_BIND:-127.0.0.1:8000} host port
  port=${bind##*:}
  host=${bind%:*}
  case $host in "$bind" | 0.0.0.0 | "[::]") host=127.0.0.1 ;; esac
  host=${host#[}
  host=${host%]}
  [[ $port =~ ^[1-9][0-9]*$ ]] || return 0
  if (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
    die "Cannot listen on $bind (Address already in use); stop what uses that address, or set HEADRACE_BIND to another, such as 127.0.0.1:8001."
  fi
}

# ---- system packages

# want PACKAGE... : install Debian packages, with sudo where this user is not root
want() {
  local as_root=()
  if ! command -v apt-get >/dev/null; then die "These packages are missing: $*. Install the equivalent packages of your system, then run this again."; fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "These packages are missing: $*. Run this as root, or have an administrator run: apt-get install $*"
    as_root=(sudo)
  fi
  say "installing $* …"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install $*; fix the errors above, then run this again."
  fi
  rm -f "$log"
}

# has PROGRAM : on PATH or where Debian keeps servers
has() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

setup_database_programs() {
  # With a server of your own nothing of MariaDB's is run here, but by tests of the start itself.
  if [ "$1" = run ] && [ -n "${HEADRACE_DATABASE_URL:-}${HEADRACE_DATABASE_URL_FILE:-}" ]; then return; fi
  local missing=()
  { has mariadbd && has mariadb-install-db; } || missing+=(mariadb-server-core)
  has mariadb || missing+=(mariadb-client-core)
  if [ ${#missing[@]} -gt 0 ]; then want "${missing[@]}"; fi
}

setup_test_programs() {
  local missing=()
  has mariadb-dump || has mysqldump || missing+=(mariadb-client)
  has chromium || has chromium-browser || has google-chrome || missing+=(chromium)
  # Without any font a browser draws no text.
  compgen -G '/usr/share/fonts/truetype/*/*.ttf' >/dev/null || missing+=(fonts-dejavu-core)
  if [ ${#missing[@]} -gt 0 ]; then want "${missing[@]}"; fi
}

# ---- Python

# is_fit PYTHON : new enough, and able to make virtual environments
is_fit() {
  command -v "$1" >/dev/null && "$1" - "$OLDEST_PYTHON" 2>/dev/null <<'PYTHON'
import ensurepip, sys, venv
oldest = tuple(map(int, sys.argv[1].split(".")))
sys.exit(not oldest <= sys.version_info[:2] <= (3, 13))
PYTHON
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if is_fit "$candidate"; then command -v "$candidate"; return; fi
  done
  return 1
}

# Sets up .venv with a fit interpreter.
setup_python() {
  if [ -x .venv/bin/python ] && is_fit .venv/bin/python; then return; fi
  local python
  if ! python=$(find_python); then
    [ -z "${PYTHON:-}" ] || die "PYTHON=$PYTHON is not Python $OLDEST_PYTHON to 3.13 with the venv module; set another, or unset it."
    want python3 python3-venv
    hash -r
    if ! python=$(find_python) && apt-cache show python3.11 >/dev/null 2>&1; then
      want python3.11 python3.11-venv python3.11-dev
      hash -r
      python=$(find_python) || true
    fi
    [ -n "$python" ] || die "Headrace needs Python $OLDEST_PYTHON to 3.13, but none was found; install one and run: PYTHON=/path/to/python3 $0"
  fi
  say "creating the virtual environment .venv with $("$python" --version) …"
  "$python" -m venv --clear .venv
}

# mysqlclient is compiled here: it has no wheel for Linux.
setup_compiler() {
  local missing=()
  has gcc || missing+=(gcc)
  has pkg-config || missing+=(pkg-config)
  { has pkg-config && { pkg-config --exists libmariadb || pkg-config --exists mysqlclient; }; } 2>/dev/null || missing+=(libmariadb-dev)
  .venv/bin/python -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
    missing+=(python3-dev)
  if [ ${#missing[@]} -gt 0 ]; then want "${missing[@]}"; fi
}

# setup_packages run|test : the locked packages into .venv; pip's own configuration says where they come from
setup_packages() {
  local lock=requirements.lock stamp
  if [ "$1" = test ]; then lock=requirements-dev.lock; fi
  stamp=.venv/installed-$lock
  if cmp -s "$lock" "$stamp"; then return; fi
  setup_compiler
  say "installing the Python packages of $lock (the first time takes about a minute) …"
  .venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check --require-hashes -r "$lock" ||
    die "pip could not install $lock; fix the errors above (check pip's configuration and the network), then run this again."
  cp "$lock" "$stamp"
  # The lock of the tests contains that of the run, with the same versions.
  if [ "$1" = test ]; then cp requirements.lock .venv/installed-requirements.lock; fi
}
