//! Load by `wrk` from Debian. A load generator of our own would distort the measurement by its use of the processor.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// Picks a line of a file for each request: a path, an optional key, and after a key an optional encoding that the client accepts.
const SCRIPT: &str = r#"
local requests = {}
function init(args)
  math.randomseed(os.time() + math.floor(os.clock() * 1e6))
  for line in io.lines(args[1]) do
    local path, key, encoding = line:match("^(%S+)%s*(%S*)%s*(%S*)$")
    local headers = {}
    if key ~= "" then headers["X-API-Key"] = key end
    if encoding ~= "" then headers["Accept-Encoding"] = encoding end
    requests[#requests + 1] = wrk.format("GET", path, headers)
  end
end
function request()
  return requests[math.random(#requests)]
end
"#;

/// The end of every script: it prints one line, `RESULT` and six numbers.
const DONE: &str = r#"
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
"#;

/// A server's address and a file of paths.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    pub(crate) paths: PathBuf,
}

/// The results of one round of load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) answers_per_s: f64,
    /// Bytes of an answer, including its head.
    pub(crate) bytes_per_answer: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Target {
    /// Writes the paths of a target to a file.
    pub(crate) fn new(name: &'static str, address: String, dir: &Path, lines: &[String]) -> Result<Self, Failure> {
        let paths = dir.join(format!("{name}.paths"));
        std::fs::write(&paths, lines.join("\n") + "\n")?;
        Ok(Self { name, address, paths })
    }

    /// Loads the target for some seconds over the given number of persistent connections.
    pub(crate) fn load(&self, dir: &Path, connections: usize, seconds: u64) -> Result<Round, Failure> {
        wrk(self.name, dir, SCRIPT, (connections, seconds), &self.address, self.paths.as_ref())
    }
}

/// Checks that `wrk` can be run, so that a benchmark that needs it does not fail only after its data is loaded.
pub(crate) fn check_installed() -> Result<(), Failure> {
    Command::new("wrk").arg("-v").output().map(drop).map_err(not_installed)
}

fn not_installed(error: std::io::Error) -> Failure {
    format!("wrk cannot be run ({error}); install it: apt-get install wrk").into()
}

/// Loads a server for some seconds over the given number of persistent connections, with a script that has one argument.
pub(crate) fn wrk(
    name: &str,
    dir: &Path,
    script: &str,
    (connections, seconds): (usize, u64),
    address: &str,
    argument: &OsStr,
) -> Result<Round, Failure> {
    let file = dir.join(format!("{name}.lua"));
    std::fs::write(&file, [script, DONE].concat())?;
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "-s"]).arg(&file);
    wrk.arg(format!("http://{address}/")).arg("--").arg(argument);
    let output = wrk.output().map_err(not_installed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find_map(|line| line.strip_prefix("RESULT ")).ok_or_else(|| format!("wrk failed: {text}"))?;
    let numbers: Vec<f64> = result.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [requests, duration_us, bytes, p50_us, p99_us, errors] = numbers[..] else { return Err(format!("wrk said {result}").into()) };
    if errors > 0.0 || requests == 0.0 {
        return Err(format!("{name}: {errors} of {requests} requests failed").into());
    }
    Ok(Round {
        answers_per_s: requests / (duration_us / 1e6),
        bytes_per_answer: bytes / requests,
        p50_ms: p50_us / 1e3,
        p99_ms: p99_us / 1e3,
    })
}
