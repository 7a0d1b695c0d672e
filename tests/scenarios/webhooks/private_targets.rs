//! Private targets: webhooks cannot be sent to internal addresses, however they are written or named.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::process::{Server, highwater, stdout, wait_for};

/// A name server whose answers for a name can differ from query to query.
struct NameServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl NameServer {
    /// Starts a name server whose names lead to internal addresses, some only after the first query. `own` is the loopback address that they mean by 127.0.0.1.
    fn of_internal_addresses(own: Ipv4Addr) -> Self {
        Self::open(move |name, before| {
            let addresses: &[&str] = match name.split('.').next().unwrap() {
                "inside" => &["127.0.0.1"],
                "mixed" => &["8.8.8.8", "127.0.0.1"],
                "inside6" => &["::1"],
                "mapped" => &["::ffff:127.0.0.1"],
                "translated" => &["64:ff9b::7f00:1"],
                "metadata" => &["169.254.169.254"],
                "unique" => &["fd00:ec2::254"],
                "mixed6" => &["8.8.8.8", "::1"],
                "later-mixed" if before > 0 => &["8.8.8.8", "127.0.0.1"],
                "later" if before > 0 => &["127.0.0.1"],
                _ => &[],
            };
            let address = |text: &&str| if *text == "127.0.0.1" { IpAddr::V4(own) } else { text.parse().unwrap() };
            addresses.iter().map(address).collect()
        })
    }

    /// Starts a name server. `resolve` gets a name without its final dot and the number of earlier queries for it.
    fn open(resolve: impl Fn(&str, usize) -> Vec<IpAddr> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let serving = std::thread::spawn(move || {
            let (mut buffer, mut asked) = ([0; 1_500], BTreeMap::<(String, bool), usize>::new());
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let question = &buffer[..length];
                let (mut name, mut at) = (Vec::new(), 12);
                while question[at] != 0 {
                    let end = at + 1 + usize::from(question[at]);
                    name.push(String::from_utf8_lossy(&question[at + 1..end]).to_lowercase());
                    at = end;
                }
                let name = name.join(".");
                let is_v6 = question[at + 2] == 28;
                let before = asked.entry((name.clone(), is_v6)).or_default();
                let found: Vec<IpAddr> = resolve(&name, *before).into_iter().filter(|address| address.is_ipv6() == is_v6).collect();
                *before += 1;
                let mut answer = question[..at + 5].to_vec();
                answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::try_from(found.len()).unwrap(), 0, 0, 0, 0]);
                for address in found {
                    answer.extend([0xc0, 0x0c, 0, if is_v6 { 28 } else { 1 }, 0, 1, 0, 0, 0, 0]);
                    match address {
                        IpAddr::V4(address) => answer.extend([&[0, 4], address.octets().as_slice()].concat()),
                        IpAddr::V6(address) => answer.extend([&[0, 16], address.octets().as_slice()].concat()),
                    }
                }
                socket.send_to(&answer, from).unwrap();
            }
        });
        Self { address, stop, serving: Some(serving) }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.serving.take().map(JoinHandle::join));
    }
}

/// URLs of internal addresses in every spelling, and others that are no targets. PORT is that of the listener.
const REFUSED_URLS: &[&str] = &[
    "http://example.com/",
    "https://127.0.0.1:PORT/",
    "https://2130706433:PORT/",
    "https://0x7f000001:PORT/",
    "https://0177.0.0.1:PORT/",
    "https://0x7f.1:PORT/",
    "https://127.1:PORT/",
    "https://1\u{ff12}7.0.0.1:PORT/",
    "https://\u{2460}27.0.0.1:PORT/",
    "https://127.0.0.1.:PORT/",
    "https://localhost:PORT/",
    "https://LOCALHOST.:PORT/",
    "https://a.localhost:PORT/",
    "https://intranet:PORT/",
    "https://printer.local:PORT/",
    "https://db.internal:PORT/",
    "https://x.home.arpa:PORT/",
    "https://0.0.0.0:PORT/",
    "https://10.0.0.1/",
    "https://172.31.0.1/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://192.0.0.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[::1]:PORT/",
    "https://[::]:PORT/",
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://[::ffff:7f00:1]:PORT/",
    "https://[::127.0.0.1]:PORT/",
    "https://[64:ff9b::7f00:1]:PORT/",
    "https://[64:ff9b:1::1]/",
    "https://[2002:7f00:1::]:PORT/",
    "https://[2001:db8::1]/",
    "https://[2001::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[ff02::1]/",
    "https://example.com:22/",
    "https://example.com:25/",
    "https://example.com:80/",
    "https://example.com:6379/",
    "https://8.8.8.8:65535/",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://example.com@127.0.0.1:PORT/",
    "https://127.0.0.1:PORT\\@example.com/",
    "https://example.com#@127.0.0.1/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/",
    "https://",
    "https:///x",
    "//127.0.0.1/",
    "https://exa mple.com/",
    "https://example.com\t/",
    "https://exam\u{0}ple.com/",
];

