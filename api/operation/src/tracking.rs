//! Parameters that other sites, mail programs and advertisements add to links in order to count visitors. They mean nothing to an operation or a page.

/// What the names of a campaign begin with.
const CAMPAIGN_PREFIX: &str = "utm_";

const NAMES: [&str; 26] = [
    "fbclid",
    "gclid",
    "gclsrc",
    "gad_source",
    "gad_campaignid",
    "dclid",
    "gbraid",
    "wbraid",
    "msclkid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "igshid",
    "ref_src",
    "yclid",
    "ttclid",
    "twclid",
    "rdt_cid",
    "epik",
    "li_fat_id",
    "srsltid",
    "_hsenc",
    "_hsmi",
    "_ga",
    "_gl",
    "_kx",
];

/// Whether a parameter counts visitors.
#[must_use]
pub fn counts_visitors(name: &str) -> bool {
    name.starts_with(CAMPAIGN_PREFIX) || NAMES.contains(&name)
}
