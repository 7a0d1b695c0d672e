//! Where webhooks may be delivered to: only to public addresses, according to the registries of special-purpose addresses, and never to this
//! server's own addresses and host names, unless private targets are permitted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use operation::context::Settings;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// How long resolving a host name may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long one DNS query may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// The most addresses of one host that are used.
const ADDRESSES_MAX: usize = 64;

/// Special-purpose blocks of IPv4 (IANA IPv4 Special-Purpose Address Registry). Multicast and reserved addresses are checked separately.
const SPECIAL_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
];

/// Whether an address belongs to the public internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(block, bits): &(Ipv4Addr, u32)| (address.to_bits() ^ block.to_bits()) >> (32 - bits) == 0;
    // From 224 on: multicast and reserved addresses.
    address.octets()[0] < 224 && !SPECIAL_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |at: usize| {
        let [a, b] = segments[at].to_be_bytes();
        let [c, d] = segments[at + 1].to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    // An ISATAP interface identifier routes to the IPv4 address in it, whatever the prefix is.
    if segments[4] & 0xfcff == 0 && segments[5] == 0x5efe && !is_public_v4(embedded(6)) {
        return false;
    }
    match segments {
        // 6to4 and NAT64 route to the embedded IPv4 address.
        [0x2002, ..] => is_public_v4(embedded(1)),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(embedded(6)),
        // Protocol assignments (Teredo, ORCHID, benchmarking), and documentation.
        [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // Public unicast addresses start with the bits 001; IPv4-mapped, local, unique local and multicast addresses do not.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Top-level labels that are not in the public DNS: reserved ones, and those that private networks use.
const PRIVATE_SUFFIXES: [&str; 16] = [
    "alt",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
    "test",
    "workgroup",
];

/// Whether a name can be a public host name, judged by its form.
#[must_use]
pub fn is_public_name(name: &str) -> bool {
    let name = normal_name(name);
    let labels: Vec<&str> = name.rsplit('.').collect();
    match labels.as_slice() {
        [] | [_] | ["arpa", "home", ..] | ["cluster", "svc", ..] => false,
        [last, ..] => !PRIVATE_SUFFIXES.contains(last),
    }
}

/// A name in lower case, without trailing dots.
fn normal_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// The hosts that webhooks may be delivered to.
#[derive(Clone, Debug, Default)]
pub struct TargetRules {
    private_targets: bool,
    own_names: Vec<String>,
    own_addresses: Vec<IpAddr>,
}

impl TargetRules {
    /// Rules that permit public hosts only, or any host if private targets are permitted.
    #[must_use]
    pub fn new(private_targets: bool) -> Self {
        Self { private_targets, ..Self::default() }
    }

    /// The rules of a server: a webhook must not be delivered to its own host names, nor to the address that it listens on.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        let mut rules = Self { own_addresses: settings.listening.into_iter().collect(), ..Self::new(settings.private_targets) };
        let base_urls = settings.services.values().map(|service| service.base_url.clone());
        let hosts = settings.allowed_hosts.iter().map(|host| format!("https://{host}/"));
        for url in base_urls.chain(hosts).filter_map(|text| Url::parse(&text).ok()) {
            match url.host() {
                Some(Host::Domain(name)) => rules.own_names.push(normal_name(name)),
                Some(Host::Ipv4(address)) => rules.own_addresses.push(IpAddr::V4(address)),
                Some(Host::Ipv6(address)) => rules.own_addresses.push(IpAddr::V6(address)),
                None => {}
            }
        }
        rules
    }

    /// Whether private targets are permitted, including plain http and all ports.
    #[must_use]
    pub fn has_private_targets(&self) -> bool {
        self.private_targets
    }

    /// Whether the rules permit a host, judged by its form.
    pub fn permits_host(&self, host: &Host<&str>) -> bool {
        match host {
            Host::Domain(name) => self.private_targets || (is_public_name(name) && !self.own_names.contains(&normal_name(name))),
            Host::Ipv4(address) => self.permits_address(IpAddr::V4(*address)),
            Host::Ipv6(address) => self.permits_address(IpAddr::V6(*address)),
        }
    }

    /// Whether the rules permit an address.
    fn permits_address(&self, address: IpAddr) -> bool {
        self.private_targets || (is_public(address) && !self.own_addresses.contains(&address))
    }
}

/// Resolves host names for connections. The result is checked and then connected to, so that the name cannot resolve differently in between. A host
/// with any address that is not public does not resolve. Resolving is asynchronous and blocks no thread.
#[derive(Clone)]
pub struct GuardedResolver {
    rules: TargetRules,
    names: TokioResolver,
}

impl GuardedResolver {
    /// Creates a resolver that uses the given name server, or those of the system.
    ///
    /// # Errors
    /// When the system's configuration cannot be read.
    pub fn new(rules: TargetRules, nameserver: Option<SocketAddr>) -> Result<Self, NetError> {
        let mut builder = match nameserver {
            None => TokioResolver::builder_tokio()?,
            Some(at) => {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                    connection.port = at.port();
                    connection
                });
                let server = NameServerConfig::new(at.ip(), true, connections.to_vec());
                TokioResolver::builder_with_config(ResolverConfig::from_name_servers(vec![server]), TokioRuntimeProvider::default())
            }
        };
        let options = builder.options_mut();
        (options.timeout, options.attempts) = (QUERY_TIMEOUT, 2);
        // All addresses of a host are checked.
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        Ok(Self { rules, names: builder.build()? })
    }
}

