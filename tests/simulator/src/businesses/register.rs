//! The datasets of new businesses: their paths, names, columns and fields of days.

use jiff::civil::Date;

/// A dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    Census,
    Authority,
    Cancellations,
    Filings,
    OnFile,
    Colorado,
    Connecticut,
    NewYork,
    Oregon,
}

impl Register {
    pub(crate) fn at(path: &str) -> Option<Self> {
        Some(match path.strip_prefix("/resource/")?.strip_suffix(".json")? {
            "az4n-8mr2" => Self::Census,
            "yu5v-wbh6" => Self::Authority,
            "3uet-3z4i" => Self::Cancellations,
            "c5y8-a4uz" => Self::Filings,
            "inys-ebih" => Self::OnFile,
            "4ykn-tg5h" => Self::Colorado,
            "n7gp-d28j" => Self::Connecticut,
            "k4vb-judh" => Self::NewYork,
            "esjy-u4fc" => Self::Oregon,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Census => "fmcsa.census",
            Self::Authority => "fmcsa.authority",
            Self::Cancellations | Self::Filings | Self::OnFile => "fmcsa.cancellations",
            Self::Colorado => "sos.co",
            Self::Connecticut => "sos.ct",
            Self::NewYork => "sos.ny",
            Self::Oregon => "sos.or",
        }
    }

    pub(crate) fn date_field(self) -> &'static str {
        match self {
            Self::Census => "add_date",
            Self::Authority => "status_change_date",
            Self::Cancellations => "cancl_effective_date",
            Self::Filings => "effective_date",
            Self::OnFile => "bipd_file",
            Self::Colorado => "entityformdate",
            Self::Connecticut => "date_registration",
            Self::NewYork => "filing_date",
            Self::Oregon => "registry_date",
        }
    }

    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Census => &[
                "dot_number",
                "legal_name",
                "dba_name",
                "business_org_desc",
                "phy_street",
                "phy_city",
                "phy_state",
                "phy_zip",
                "phy_country",
                "phone",
                "email_address",
                "company_officer_1",
                "status_code",
                "add_date",
                "mcs150_date",
                "carrier_operation",
                "classdef",
                "hm_ind",
                "power_units",
                "truck_units",
                "bus_units",
                "total_drivers",
                "crgo_genfreight",
                "crgo_household",
                "crgo_passengers",
                "docket1prefix",
                "docket1",
                "prior_revoke_flag",
                "prior_revoke_dot_number",
            ],
            Self::Authority => &["usdot_number", "docket_number", "op_auth_type", "op_auth_status", "reason", "status_change_date"],
            Self::Cancellations => &[
                "usdot_number",
                "docket_number",
                "ins_form_code",
                "ins_type_code",
                "policy_no",
                "insurance_company_name",
                "effective_date",
                "cancl_effective_date",
                "filing_status_reason",
                "max_cov_amount",
            ],
            Self::Filings => &[
                "usdot_number",
                "docket_number",
                "ins_form_code",
                "ins_type_code",
                "policy_no",
                "insurance_company_name",
                "effective_date",
                "trans_date",
                "max_cov_amount",
            ],
            Self::OnFile => &[
                "usdot_number",
                "docket_number",
                "op_auth_type",
                "op_auth_status",
                "min_cov_amount",
                "cargo_req",
                "bond_req",
                "bipd_file",
                "cargo_file",
                "bond_file",
            ],
            Self::Colorado => &[
                "entityid",
                "entityname",
                "entitytype",
                "entitystatus",
                "jurisdictonofformation",
                "entityformdate",
                "principaladdress1",
                "principalcity",
                "principalstate",
                "principalzipcode",
                "agentorganizationname",
                "agentprincipaladdress1",
            ],
            Self::Connecticut => &[
                "accountnumber",
                "name",
                "status",
                "business_type",
                "date_registration",
                "dissolution_date",
                "billingstreet",
                "billingcity",
                "billingstate",
                "billingpostalcode",
                "business_email_address",
                "naics_code",
                "citizenship",
                "formation_place",
            ],
            Self::NewYork => &[
                "film_num",
                "dos_id",
                "filing_type",
                "filing_date",
                "eff_date",
                "entity_type",
                "corp_name",
                "cnty_prin_ofc",
                "sop_name",
                "sop_addr1",
                "sop_city",
                "sop_state",
                "sop_zip5",
                "filer_name",
            ],
            Self::Oregon => &[
                "registry_number",
                "business_name",
                "entity_type",
                "registry_date",
                "associated_name_type",
                "first_name",
                "last_name",
                "address_",
                "city",
                "state",
                "zip_code",
            ],
        }
    }
}

/// A day as the registers of states write it.
pub(super) fn stamp(day: Date) -> String {
    format!("{day}T00:00:00.000")
}
