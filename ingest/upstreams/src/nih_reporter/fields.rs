//! Which fields of a record have a value, for the guard against changed formats.

use super::project::{Named, Organization, Project};
use crate::drift::FieldCounts;

impl Project<'_> {
    /// Counts the mapped fields, except the spending categories, which are assigned months after the award.
    pub(super) fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("fiscal_year", self.fiscal_year.is_filled()),
            ("project_num", self.project_num.is_filled()),
            ("core_project_num", self.core_project_num.is_filled()),
            ("project_title", self.project_title.is_filled()),
            ("award_type", self.award_type.is_filled()),
            ("activity_code", self.activity_code.is_filled()),
            ("award_notice_date", self.award_notice_date.is_filled()),
            ("date_added", self.date_added.is_filled()),
            ("budget_start", self.budget_start.is_filled()),
            ("budget_end", self.budget_end.is_filled()),
            ("project_start_date", self.project_start_date.is_filled()),
            ("project_end_date", self.project_end_date.is_filled()),
            ("contact_pi_name", self.contact_pi_name.is_filled()),
            ("pref_terms", self.pref_terms.is_filled()),
            ("abstract_text", self.abstract_text.is_filled()),
            ("funding_mechanism", self.funding_mechanism.is_filled()),
            ("project_detail_url", self.project_detail_url.is_filled()),
            ("organization", self.organization.is_filled()),
            ("organization_type", self.organization_type.is_filled()),
            ("principal_investigators", self.principal_investigators.is_filled()),
            ("agency_ic_admin", self.agency_ic_admin.is_filled()),
            ("award_amount", self.award_amount.integer().is_some()),
        ]);
        let problem = &mut None;
        let organization: Organization<'_> = self.organization.object("organization", problem);
        let ic: Named<'_> = self.agency_ic_admin.object("agency_ic_admin", problem);
        fields.count([
            ("organization.org_name", organization.org_name.is_filled()),
            ("organization.org_city", organization.org_city.is_filled()),
            ("organization.org_state", organization.org_state.is_filled()),
            ("organization.org_country", organization.org_country.is_filled()),
            ("organization.dept_type", organization.dept_type.is_filled()),
            ("organization.primary_uei", organization.primary_uei.is_filled()),
            ("agency_ic_admin.abbreviation", ic.abbreviation.is_filled()),
            ("agency_ic_admin.name", ic.name.is_filled()),
        ]);
    }
}
