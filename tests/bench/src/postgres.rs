//! The peer: PostgreSQL with the same changes, in a separate cluster on its own socket.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use schemas::position::Seq;
use schemas::views::recalls::{FEED, VIEW};
use tokio_postgres::{Client, NoTls};
use view_store::ViewStore;
use view_store::embedded::{EmbeddedStore, Options};
use view_store::feed::{FeedCache, FeedReader};

use crate::{Failure, Settings, ingest};

/// The user that runs the cluster if we are root, because PostgreSQL refuses to run as root.
const USER: &str = "postgres";
/// Connections between the HTTP server and PostgreSQL.
pub(crate) const POOL: usize = 8;
/// The buffer size for loading, in bytes.
const COPY_BYTES: usize = 1 << 20;

/// A running cluster; stopped and removed when dropped.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    bin: PathBuf,
}

impl Cluster {
    /// Creates and starts a cluster.
    pub(crate) fn start() -> Result<Self, Failure> {
        let bin = find_bin().ok_or("no PostgreSQL found: install postgresql")?;
        let dir = tempfile::Builder::new().prefix("bench-pg").tempdir()?;
        if is_root() {
            run(Command::new("chown").arg(USER).arg(dir.path()))?;
        }
        let this = Self { dir, bin };
        let data = this.dir.path().join("data");
        run(this.command("initdb").arg("-D").arg(&data).args(["-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C"]))?;
        let socket = this.dir.path().display();
        let options = format!("-c listen_addresses='' -c unix_socket_directories='{socket}' -c shared_buffers=1GB -c max_wal_size=4GB");
        run(this.command("pg_ctl").arg("-D").arg(&data).arg("-l").arg(this.dir.path().join("log")).args(["-w", "-o", &options, "start"]))?;
        Ok(this)
    }

    fn command(&self, program: &str) -> Command {
        let program = self.bin.join(program);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", USER, "--"]).arg(program);
        command
    }

    /// Returns the directory of the socket.
    pub(crate) fn socket(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.dir.path().join("data");
        let _ = run(self.command("pg_ctl").arg("-D").arg(data).args(["-m", "immediate", "stop"]));
    }
}

/// Whether PostgreSQL is installed.
pub(crate) fn is_installed() -> bool {
    find_bin().is_some()
}

fn find_bin() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> =
        std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    versions.into_iter().rev().find(|bin| bin.join("initdb").exists())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn run(command: &mut Command) -> Result<(), Failure> {
    // No pipes: the server would inherit them and keep them open.
    let status = command.stdout(std::process::Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}

/// Opens one connection.
pub(crate) async fn connect(socket: &Path) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(&format!("host={} user=bench dbname=postgres", socket.display()), NoTls).await?;
    tokio::spawn(async move {
        // If the connection ends, the next query fails.
        let _ = connection.await;
    });
    Ok(client)
}

/// Copies all changes of the view into a table; returns their number.
pub(crate) async fn fill(settings: &Settings, socket: &Path) -> Result<u64, Failure> {
    use tokio::io::AsyncWriteExt as _;
    let client = connect(socket).await?;
    client.batch_execute("create table changes (svc int, part int, off bigint, body text, primary key (svc, part, off))").await?;
    let store = EmbeddedStore::open(&ingest::data_dir(settings).join("views"), Options::default())?;
    let view = store.live(&VIEW).await?;
    let last = view.checkpoint().await?.seq;
    let reader = FeedReader::new(view, &FEED, FeedCache::new(1 << 20).into());
    // COPY reads a file on the server's side.
    let path = socket.join("changes.tsv");
    let mut file = tokio::fs::File::create(&path).await?;
    let (mut text, mut seq) = (Vec::with_capacity(COPY_BYTES * 2), Seq(1));
    while seq <= last {
        let block = reader.block(seq).await?;
        for i in 0..block.len() {
            if block.shown(i) {
                text.extend_from_slice(format!("1\t0\t{}\t", block.first_seq().plus(i as u64)).as_bytes());
                escape(&block.elements(i, i + 1), &mut text);
                text.push(b'\n');
            }
        }
        seq = block.last_seq().next();
        if text.len() >= COPY_BYTES || seq > last {
            file.write_all(&text).await?;
            text.clear();
        }
    }
    file.flush().await?;
    store.close().await?;
    let copied = client.execute(&format!("copy changes from '{}'", path.display()), &[]).await?;
    tokio::fs::remove_file(&path).await?;
    client.batch_execute("vacuum analyze changes").await?;
    client.batch_execute("checkpoint").await?;
    // Waits until the background writers are idle.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(copied)
}

/// Escapes JSON for COPY's text format. JSON has no control characters, so only the backslash is special.
fn escape(json: &Bytes, out: &mut Vec<u8>) {
    for byte in json {
        if *byte == b'\\' {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}
