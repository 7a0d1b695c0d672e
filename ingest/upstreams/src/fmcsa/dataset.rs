//! The datasets that are read.

/// A dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dataset {
    /// The census of carriers.
    Census,
    /// The history of authorities.
    Authority,
    /// Cancelled and replaced filings.
    Cancellations,
    /// Filings in force.
    Filings,
    /// Authorities with the amounts that they require and have on file.
    OnFile,
}

impl Dataset {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Census => "az4n-8mr2",
            Self::Authority => "yu5v-wbh6",
            Self::Cancellations => "3uet-3z4i",
            Self::Filings => "c5y8-a4uz",
            Self::OnFile => "inys-ebih",
        }
    }
}
