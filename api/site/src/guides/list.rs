//! The list of the documents that are served.

use crate::paths::GUIDES;

/// A part of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Use,
    Run,
    LookUp,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Use, Self::Run, Self::LookUp];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Use => "Use it",
            Self::Run => "Run it",
            Self::LookUp => "Look it up",
        }
    }

    /// What a document of the part is, for the title of its page.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Use | Self::Run => "guide",
            Self::LookUp => "reference",
        }
    }
}

/// A document.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    pub(super) part: Part,
    /// Its path below `ops/docs`, without `.md`.
    pub(super) file: &'static str,
    pub(super) source: &'static str,
}

macro_rules! guides {
    ($($part:ident: $($file:literal)+;)+) => {
        &[$($(Guide { part: Part::$part, file: $file, source: include_str!(concat!("../../../../ops/docs/", $file, ".md")) },)+)+]
    };
}

/// THE LIST of documents. A test compares it with the folders.
pub(super) const ALL: &[Guide] = guides! {
    Use: "guides/consume-changes" "guides/api-keys" "guides/agents" "guides/analyse" "guides/webhooks" "guides/receipts" "guides/payments" "guides/troubleshooting"
        "guides/verify-catalysts" "guides/restocks" "guides/excluded-contractors" "guides/coverage-leads" "guides/airworthiness-directives" "guides/parcels"
        "guides/trademark-names" "guides/rising-phrases";
    Run: "guides/kafka-and-scylladb" "guides/back-up-and-restore" "guides/move-to-a-cluster" "security" "operations/runbooks/alerts"
        "operations/runbooks/damaged-log" "operations/runbooks/damaged-views" "operations/runbooks/disk-full" "operations/runbooks/lost-servers"
        "operations/runbooks/receipt-keys" "operations/runbooks/receipt-owners" "operations/runbooks/stuck-run" "operations/runbooks/suppression"
        "operations/runbooks/upstream-stopped" "operations/runbooks/witnesses" "operations/runbooks/wrong-clock";
    LookUp: "reference/command-line" "reference/configuration" "reference/errors" "reference/limits" "reference/metrics" "reference/pages"
        "reference/topics";
};

/// All documents, in the order of the index.
pub fn all() -> impl Iterator<Item = &'static Guide> {
    ALL.iter()
}

/// The path of the page of a document; `None` if it is not served. `file` is below `ops/docs` and has no ending.
pub(super) fn path_of(file: &str) -> Option<String> {
    if let Some(code) = file.strip_prefix("errors/") {
        return Some(format!("/docs/errors#{code}"));
    }
    ALL.iter().find(|guide| guide.file == file).map(Guide::path)
}

impl Guide {
    /// The path of its page. With `.md` at the end it is the path of the Markdown.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{GUIDES}/{}", self.file.strip_prefix("guides/").unwrap_or(self.file))
    }

    /// The title of the document.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.source.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(self.file)
    }
}
