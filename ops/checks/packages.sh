# Functions for checks that need packages of npm or PyPI. A check sets `checked`, the name of what it checks, and sources this file.
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

# keep DIRECTORY NPM PYPI: installs packages of npm, and of PyPI below python/, into target/DIRECTORY and sets `kept` to it.
# NPM and PYPI are lists separated by spaces.
keep() {
    local npm pypi all installed=() lock
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
            command -v python3 >/dev/null || missing "python3 is not installed"
            python3 -m venv "$kept/python" >&2 || missing "python3 cannot make an environment (Debian: python3-venv)"
            "$kept/python/bin/pip" install --quiet --disable-pip-version-check "${pypi[@]}" >&2 || missing "$3: cannot be installed"
        fi
        echo "${all[*]}" >"$kept/ready"
    fi
    exec {lock}>&-
}