/// Why a host name does not resolve to usable addresses.
#[derive(Debug, thiserror::Error)]
enum ResolveError {
    /// One of the addresses is not public.
    #[error("the host does not resolve to public addresses only")]
    NotPublic,
    /// The look-up failed.
    #[error("the host cannot be resolved")]
    LookupFailed(#[source] NetError),
    /// The look-up took too long.
    #[error("resolving the host took too long")]
    TimedOut,
}

impl GuardedResolver {
    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        // With a trailing dot, so that the search domains of this machine are not tried.
        let whole = format!("{}.", name.trim_end_matches('.'));
        let found = tokio::time::timeout(RESOLVE_TIMEOUT, self.names.lookup_ip(whole)).await.map_err(|_| ResolveError::TimedOut)?;
        let addresses: Vec<SocketAddr> =
            found.map_err(ResolveError::LookupFailed)?.iter().take(ADDRESSES_MAX).map(|ip| SocketAddr::new(ip, 0)).collect();
        if !addresses.iter().all(|address| self.rules.permits_address(address.ip())) {
            return Err(ResolveError::NotPublic);
        }
        Ok(addresses)
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move { Ok(Box::new(this.addresses(name.as_str()).await?.into_iter()) as Addrs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves, block by block, which addresses are public: the first and last of each special one are not, their neighbours outside are.
    #[test]
    fn addresses() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:4700::5efe:808:808",
            "2606:4700::200:5efe:808:808",
        ];
        let special = [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "192.175.48.1",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:10.0.0.1",
            "::8.8.8.8",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::808:808",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:1::1",
            "2001:2::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "2002:7f00:1::1",
            "2606:4700::5efe:a00:1",
            "2606:4700::5efe:127.0.0.1",
            "2606:4700::200:5efe:192.168.1.1",
            "2606:4700::100:5efe:10.0.0.1",
            "2606:4700::300:5efe:10.0.0.1",
            "2002:808:808::5efe:10.0.0.1",
            "fe80::5efe:808:808",
            "::ffff:0:8.8.8.8",
            "::ffff:0:10.0.0.1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "3fff::1",
            "3fff:fff:ffff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for (list, expected) in [(&public[..], true), (&special[..], false)] {
            for text in list {
                assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
            }
        }
    }

    /// Proves that a name of this machine leads nowhere unless private targets are permitted.
    #[tokio::test]
    async fn names() {
        for name in
            ["example.org", "a.example.org.", "private.example.org", "svc.example.org", "onion.com", "homearpa.com", "a.svc-cluster.com"]
        {
            assert!(is_public_name(name), "{name}");
        }
        let private = [
            "localhost",
            "x.localhost",
            "intranet",
            "a.internal",
            "a.INTERNAL.",
            "a.private",
            "a.onion",
            "a.svc",
            "db.prod.svc",
            "db.prod.svc.cluster.local",
            "db.prod.svc.cluster",
            "home.arpa",
            "x.home.arpa.",
            "a.intranet",
            "a.corp",
            "a.home",
            "a.lan",
            "a.local",
            "a.localdomain",
            "a.test",
            "a.invalid",
            "a.example",
            "a.alt",
            "a.workgroup",
            "",
            ".",
            "com",
        ];
        for name in private {
            assert!(!is_public_name(name), "{name}");
        }
        let nowhere = Some("127.0.0.1:1".parse().unwrap());
        let resolve = |private_targets| {
            GuardedResolver::new(TargetRules::new(private_targets), nowhere).unwrap().resolve("localhost".parse().unwrap())
        };
        assert!(resolve(false).await.err().unwrap().to_string().contains("public"));
        assert!(resolve(true).await.unwrap().all(|address| address.ip().is_loopback()));
    }
}
