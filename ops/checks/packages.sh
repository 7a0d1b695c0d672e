# Functions for checks that need packages of npm or PyPI, or a demo. A check sets `checked`, the name of what it checks, and sources this file.
#
# Packages are installed in target/. `ops/test --all` and CI=true install missing packages. Otherwise a check with missing packages is skipped with a
# message, so a plain test run uses no network. Under CI=true a check that cannot run fails.

may_install() { [[ "${CI:-}" == true || -n "${HIGHWATER_TEST_ALL:-}" ]]; }

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

fail() { echo "$(basename "$0"): $1" >&2; exit 1; }

# missing REASON: ends the check, which cannot run for this reason.
missing() {
    [[ "${CI:-}" != true ]] || fail "not checked: $1"
    echo "NOT RUN: $checked: $1 (ops/test --all installs what packages there are)" | tee -a "${HIGHWATER_NOT_RUN:-/dev/null}" >&2
    exit 0
}

# find_python MINOR: sets `found_python` to a Python 3 with at least this minor version, of the PATH or of pyenv; to nothing if there is none.
find_python() {
    local candidate
    for candidate in python3 python3.{14,13,12} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
        found_python="$candidate"
        ! "$candidate" -c "import sys; sys.exit(sys.version_info < (3, $1))" 2>/dev/null || return 0
    done
    found_python=""
}

# keep DIRECTORY NPM PYPI [PYTHON]: installs packages of npm, and of PyPI below python/, into target/DIRECTORY and sets `kept` to it.
# NPM and PYPI are lists separated by spaces. PYTHON is the interpreter, by default python3.
keep() {
    local npm pypi all installed=() lock python="${4:-python3}"
    kept="$root/target/$1"
    read -ra npm <<<"$2"
    read -ra pypi <<<"$3"
    all=("${npm[@]}" "${pypi[@]}")
    ((${#npm[@]} == 0)) || command -v node >/dev/null || missing "node is not installed"
    mkdir -p "$kept"
    exec {lock}>"$kept/lock"
    flock "$lock"
    [[ ! -f "$kept/ready" ]] || read -ra installed <"$kept/ready"
    if [[ "${installed[*]}" != "${all[*]}" ]]; then
        may_install || missing "${all[*]}: not in target/"
        rm -f "$kept/ready"
        if ((${#npm[@]})); then
            command -v npm >/dev/null || missing "npm is not installed"
            npm install --prefix "$kept" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "${npm[@]}" >&2 || missing "$2: cannot be installed"
        fi
        if ((${#pypi[@]})); then
            command -v "$python" >/dev/null || missing "python3 is not installed"
            "$python" -m venv "$kept/python" >&2 || missing "python3 cannot make an environment (Debian: python3-venv)"
            "$kept/python/bin/pip" install --quiet --disable-pip-version-check "${pypi[@]}" >&2 || missing "$3: cannot be installed"
        fi
        echo "${all[*]}" >"$kept/ready"
    fi
    exec {lock}>&-
}

# Settings of the demo that a check starts, as variables: HIGHWATER_SECTION__NAME=VALUE.
demo_settings=()

# start_demo DIRECTORY [ARGUMENTS...]: starts a demo that keeps its data and its log in DIRECTORY, waits until it is ready, and sets `url`, `demo` (its
# process, which the check ends) and `highwater` (the binary). HIGHWATER_DEMO_HISTORY names the directory of a demo with as many records that has stopped:
# it is copied, so that its history is not simulated again.
start_demo() {
    local polls
    demo_directory="$1"
    highwater="$(realpath "${HIGHWATER:-$root/target/debug/highwater}")"
    [[ -x "$highwater" ]] || fail "$highwater is not there: cargo build"
    [[ -z "${HIGHWATER_DEMO_HISTORY:-}" ]] || cp -a --sparse=always "$HIGHWATER_DEMO_HISTORY/." "$demo_directory/"
    run_highwater demo --records 600 "${@:2}" --listen 127.0.0.1:0 >/dev/null 2>"$demo_directory/log" </dev/null &
    demo=$!
    for ((polls = 0; polls < 3000; polls++)); do
        if grep -q '"the demo is ready"' "$demo_directory/log"; then
            url="http://$(sed -nE 's/.*"address":"([^"]+)".*"listening".*/\1/p' "$demo_directory/log" | head -n 1)"
            return
        fi
        kill -0 "$demo" 2>/dev/null || fail "the demo ended: $(tail -n 3 "$demo_directory/log")"
        sleep 0.2
    done
    fail "the demo was not ready after ten minutes: $(tail -n 3 "$demo_directory/log")"
}

# run_highwater ARGUMENTS...: replaces the shell by a command on the data of the demo, so it runs in a subshell. Variables of the tests are no settings.
run_highwater() {
    cd "$demo_directory" # a highwater.toml of the working directory is not of this demo
    unset "${!HIGHWATER_@}"
    export HIGHWATER_LOGGING__FORMAT=json HIGHWATER_OPERATOR_LISTEN=127.0.0.1:0 HIGHWATER_CHECKPOINTS__MEMORY="$demo_directory/signer-memory"
    ((${#demo_settings[@]} == 0)) || export "${demo_settings[@]}"
    exec "$highwater" "$@" --data-dir "$demo_directory/data"
}
