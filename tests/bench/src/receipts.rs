//! Receipts issued over HTTP to concurrent callers, each durable before its answer, compared with bare Ed25519 signatures on one core, and
//! with answers of the same server that have no record.

use access::Access;
use operation::context::Part;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofs::receipt::SigningKeys;
use reads::registration::TaskContext;
use receipts::operations::signer::Signer;
use receipts::operations::{pubkey, seal};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use surfaces::server::Server;
use transparency::memory::Memory;

use crate::child_server::api_context;
use crate::engine::Engine;
use crate::load::{Round, Target, wrk};
use crate::report::{figure, heading, line, median, ratio, spawn};
use crate::{Failure, Settings};

/// Concurrent callers.
const CALLERS: usize = 64;
/// How long bare signatures are measured.
const SIGNING_TIME: Duration = Duration::from_millis(500);
const SIGNATURES_MAX: f64 = 1.2;

/// Each request asks for a new receipt of one of a thousand agents.
const SCRIPT: &str = r#"
local number, key = 0, ""
function init(args)
  key = args[1]
  number = os.time() * 1000000
end
function request()
  number = number + 1
  local body = string.format('{"action":"send_invoice","agent_id":"agent-%d","inputs":{"number":%d},"outputs":{}}', number % 1000, number)
  return wrk.format("POST", "/receipts/v1/issue", {["Content-Type"] = "application/json", ["X-API-Key"] = key}, body)
end
"#;

/// Measures signatures per second on one core.
fn signatures_per_s(keys: &SigningKeys, public: &str) -> f64 {
    let (started, mut signed) = (Instant::now(), 0_u32);
    while started.elapsed() < SIGNING_TIME {
        for _ in 0..100 {
            signed += 1;
            std::hint::black_box(keys.sign_bytes(public, &signed.to_be_bytes().repeat(8)));
        }
    }
    f64::from(signed) / started.elapsed().as_secs_f64()
}

/// Runs `receipts`.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("receipts: {CALLERS} callers, rounds of {} s", settings.seconds));
    let mut node = spawn(settings, "receipts-child", &[])?;
    let measured = (|| {
        let mut report = String::new();
        BufReader::new(node.stdout.take().ok_or("the node has no pipe")?).read_line(&mut report)?;
        let report: Value = serde_json::from_str(&report)?;
        let (address, key) = (report["address"].as_str().unwrap_or_default(), report["key"].as_str().unwrap_or_default());
        let keys = SigningKeys::default();
        let public = keys.add(&[9; 32]);
        // An answer that counts against a quota. One that needs no key is limited to a few thousand a minute for an address.
        let asked =
            Target::new("empty", address.to_owned(), &settings.dir, &[format!("/recalls/v1/changes?start=earliest&limit=1 {key}")])?;
        let mut rounds = Vec::new();
        for _ in 0..settings.rounds {
            let bare = signatures_per_s(&keys, &public);
            let asked = asked.load(&settings.dir, CALLERS, settings.seconds)?;
            rounds.push((bare, asked, wrk("receipts", &settings.dir, SCRIPT, (CALLERS, settings.seconds), address, key.as_ref())?));
        }
        Ok::<_, Failure>(rounds)
    })();
    node.kill()?;
    node.wait()?;
    let rounds = measured?;
    let middle = |rate: &dyn Fn(&(f64, Round, Round)) -> f64| median(rounds.iter().map(rate).collect());
    figure("bare signatures per second", format!("{:.0}", middle(&|(bare, ..)| *bare)));
    figure("answers of an empty feed per second", format!("{:.0}", middle(&|(_, asked, _)| asked.answers_per_s)));
    figure("receipts a second", format!("{:.0}", middle(&|(.., round)| round.answers_per_s)));
    figure("p50 / p99 ms", format!("{:.2} / {:.2}", middle(&|(.., round)| round.p50_ms), middle(&|(.., round)| round.p99_ms)));
    figure("an answer's time in signatures", format!("{:.2}", middle(&|(bare, asked, _)| bare / asked.answers_per_s)));
    let signatures = middle(&|(bare, _, round)| bare / round.answers_per_s);
    ratio("a receipt's time in signatures", signatures, signatures <= SIGNATURES_MAX, "1.2");
    Ok(())
}

/// `receipts-child`: serves until it is killed.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let dir = tempfile::tempdir_in(&settings.dir)?;
        let engine = Engine::open(dir.path()).await?;
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = server.address();
        let context = api_context(&engine, dir.path(), address)?;
        let refused = |problem: operation::problem::Problem| problem.detail;
        pubkey::name_first(&context, &engine.receipt_key).await.map_err(refused)?;
        let minted = Access::of(&context).mint(&context, Tier::FleetPlus, "").await.map_err(refused)?;
        line(&json!({ "address": address.to_string(), "key": minted.key.reveal() }).to_string());
        let memory = Memory::Store(Arc::clone(&engine.store));
        let signer = Arc::new(Signer::new(Arc::clone(&context), memory, engine.receipt_key.clone()));
        let task_context = TaskContext { context: Arc::clone(&context), signer: Arc::<Signer>::clone(&signer), holder: "bench".to_owned() };
        tokio::spawn(seal::run(Arc::new(task_context)));
        tokio::spawn(async move { signer.watch().await });
        Ok(server.run(context, services::all(), Arc::new(|| Ok(())), std::future::pending()).await?)
    })
}
