//! Texts of directives in the printed form. All makers' facts are public; the sentences were written for the tests.

use directives::{Directive, Publication, clean, read};

/// A directive in lettered paragraphs.
pub(crate) struct Text<'a> {
    pub(crate) number: &'a str,
    pub(crate) holder: &'a str,
    pub(crate) effective: &'a str,
    pub(crate) affected: &'a str,
    pub(crate) applicability: &'a str,
    pub(crate) actions: &'a str,
    pub(crate) title: &'a str,
    pub(crate) summary: &'a str,
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self {
            number: "2026-15-05",
            holder: "Piper Aircraft, Inc.",
            effective: "August 24, 2026",
            affected: "None.",
            applicability: "This AD applies to all Piper Aircraft, Inc. Model PA-28-140 airplanes, certificated in any category.",
            actions: "Within 100 hours time-in-service (TIS) after the effective date of this AD, inspect the main spar for corrosion.",
            title: "Airworthiness Directives; Piper Aircraft, Inc. Airplanes",
            summary: "",
        }
    }
}

impl Text<'_> {
    /// The regulatory text.
    pub(crate) fn printed(&self) -> String {
        let Self { number, holder, effective, affected, applicability, actions, .. } = self;
        format!(
            "PART 39--AIRWORTHINESS DIRECTIVES\n\n1. The authority citation continues to read as before.\n\nSec. 39.13 [Amended]\n\n\
             2. The FAA amends Sec. 39.13 by adding the following new airworthiness directive:\n\n\
             {number} {holder}: Amendment 39-23417; Docket No. FAA-2026-7223; Project Identifier AD-2026-00329-A.\n\n\
             (a) Effective Date\n\nThis airworthiness directive (AD) is effective {effective}.\n\n(b) Affected ADs\n\n{affected}\n\n\
             (c) Applicability\n\n{applicability}\n\n(d) Subject\n\nJoint Aircraft System Component (JASC) Code 5711, Wing Spar.\n\n\
             (e) Unsafe Condition\n\nThis AD was prompted by a finding of 12 cracks after 3,000 hours. It could lead to loss of control.\n\n\
             (f) Compliance\n\nComply with this AD within the compliance times specified, unless already done.\n\n\
             (g) Required Actions\n\n{actions}\n\n(h) Alternative Methods of Compliance (AMOCs)\n\n\
             The Manager may approve other methods within 30 days.\n\n(i) Related Information\n\nNone.\n\nIssued on July 20, 2026.\n"
        )
    }

    /// The directive as it is read.
    pub(crate) fn read(&self) -> (String, Directive) {
        let text = clean(&self.printed());
        let source = Publication { title: self.title, summary: self.summary, text: &text, effective_on: None };
        let directive = read(&source).unwrap().remove(0);
        (text, directive)
    }
}
