//! Agencies, products and firms. Agencies and codes are real, all firms are invented.

/// A purchasing agency.
pub(super) struct Agency {
    /// The top-tier agency: name and code.
    pub(super) top: (&'static str, &'static str),
    /// The subtier agency: name and code. The code is part of the ids of its awards.
    pub(super) sub: (&'static str, &'static str),
    pub(super) office: &'static str,
    /// The prefix of its award numbers.
    pub(super) prefix: &'static str,
    /// Whether its actions are published ninety days late.
    pub(super) is_late: bool,
}

const fn agency(
    top: (&'static str, &'static str),
    sub: (&'static str, &'static str),
    office: &'static str,
    prefix: &'static str,
) -> Agency {
    Agency { top, sub, office, prefix, is_late: false }
}

const HEALTH: (&str, &str) = ("Department of Health and Human Services", "075");
const DEFENSE: (&str, &str) = ("Department of Defense", "097");

pub(super) const AGENCIES: &[Agency] = &[
    agency(HEALTH, ("Centers for Medicare and Medicaid Services", "7530"), "OFC OF ACQUISITION AND GRANTS MGMT", "75FCMC"),
    agency(HEALTH, ("National Institutes of Health", "7529"), "NATIONAL INSTITUTES OF HEALTH NCI", "75N910"),
    agency(("General Services Administration", "047"), ("Federal Acquisition Service", "4732"), "GSA/FAS CENTER FOR IT", "47QFSA"),
    agency(("Department of Veterans Affairs", "036"), ("Department of Veterans Affairs", "3600"), "NETWORK CONTRACT OFFICE 8", "36C248"),
    agency(("Department of Homeland Security", "070"), ("U.S. Coast Guard", "7008"), "BASE KODIAK", "70Z044"),
    agency(
        ("National Aeronautics and Space Administration", "080"),
        ("National Aeronautics and Space Administration", "8000"),
        "NASA GODDARD SPACE FLIGHT CENTER",
        "80GSFC",
    ),
    agency(("Environmental Protection Agency", "068"), ("Environmental Protection Agency", "6800"), "HEADQUARTERS ACQUISITION", "68HERC"),
    agency(("Department of Agriculture", "012"), ("Forest Service", "12C2"), "USDA FOREST SERVICE CENTRAL", "12445X"),
    Agency { is_late: true, ..agency(DEFENSE, ("Department of the Army", "2100"), "W6QK ACC-APG", "W912DY") },
    Agency { is_late: true, ..agency(DEFENSE, ("Department of the Navy", "1700"), "NAVAL AIR SYSTEMS COMMAND", "N00019") },
];

/// A supplier.
pub(super) struct Recipient {
    pub(super) name: &'static str,
    pub(super) uei: &'static str,
    /// Its parent firm, which may be itself: name and UEI.
    pub(super) parent: (&'static str, &'static str),
    pub(super) city: &'static str,
    /// Code letters and name.
    pub(super) state: (&'static str, &'static str),
    pub(super) is_small: bool,
}

const fn recipient(
    name: &'static str,
    uei: &'static str,
    parent: (&'static str, &'static str),
    city: &'static str,
    state: (&'static str, &'static str),
    is_small: bool,
) -> Recipient {
    Recipient { name, uei, parent, city, state, is_small }
}

const ALDERGATE: (&str, &str) = ("ALDERGATE HOLDINGS, INC.", "ALDG7H2K9M31");
const NORTHFORD: (&str, &str) = ("NORTHFORD GROUP PLC", "NRTF4G8W3X52");

pub(super) const RECIPIENTS: &[Recipient] = &[
    recipient("ALDERGATE FEDERAL SYSTEMS, LLC", "ALFS3B6T8Z84", ALDERGATE, "RESTON", ("VA", "Virginia"), false),
    recipient("ALDERGATE MISSION SERVICES, INC.", "ALMS9C4H7Y23", ALDERGATE, "HUNTSVILLE", ("AL", "Alabama"), false),
    recipient("ALDERGATE HEALTH SOLUTIONS, INC.", "ALHS5R8E2K45", ALDERGATE, "BALTIMORE", ("MD", "Maryland"), false),
    recipient("NORTHFORD AEROSPACE CORP", "NRAC6M2W4Q66", NORTHFORD, "TUCSON", ("AZ", "Arizona"), false),
    recipient("NORTHFORD MARINE, INC.", "NRMA8L3B9T78", NORTHFORD, "NEWPORT NEWS", ("VA", "Virginia"), false),
    recipient(
        "GRANITEWORKS CONSTRUCTION CO",
        "GRWC2D9X7F89",
        ("GRANITEWORKS CONSTRUCTION CO", "GRWC2D9X7F89"),
        "CONCORD",
        ("NH", "New Hampshire"),
        false,
    ),
    recipient(
        "SPARROWPOINT ANALYTICS, LLC",
        "SPPA4G7J3N91",
        ("SPARROWPOINT ANALYTICS, LLC", "SPPA4G7J3N91"),
        "COLUMBIA",
        ("MD", "Maryland"),
        true,
    ),
    recipient(
        "CEDARLINE LOGISTICS, INC.",
        "CDLL7Y6K5C12",
        ("CEDARLINE LOGISTICS, INC.", "CDLL7Y6K5C12"),
        "MEMPHIS",
        ("TN", "Tennessee"),
        true,
    ),
    recipient(
        "MESAWELL ENGINEERING, PLLC",
        "MSWE3H9V8P34",
        ("MESAWELL ENGINEERING, PLLC", "MSWE3H9V8P34"),
        "EL PASO",
        ("TX", "Texas"),
        true,
    ),
    recipient(
        "LAKEHOUSE FACILITIES GROUP LLC",
        "LKFG5B7Z2W56",
        ("LAKEHOUSE FACILITIES GROUP LLC", "LKFG5B7Z2W56"),
        "CHICAGO",
        ("IL", "Illinois"),
        true,
    ),
    recipient(
        "OTTERBROOK LABORATORIES, INC.",
        "OTBL8E4T6M77",
        ("OTTERBROOK LABORATORIES, INC.", "OTBL8E4T6M77"),
        "DURHAM",
        ("NC", "North Carolina"),
        false,
    ),
    recipient(
        "TIMBERWARD FORESTRY, LLC",
        "TMWF6K3R9D88",
        ("TIMBERWARD FORESTRY, LLC", "TMWF6K3R9D88"),
        "MISSOULA",
        ("MT", "Montana"),
        true,
    ),
];

