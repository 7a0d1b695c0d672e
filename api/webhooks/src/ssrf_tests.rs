//! Ways to have a webhook lead inside, as a table: each is refused when it is registered, or when it is posted to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use operation::context::{ServiceSettings, Settings};
use operation::tiers::{Limits, Tiers};
use reqwest::dns::Resolve as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

use super::*;

/// Public host names and addresses of the server under test.
const OWN_URLS: [&str; 2] = ["https://feeds.highwater-own.com/recalls", "https://[2606:4700::77]:8443/filings"];
const OWN_HOST: &str = "mcp.highwater-own.com";
const OWN_ADDRESS: &str = "8.8.4.4";

/// URLs that are never accepted, whatever the name server answers.
const REFUSED_FORMS: [&str; 97] = [
    // Not https, or not a URL with a host.
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "javascript:alert(1)",
    "data:text/plain,a",
    "ws://example.com/",
    "https://",
    "https:///x",
    "//127.0.0.1/",
    "example.com",
    // Private IPv4 addresses, in every notation.
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://0x7f.0.0.1/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://127.0.0.1./",
    "https://0/",
    "https://0.0.0.0/",
    "https://10.0.0.1/",
    "https://167772161/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.1.1/",
    "https://3232235777/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://192.0.0.1/",
    "https://192.0.2.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    // Digits and dots of other scripts.
    "https://１27.0.0.1/",
    "https://①27.0.0.1/",
    "https://127。0。0。1/",
    "https://127．0．0．1/",
    "https://%31%32%37.0.0.1/",
    "https://ｌｏｃａｌｈｏｓｔ/",
    "https://db。internal/",
    // Private IPv6 addresses, and IPv4 addresses in them.
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a00:1::1]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "https://[2606:4700::5efe:10.0.0.1]/",
    "https://[2606:4700::200:5efe:a9fe:a9fe]/",
    "https://[fe80::5efe:8.8.8.8]/",
    "https://[2001:db8::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[100::1]/",
    // Names that are not public, and our own.
    "https://localhost/",
    "https://LOCALHOST./",
    "https://a.localhost/",
    "https://intranet/",
    "https://printer.local/",
    "https://db.internal/",
    "https://db.internal./",
    "https://a.private/",
    "https://a.onion/",
    "https://db.prod.svc/",
    "https://db.prod.svc.cluster.local/",
    "https://x.home.arpa/",
    "https://a.invalid/",
    "https://feeds.highwater-own.com/recalls/api/keys",
    "https://FEEDS.highwater-own.com.:8443/",
    "https://mcp.highwater-own.com/",
    "https://8.8.4.4/",
    "https://[2606:4700::77]/",
    // User names, fragments, ports, and what parsers disagree on.
    "https://user:pass@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1\\@example.com/",
    "https://example.com#@127.0.0.1/",
    "https://example.com:22/",
    "https://example.com:80/",
    "https://example.com:6379/",
    "https://exa mple.com/",
    "https://example.com\t/",
    "https://exam\0ple.com/",
];

/// Host names, and the addresses that the name server returns for them at the first look-up and at later ones. All are registered alike, since nothing is
/// looked up then, and none gets a message.
const NAMES: [(&str, &[&str], &[&str]); 16] = [
    ("inside", &["127.0.0.1"], &["127.0.0.1"]),
    ("mixed", &["8.8.8.8", "10.0.0.1"], &["8.8.8.8", "10.0.0.1"]),
    ("metadata", &["169.254.169.254"], &["169.254.169.254"]),
    ("inside6", &["::1"], &["::1"]),
    ("mixed6", &["8.8.8.8", "::1"], &["8.8.8.8", "::1"]),
    ("mapped", &["::ffff:127.0.0.1"], &["::ffff:127.0.0.1"]),
    ("translated", &["64:ff9b::7f00:1"], &["64:ff9b::7f00:1"]),
    ("six-to-four", &["2002:7f00:1::1"], &["2002:7f00:1::1"]),
    ("isatap", &["2606:4700::5efe:7f00:1"], &["2606:4700::5efe:7f00:1"]),
    ("unique", &["fd00:ec2::254"], &["fd00:ec2::254"]),
    ("own", &[OWN_ADDRESS], &[OWN_ADDRESS]),
    ("own6", &["2606:4700::77"], &["2606:4700::77"]),
    ("rebinding", &["8.8.8.8"], &["127.0.0.1"]),
    ("rebinding-mixed", &["8.8.8.8"], &["8.8.8.8", "127.0.0.1"]),
    ("rebinding6", &["2606:4700::1"], &["::1"]),
    ("unknown", &[], &[]),
];

