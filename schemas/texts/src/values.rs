//! Known values of fields that have a closed list. Filters take only these values; the schemas of their fields show them.

/// Slugs of the topics of grants and trials, sorted.
pub const TOPICS: [&str; 12] = [
    "aging",
    "cardiology",
    "genomics",
    "immunology",
    "infectious-disease",
    "mental-health",
    "metabolism-diabetes",
    "neuroscience",
    "oncology",
    "pediatrics",
    "rare-disease",
    "respiratory",
];

/// States of the United States, and the territories that are counted with them, by their two letters, sorted.
pub const US_STATES: [&str; 56] = [
    "AK", "AL", "AR", "AS", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "GA", "GU", "HI", "IA", "ID", "IL", "IN", "KS", "KY", "LA", "MA",
    "MD", "ME", "MI", "MN", "MO", "MP", "MS", "MT", "NC", "ND", "NE", "NH", "NJ", "NM", "NV", "NY", "OH", "OK", "OR", "PA", "PR", "RI",
    "SC", "SD", "TN", "TX", "UT", "VA", "VI", "VT", "WA", "WI", "WV", "WY",
];

/// Phases of clinical trials as records show them: one phase or two.
pub const TRIAL_PHASES: [&str; 8] = ["N/A", "EARLY_PHASE1", "PHASE1", "PHASE1/PHASE2", "PHASE2", "PHASE2/PHASE3", "PHASE3", "PHASE4"];

/// Form types of filings that are in use, without amendment suffixes. The regulator adds forms, so the list is not closed: it suggests names, and refuses
/// none.
pub const USUAL_FORMS: [&str; 120] = [
    "1-A", "1-K", "1-SA", "1-U", "10-12B", "10-12G", "10-D", "10-K", "10-KT", "10-Q", "10-QT", "11-K", "13F-HR", "13F-NT", "144", "15-12B",
    "15-12G", "15-15D", "18-K", "20-F", "20FR12B", "24F-2NT", "25", "25-NSE", "3", "305B2", "4", "40-17G", "40-APP", "40-F", "424B1",
    "424B2", "424B3", "424B4", "424B5", "424B7", "424B8", "425", "485APOS", "485BPOS", "485BXT", "497", "497J", "497K", "5", "6-K",
    "8-A12B", "8-A12G", "8-K", "8-K12B", "8-K12G3", "ABS-15G", "ABS-EE", "APP WD", "ARS", "ATS-N", "AW", "C", "C-AR", "C-U", "CB", "CERT",
    "CORRESP", "D", "DEF 14A", "DEF 14C", "DEFA14A", "DEFM14A", "DEFR14A", "DFAN14A", "DRS", "EFFECT", "F-1", "F-10", "F-3", "F-4", "F-6",
    "FWP", "N-14", "N-1A", "N-2", "N-30B-2", "N-8F", "N-CEN", "N-CSR", "N-CSRS", "N-MFP3", "N-PX", "NPORT-P", "NT 10-K", "NT 10-Q",
    "NT 20-F", "POS AM", "POSASR", "PRE 14A", "PRE 14C", "PREC14A", "PREM14A", "PRER14A", "PX14A6G", "REVOKED", "RW", "S-1", "S-11", "S-3",
    "S-3ASR", "S-4", "S-6", "S-8", "S-8 POS", "SC 13D", "SC 13E3", "SC 13G", "SC 14D9", "SC TO-C", "SC TO-I", "SC TO-T", "SD", "T-3",
    "UPLOAD",
];