/// Purchases: NAICS and its description, PSC and its description, a text.
pub(super) const WORK: &[[&str; 5]] = &[
    [
        "541512",
        "COMPUTER SYSTEMS DESIGN SERVICES",
        "DA01",
        "IT AND TELECOM - BUSINESS APPLICATION SUPPORT SERVICES (LABOR)",
        "DATA REPOSITORY OPERATIONS",
    ],
    ["541519", "OTHER COMPUTER RELATED SERVICES", "DK10", "IT AND TELECOM - STORAGE AS A SERVICE", "ENTERPRISE CLOUD MODERNIZATION"],
    ["541511", "CUSTOM COMPUTER PROGRAMMING SERVICES", "DA10", "IT AND TELECOM - SOFTWARE AS A SERVICE", "CASE MANAGEMENT SOFTWARE"],
    ["541330", "ENGINEERING SERVICES", "R425", "SUPPORT- PROFESSIONAL: ENGINEERING/TECHNICAL", "ENGINEERING SUPPORT"],
    ["541715", "RESEARCH AND DEVELOPMENT IN THE LIFE SCIENCES", "AN11", "HEALTH R&D SERVICES", "ASSAY DEVELOPMENT"],
    ["541620", "ENVIRONMENTAL CONSULTING SERVICES", "F999", "OTHER ENVIRONMENTAL SERVICES", "EFFLUENT GUIDELINE SUPPORT"],
    [
        "236220",
        "COMMERCIAL AND INSTITUTIONAL BUILDING CONSTRUCTION",
        "Y1DA",
        "CONSTRUCTION OF HOSPITALS AND INFIRMARIES",
        "CLINIC CONSTRUCTION",
    ],
    ["336411", "AIRCRAFT MANUFACTURING", "1510", "AIRCRAFT, FIXED WING", "PATROL AIRCRAFT"],
    ["336611", "SHIP BUILDING AND REPAIRING", "J019", "MAINT/REPAIR/REBUILD OF EQUIPMENT- SHIPS", "CUTTER DRYDOCK REPAIRS"],
    ["334516", "ANALYTICAL LABORATORY INSTRUMENT MANUFACTURING", "6640", "LABORATORY EQUIPMENT AND SUPPLIES", "MASS SPECTROMETERS"],
    ["561210", "FACILITIES SUPPORT SERVICES", "S216", "HOUSEKEEPING- FACILITIES OPERATIONS SUPPORT", "FACILITIES OPERATIONS"],
    ["561720", "JANITORIAL SERVICES", "S201", "HOUSEKEEPING- CUSTODIAL JANITORIAL", "CUSTODIAL SERVICES"],
    ["621111", "OFFICES OF PHYSICIANS", "Q301", "MEDICAL- LABORATORY TESTING", "PHYSICIAN STAFFING"],
    ["488510", "FREIGHT TRANSPORTATION ARRANGEMENT", "V112", "TRANSPORTATION/TRAVEL/RELOCATION- MOTOR FREIGHT", "FREIGHT SERVICES"],
    [
        "115310",
        "SUPPORT ACTIVITIES FOR FORESTRY",
        "F003",
        "NATURAL RESOURCES/CONSERVATION- FOREST-RANGE FIRE SUPPRESSION",
        "HAZARDOUS FUELS REDUCTION",
    ],
];

/// Award types: code, description, and the letter in their numbers.
pub(super) const CONTRACTS: &[(&str, &str, char)] =
    &[("A", "BPA CALL", 'A'), ("B", "PURCHASE ORDER", 'P'), ("C", "DELIVERY ORDER", 'F'), ("D", "DEFINITIVE CONTRACT", 'C')];
pub(super) const VEHICLES: &[(&str, &str, char)] = &[
    ("IDV_B_B", "INDEFINITE DELIVERY / INDEFINITE QUANTITY", 'D'),
    ("IDV_C", "FEDERAL SUPPLY SCHEDULE", 'D'),
    ("IDV_E", "BLANKET PURCHASE AGREEMENT", 'A'),
];

/// The kinds of an action, by letter.
pub(super) fn action_words(letter: &str) -> &'static str {
    match letter {
        "A" => "ADDITIONAL WORK (NEW AGREEMENT, JUSTIFICATION REQUIRED)",
        "B" => "SUPPLEMENTAL AGREEMENT FOR WORK WITHIN SCOPE",
        "C" => "FUNDING ONLY ACTION",
        "D" => "CHANGE ORDER",
        "E" => "TERMINATE FOR DEFAULT (COMPLETE OR PARTIAL)",
        "F" => "TERMINATE FOR CONVENIENCE (COMPLETE OR PARTIAL)",
        "G" => "EXERCISE AN OPTION",
        "K" => "CLOSE OUT",
        _ => "OTHER ADMINISTRATIVE ACTION",
    }
}