/// A name server that answers from [`NAMES`].
async fn name_server() -> SocketAddr {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    let at = socket.local_addr().unwrap();
    let looks = Mutex::new(BTreeMap::<(String, bool), usize>::new());
    tokio::spawn(async move {
        let mut buffer = [0; 1_500];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let question = &buffer[..length];
            let first = &question[13..13 + usize::from(question[12])];
            let first = String::from_utf8_lossy(first).to_lowercase();
            let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
            let is_v6 = question[end + 2] == 28;
            let before = {
                let mut looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
                let count = looks.entry((first.clone(), is_v6)).or_default();
                *count += 1;
                *count - 1
            };
            let found =
                NAMES.iter().find(|(name, _, _)| *name == first).map_or(&[][..], |(_, now, later)| if before == 0 { now } else { later });
            let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).filter(|ip: &IpAddr| ip.is_ipv6() == is_v6).collect();
            let mut answer = question[..end + 5].to_vec();
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::try_from(found.len()).unwrap(), 0, 0, 0, 0]);
            for ip in found {
                answer.extend([0xc0, 0x0c, 0, if is_v6 { 28 } else { 1 }, 0, 1, 0, 0, 0, 0]);
                match ip {
                    IpAddr::V4(ip) => answer.extend([&[0, 4], ip.octets().as_slice()].concat()),
                    IpAddr::V6(ip) => answer.extend([&[0, 16], ip.octets().as_slice()].concat()),
                }
            }
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    at
}

fn rules() -> TargetRules {
    let services = OWN_URLS.iter().enumerate().map(|(n, url)| {
        let own = ServiceSettings::new((*url).to_owned(), String::new());
        (n.to_string(), own)
    });
    TargetRules::from_settings(&Settings {
        listening: Some(OWN_ADDRESS.parse().unwrap()),
        allowed_hosts: vec![OWN_HOST.to_owned()],
        ..Settings::new(services.collect(), Tiers::of_two(Limits::new(1, 0, 1, 0, 0), Limits::new(1, 0, 1, 0, 0)))
    })
}

async fn post(poster: &Poster, to: &Webhook) -> DeliveryOutcome {
    poster.post(to, "msg_1", Bytes::from_static(b"{}"), &[SigningSecret::of([7; 32])], 1).await
}

/// Proves that no webhook can be delivered to a private address or to this server, by any form of URL, address or name, by a name that resolves
/// differently later, or by a redirect; and that neither the registration nor an attempt reveals what a name resolves to, or whether it resolves.
#[tokio::test]
async fn ssrf_cases() {
    let at = name_server().await;
    let poster = Poster::new(rules(), Some(at)).unwrap();
    for form in REFUSED_FORMS {
        let reason = poster.target(form).expect_err(form);
        assert!(!reason.contains(|c: char| c.is_ascii_digit()) || reason.contains("port"), "{form}: {reason}");
    }
    let earlier = GuardedResolver::new(rules(), Some(at)).unwrap();
    for (name, _, _) in NAMES {
        let host = format!("{name}.highwater-canary.com");
        let to = poster.target(&format!("https://{host}/in")).expect(name);
        // The first look-up is made here, so that the attempt meets the later addresses.
        drop(earlier.resolve(host.parse().unwrap()).await);
        assert_eq!(post(&poster, &to).await, DeliveryOutcome::NoResponse(CANNOT_CONNECT), "{name}");
    }

    let inside = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let target = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (there, at) = (inside.local_addr().unwrap(), target.local_addr().unwrap());
    let lax = Poster::new(TargetRules::new(true), Some(at)).unwrap();
    let redirects = [301, 302, 303, 307, 308];
    for status in redirects {
        let to = lax.target(&format!("http://{at}/")).unwrap();
        let answering = async {
            let (mut stream, _) = target.accept().await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"{}") {
                assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0);
            }
            let head = format!("HTTP/1.1 {status} Moved\r\nlocation: http://{there}/\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
        };
        let (said, ()) = tokio::join!(post(&lax, &to), answering);
        assert_eq!(said, DeliveryOutcome::Rejected(status, None));
    }
    let inside = inside.into_std().unwrap();
    assert!(inside.accept().is_err(), "nobody followed a redirect");
    println!("ssrf: {} cases refused", REFUSED_FORMS.len() + NAMES.len() + redirects.len());
}

/// Proves that ordinary public targets are accepted, so the cases above are not refused for another reason.
#[tokio::test]
async fn public_targets_are_taken() {
    for url in [
        "https://example.com/hook",
        "https://hooks.highwater-own.com/",
        "https://8.8.8.8:8443/",
        "https://134744072/",
        "https://[2606:4700::1111]/",
        "https://[2606:4700::5efe:808:808]/",
        "https://bücher.example.com/",
        "https://service.private.example.com/",
    ] {
        assert!(Webhook::parse(url, &rules()).is_ok(), "{url}");
    }
}