/// Every such URL is refused at the registration. Returns what the answers say.
fn refused_at_registration(server: &Server, key: &str, port: u16) -> Vec<String> {
    let mut report = Vec::new();
    for form in REFUSED_URLS {
        let url = form.replace("PORT", &port.to_string());
        let answer = server.send("POST", "/recalls/api/webhook", key, &json!({"webhook_url": url}).to_string());
        let result: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, result["parameter"].as_str()), (400, Some("webhook_url")), "{url:?}: {result}");
        report.push(format!("{form:?}: {}", result["detail"].as_str().unwrap()));
    }
    report
}

/// Proves that internal addresses are not accepted as targets: every spelling of one is refused at the registration, and every name that
/// resolves to one, at the first or a later query, is refused at the delivery, without a packet to a listener there. The answers for such a name are
/// those for a name that does not exist. Where private targets are permitted, the same name reaches the listener.
#[test]
fn private_targets_are_refused() {
    // A permitted port on a loopback address of this process; and on 127.0.0.1, if the port is free there.
    let [.., a, b] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 77, a, b);
    let (canary, port) = (TcpListener::bind((own, 8443)).unwrap(), 8443);
    let known = TcpListener::bind(("127.0.0.1", port)).ok();
    for canary in known.iter().chain([&canary]) {
        canary.set_nonblocking(true).unwrap();
    }
    let names = NameServer::of_internal_addresses(own);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |private: &str, arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", private);
        command.env("HIGHWATER_WEBHOOKS__NAMESERVER", names.address.to_string());
        // A proxy must not be used for targets that are refused.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env(name, format!("http://{own}:{port}"));
        }
        command
    };
    let key = stdout(command("false", &["keys", "mint", "--tier", "business"])).trim().to_owned();
    let server = Server::ready(command("false", &["serve"]));
    let mut report = refused_at_registration(&server, &key, port);
    let register = |server: &Server, name: &str| {
        let url = format!("https://{name}.highwater-canary.com:{port}/in");
        let answer = server.send("POST", "/recalls/api/webhook", &key, &json!({"webhook_url": url}).to_string());
        (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap())
    };
    let ping = |server: &Server, id: &str| -> Value {
        let answer = server.send("POST", &format!("/recalls/api/webhook/{id}/ping"), &key, "{}");
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    };
    let (mut ids, mut reasons, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    let names_of_all =
        ["inside", "mixed", "inside6", "mapped", "translated", "metadata", "unique", "mixed6", "later", "later-mixed", "unknown"];
    for name in names_of_all {
        let (status, made) = register(&server, name);
        assert_eq!(status, 201, "{name}: {made}");
        let id = made["id"].as_str().unwrap().to_owned();
        for _ in 0..2 {
            let result = ping(&server, &id);
            assert_eq!((result["accepted"].as_bool(), result["status"].as_u64()), (Some(false), Some(0)), "{name}: {result}");
            let reason = result["reason"].as_str().unwrap();
            assert!(reason.contains("public addresses") && !reason.contains("127."), "{name}: {result}");
            report.push(format!("{name}: {reason}"));
            reasons.push(reason.to_owned());
        }
        fields.push(made.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
        ids.push(id);
    }
    reasons.dedup();
    fields.dedup();
    assert_eq!((reasons.len(), fields.len()), (1, 1), "no answer tells a private name from an unknown one: {reasons:?} {fields:?}");
    let was_contacted = || known.iter().chain([&canary]).any(|canary| canary.accept().is_ok());
    assert!(!was_contacted(), "a listener got a connection");
    assert_eq!(server.terminate().code(), Some(0));
    println!("{}", report.join("\n"));

    // The listener accepts connections from now on.
    let server = Server::ready(command("true", &["serve"]));
    // A server on a machine that is busy with other work may give up the name before it is resolved.
    wait_for("a connection to the listener, to which the name leads", || {
        assert_eq!(ping(&server, &ids[0])["accepted"], false, "the listener does not speak TLS");
        was_contacted().then_some(())
    });
    // A target that was registered under this permission is refused without it.
    let literal = [format!("http://{own}:{port}/"), format!("https://{own}:{port}/"), format!("http://[::ffff:{own}]:{port}/")];
    let registered = literal.map(|url| {
        let answer = server.send("POST", "/recalls/api/webhook", &key, &json!({"webhook_url": url}).to_string());
        let made: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 201, "{made}");
        made["id"].as_str().unwrap().to_owned()
    });
    assert_eq!(server.terminate().code(), Some(0));
    while was_contacted() {}
    let server = Server::ready(command("false", &["serve"]));
    for id in registered {
        let result = ping(&server, &id);
        assert_eq!((result["accepted"].as_bool(), result["status"].as_u64()), (Some(false), Some(0)), "{result}");
    }
    assert!(!was_contacted(), "a listener got a connection");
}
