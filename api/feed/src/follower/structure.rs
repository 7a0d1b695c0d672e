//! What a structure in memory is for its follower: how it is begun, how it reads and adds changes, and how large it is.

use std::sync::Arc;
use std::time::Duration;

use operation::context::store_problem;
use operation::problem::Problem;
use proofs::hash::Hash32;
use schemas::position::Seq;
use view_store::View;
use view_store::feed::{FeedBlock, FeedReader};

/// The last change of a structure, by which its log is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The change; 0 before the first one.
    pub seq: Seq,
    /// A number that is made of the change and of the time when it was recorded; another log has another number there. 0 if it is not known.
    pub origin: u64,
    /// When the change was recorded, in milliseconds since 1970; 0 if it is not known.
    pub recorded_at_ms: i64,
}

impl Label {
    /// The label of a structure that was made of the rows of a view, which have at least the changes up to `seq`.
    #[must_use]
    pub fn of_rows(seq: Seq) -> Self {
        Self { seq, ..Self::default() }
    }

    /// The label of a change in a block.
    pub(super) fn of_change(block: &FeedBlock, seq: Seq) -> Self {
        let recorded_at_ms = block.recorded_at_seq(seq).unwrap_or_default();
        let mut bytes = recorded_at_ms.to_be_bytes().to_vec();
        bytes.extend_from_slice(&block.element(seq).unwrap_or_default());
        let origin = Hash32::of(&bytes).0.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Self { seq, origin, recorded_at_ms }
    }

    /// The label of a change in a view; `None` if the view has fewer changes.
    pub(super) async fn in_view(reader: &FeedReader, seq: Seq) -> Result<Option<Self>, Problem> {
        if seq == Seq(0) {
            return Ok(Some(Self::default()));
        }
        if reader.view().checkpoint().await.map_err(store_problem)?.seq < seq {
            return Ok(None);
        }
        let block = reader.block(seq).await.map_err(store_problem)?;
        Ok(Some(Self::of_change(&block, seq)))
    }
}

/// A structure in memory that is made of the changes of a view. A clone of it is what is changed next, while readers see the original; it should be cheap, and
/// may share what changes do not alter for earlier positions. All methods but [`begin`](Self::begin) may block the thread.
pub trait Structure: Clone + Send + Sync + 'static {
    /// What the structure is begun from in addition to a view: its tables, or the directory of its snapshot.
    type Origin: Clone + Send + Sync + 'static;
    /// What the structure needs of a change.
    type Change: Send + 'static;

    /// What the structure is called in logs and answers: `the index of names`.
    const NAME: &'static str;
    /// The most bytes of memory. A structure that needs more is dropped, and readers are refused with 503 until the view is replaced.
    const BYTES_MAX: usize;
    /// The most changes that are added at once.
    const BATCH_CHANGES_MAX: u64 = 5_000;
    /// With more new changes than this, the structure is begun again instead of reading them.
    const BEHIND_MAX: u64 = u64::MAX;
    /// Whether the structure remains when another generation of the same log replaces the view, or when other fields are hidden: it is made of changes
    /// alone, and readers compare what they find with rows.
    const REMAINS: bool = false;
    /// The longest time that changes wait to be saved.
    const SAVE_AFTER: Duration = Duration::MAX;

    /// Makes the structure of the rows of a view as of a change, or reads it from its snapshot. Returns it with its last change.
    fn begin(origin: Self::Origin, view: Arc<dyn View>, seq: Seq) -> impl Future<Output = Result<(Self, Label), Problem>> + Send;

    /// Reads a change that the feed shows; `None` if the structure needs nothing of it.
    ///
    /// # Errors
    /// When it cannot be decoded.
    fn read(seq: Seq, element: &[u8]) -> Result<Option<Self::Change>, serde_json::Error>;

    /// Whether the structure can be brought up to date by these changes. If not, it is begun again.
    fn can_add(&self, _changes: &[Self::Change]) -> bool {
        true
    }

    /// Adds the next changes, if there are any, up to the last one that was read. `is_last`: no others are to be added before a reader asks.
    ///
    /// # Errors
    /// When the structure cannot be used any more. It is begun again.
    fn add(&mut self, changes: Vec<Self::Change>, last: Label, is_last: bool) -> Result<(), Problem>;

    /// The bytes of memory that the structure needs.
    fn bytes(&self) -> usize;

    /// Drops everything, because it is of another log. Only a structure that [remains](Self::REMAINS) is asked to.
    ///
    /// # Errors
    /// As [`Self::add`].
    fn clear(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    /// The most changes that wait to be saved, if those up to `saved` are.
    #[must_use]
    fn unsaved_max(_saved: Seq) -> u64 {
        u64::MAX
    }

    /// Saves the structure, so that a restart begins with it.
    ///
    /// # Errors
    /// As [`Self::add`].
    fn save(&mut self, _last: Label) -> Result<(), Problem> {
        Ok(())
    }
}
