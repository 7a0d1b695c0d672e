//! Follows the feed of a view for a structure in memory, such as an index for searches, that a process makes of rows, of a snapshot or of changes.
//!
//! A [`Structure`] says what it needs of a change and what it makes of changes. Its [`Follower`] does what is the same for all structures: it knows the
//! generation of the view and the last change, reads the changes since then in batches, begins again where they do not continue the structure, keeps it
//! within its bytes, has it saved, and shows it to readers up to the position that they ask for.
//!
//! Promises: a structure never mixes two logs. What readers see covers every change up to the position that they ask for, or that is returned with it.
//! While the structure is built for the first time, and if it needs more memory than it may use, readers are refused with 503.
//!
//! The values of [`crate::derived_lists`] are no structure: they are made of the rows that calls ask for, and a change only drops them.

mod structure;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::tables::{Table, ViewDef};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep, timeout};
use view_store::feed::{FeedCache, FeedReader, block_of};
use view_store::{View, ViewStore};

pub use self::structure::{Label, Structure};
use crate::filter::unreadable;

/// How many blocks of the feed are read together.
const BLOCKS_A_READ: u64 = 64;
/// The pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Keeps a structure up to date with its feed, and shows it to readers.
pub struct Follower<T> {
    /// Held while the structure is changed, so that changes are read only once.
    changing: AsyncMutex<()>,
    state: watch::Sender<State<T>>,
}

enum State<T> {
    /// There is no structure, before it is begun and after a failure.
    Missing,
    /// The structure needs more bytes than it may use in a view.
    TooLarge(ViewKey),
    Followed(Followed<T>),
}

/// A structure and the view that it follows.
#[derive(Clone)]
struct Followed<T> {
    structure: Arc<T>,
    last: Label,
    /// `None` before the structure was compared with a view.
    view: Option<ViewKey>,
    /// Whether readers see the structure. While it is built for the first time, and before a snapshot was compared with the log, they do not.
    is_shown: bool,
    /// The last change that is saved.
    saved: Seq,
    saved_at: Instant,
}

/// The generation of a view, and what is hidden in it.
type ViewKey = (u64, u64);

impl<T> Default for Follower<T> {
    /// A follower whose structure is not begun yet.
    fn default() -> Self {
        Self { changing: AsyncMutex::default(), state: watch::Sender::new(State::Missing) }
    }
}

impl<T: Structure> Follower<T> {
    /// What readers see now, and its last change.
    ///
    /// # Errors
    /// `unavailable` while the structure is being built, and if it needs more memory than it may use.
    pub fn now(&self) -> Result<(Arc<T>, Seq), Problem> {
        match &*self.state.borrow() {
            State::Followed(now) if now.is_shown => Ok((Arc::clone(&now.structure), now.last.seq)),
            State::TooLarge(_) => Err(too_large::<T>()),
            _ => Err(building::<T>()),
        }
    }

    /// Waits until readers see a change, for as long as a read waits for what lags. Returns what they see then, and its last change.
    ///
    /// # Errors
    /// As [`Self::now`].
    pub async fn reach(&self, ctx: &Context, seq: Seq) -> Result<(Arc<T>, Seq), Problem> {
        // What is there when the time is over may be enough for the caller.
        let _ = timeout(ctx.settings.call_times.lag(), self.wait_shown(seq)).await;
        self.now()
    }

    /// Waits until readers see a change, or the structure is refused for its bytes.
    pub async fn wait_shown(&self, seq: Seq) {
        let is_shown = |state: &State<T>| match state {
            State::Missing => false,
            State::TooLarge(_) => true,
            State::Followed(now) => now.is_shown && now.last.seq >= seq,
        };
        // The sender belongs to `self`, so this cannot fail during the wait.
        let _ = self.state.subscribe().wait_for(is_shown).await;
    }

    /// Waits until a change is saved.
    pub async fn wait_saved(&self, seq: Seq) {
        let is_saved = |state: &State<T>| matches!(state, State::Followed(now) if now.is_shown && now.saved >= seq);
        let _ = self.state.subscribe().wait_for(is_saved).await;
    }

    /// Returns the structure, which is brought up to a position of a view before. It may have later changes of the view, too.
    ///
    /// # Errors
    /// When rows cannot be read; `unavailable` if the structure needs more memory than it may use.
    pub async fn at(self: &Arc<Self>, reader: &FeedReader, seq: Seq, origin: &T::Origin) -> Result<Arc<T>, Problem> {
        if let Some(shown) = self.shown_at(key_of::<T>(reader.view().as_ref()), seq) {
            return shown;
        }
        // In a task of its own, so that what was read remains even if the request ends early.
        let (this, reader, origin) = (Arc::clone(self), reader.clone(), origin.clone());
        let advanced = tokio::spawn(async move { this.advance(&reader, seq, &origin).await });
        advanced.await.unwrap_or_else(|error| Err(panicked::<T>(&error)))
    }

    /// Keeps the structure up to date with a view until the future is dropped. Failures are logged and retried.
    pub async fn follow(&self, store: &dyn ViewStore, def: &'static ViewDef, feed: &'static Table, origin: T::Origin) {
        loop {
            if let Err(problem) = self.follow_once(store, def, feed, &origin).await {
                tracing::warn!(structure = T::NAME, problem = problem.detail, "a structure cannot follow its feed now, will retry");
                sleep(RETRY_AFTER).await;
            }
        }
    }

    /// Adds what a view has, and waits until it has more or is replaced, or changes must be saved.
    async fn follow_once(
        &self,
        store: &dyn ViewStore,
        def: &'static ViewDef,
        feed: &'static Table,
        origin: &T::Origin,
    ) -> Result<(), Problem> {
        store.served(&[def.name]).await;
        let view = store.live(def).await.map_err(store_problem)?;
        let seen = view.checkpoint().await.map_err(store_problem)?;
        // No block is cached: each is read once, and would only evict blocks that callers read.
        let reader = FeedReader::new(Arc::clone(&view), feed, Arc::new(FeedCache::new(0)));
        let advanced = self.advance(&reader, seen.seq, origin).await;
        // A structure that is too large is not begun again before the view is replaced.
        if !matches!(*self.state.borrow(), State::TooLarge(_)) {
            advanced?;
        }
        match timeout(self.save().await?, view.wait_past(&seen)).await {
            Ok(Err(error)) if !matches!(error, view_store::Error::Gone { .. }) => Err(store_problem(error)),
            _ => Ok(()),
        }
    }

    /// What readers see of a view, or why they are refused; `None` if the structure must be brought up to a position first.
    fn shown_at(&self, view: ViewKey, seq: Seq) -> Option<Result<Arc<T>, Problem>> {
        match &*self.state.borrow() {
            State::TooLarge(of) if *of == view => Some(Err(too_large::<T>())),
            State::Followed(now) if now.is_shown && now.view == Some(view) && now.last.seq >= seq => Some(Ok(Arc::clone(&now.structure))),
            _ => None,
        }
    }

    /// Brings the structure up to a change of a view.
    async fn advance(&self, reader: &FeedReader, upto: Seq, origin: &T::Origin) -> Result<Arc<T>, Problem> {
        let _changing = self.changing.lock().await;
        let view = key_of::<T>(reader.view().as_ref());
        loop {
            if let Some(shown) = self.shown_at(view, upto) {
                return shown;
            }
            let Some(now) = self.followed(reader, upto, origin).await? else { continue };
            let (changes, last) = read_changes::<T>(reader, now.last, upto).await?;
            if !changes.is_empty() && !now.structure.can_add(&changes) {
                self.state.send_replace(State::Missing);
                continue;
            }
            let is_last = last.seq >= upto;
            let now = self.changed(now, move |structure| structure.add(changes, last, is_last)).await?;
            self.keep(Followed { last, is_shown: now.is_shown || is_last, ..now }, reader);
        }
    }

    /// Keeps a structure that is within its bytes, and returns it; drops any other.
    fn keep(&self, now: Followed<T>, reader: &FeedReader) -> Option<Followed<T>> {
        let (bytes, view) = (now.structure.bytes(), reader.view());
        if bytes <= T::BYTES_MAX {
            self.state.send_replace(State::Followed(now.clone()));
            return Some(now);
        }
        let (structure, name, bytes_max) = (T::NAME, view.def().name, T::BYTES_MAX);
        tracing::error!(structure, view = name, bytes, bytes_max, "a structure needs more memory than it may use and is dropped");
        self.state.send_replace(State::TooLarge(key_of::<T>(view.as_ref())));
        None
    }

    /// The structure as it follows a view; `None` if it needs more memory than it may use. It is begun if there is none that can follow, and cleared if it
    /// is of another log.
    async fn followed(&self, reader: &FeedReader, upto: Seq, origin: &T::Origin) -> Result<Option<Followed<T>>, Problem> {
        let view = key_of::<T>(reader.view().as_ref());
        let is_near = |now: &Followed<T>| now.view == Some(view) && upto.since(now.last.seq) <= T::BEHIND_MAX;
        let now = match self.known().filter(|now| T::REMAINS || is_near(now)) {
            Some(now) => now,
            None => {
                let (structure, last) = T::begin(origin.clone(), Arc::clone(reader.view()), upto).await?;
                let (structure, view) = (Arc::new(structure), (!T::REMAINS).then_some(view));
                Followed { structure, last, view, is_shown: false, saved: last.seq, saved_at: Instant::now() }
            }
        };
        if now.view == Some(view) {
            return Ok(Some(now));
        }
        let found = Label::in_view(reader, now.last.seq).await?.filter(|found| found.origin == now.last.origin);
        if let Some(last) = found {
            // What begins with a snapshot has every change up to its label, so readers who ask for no later one need not wait for the others.
            let is_shown = now.is_shown || last.seq > Seq(0);
            return Ok(self.keep(Followed { last, view: Some(view), is_shown, ..now }, reader));
        }
        tracing::info!(structure = T::NAME, "a structure is of another log and is built again");
        self.state.send_replace(State::Missing);
        let now = self.changed(now, T::clear).await?;
        Ok(Some(Followed { last: Label::default(), view: Some(view), is_shown: false, saved: Seq(0), ..now }))
    }

    fn known(&self) -> Option<Followed<T>> {
        match &*self.state.borrow() {
            State::Followed(now) => Some(now.clone()),
            _ => None,
        }
    }

    /// Saves the structure if that is due. Returns how long the changes that are not saved may wait.
    async fn save(&self) -> Result<Duration, Problem> {
        let _changing = self.changing.lock().await;
        let Some(now) = self.known().filter(|now| now.last.seq > now.saved) else { return Ok(Duration::MAX) };
        let (last, waited) = (now.last, now.saved_at.elapsed());
        if last.seq.since(now.saved) <= T::unsaved_max(now.saved) && waited < T::SAVE_AFTER {
            return Ok(T::SAVE_AFTER.saturating_sub(waited));
        }
        let now = self.changed(now, move |structure| structure.save(last)).await?;
        self.state.send_replace(State::Followed(Followed { saved: last.seq, saved_at: Instant::now(), ..now }));
        Ok(Duration::MAX)
    }

    /// The structure after a change, which runs on a thread that may block. A structure whose change fails is dropped.
    async fn changed(
        &self,
        now: Followed<T>,
        change: impl FnOnce(&mut T) -> Result<(), Problem> + Send + 'static,
    ) -> Result<Followed<T>, Problem> {
        let mut structure = T::clone(&now.structure);
        let changing = tokio::task::spawn_blocking(move || change(&mut structure).map(|()| structure));
        match changing.await.unwrap_or_else(|error| Err(panicked::<T>(&error))) {
            Ok(structure) => Ok(Followed { structure: Arc::new(structure), ..now }),
            Err(problem) => {
                self.state.send_replace(State::Missing);
                Err(problem)
            }
        }
    }
}

/// By what a view is recognised. A structure that remains is not concerned by what is hidden.
fn key_of<T: Structure>(view: &dyn View) -> ViewKey {
    (view.generation(), if T::REMAINS { 0 } else { view.rendition() })
}

/// Reads what a structure needs of the next changes, up to one of a view at most. Returns the last change that was read, too.
async fn read_changes<T: Structure>(reader: &FeedReader, from: Label, upto: Seq) -> Result<(Vec<T::Change>, Label), Problem> {
    let (first, last) = (from.seq.next(), upto.min(from.seq.plus(T::BATCH_CHANGES_MAX)));
    if last < first {
        return Ok((Vec::new(), from));
    }
    let (mut changes, mut label) = (Vec::new(), from);
    let (mut number, end) = (block_of(first), block_of(last));
    while number <= end {
        let numbers: Vec<u64> = (number..=end.min(number + BLOCKS_A_READ - 1)).collect();
        number += BLOCKS_A_READ;
        let blocks = reader.blocks(&numbers).await.map_err(store_problem)?;
        let read = tokio::task::spawn_blocking(move || {
            for block in &blocks {
                for seq in first.max(block.first_seq()).up_to(block.last_seq().min(last)) {
                    if let Some(element) = block.element(seq) {
                        let change = T::read(seq, &element).map_err(|error| {
                            tracing::error!(structure = T::NAME, %seq, %error, "a structure cannot read a change");
                            unreadable()
                        });
                        changes.extend(change?);
                    }
                    if seq == last {
                        label = Label::of_change(block, seq);
                    }
                }
            }
            Ok::<_, Problem>((changes, label))
        });
        (changes, label) = read.await.map_err(|error| panicked::<T>(&error))??;
    }
    if label.seq < last {
        let (table, reason) = (reader.view().def().name.to_owned(), format!("the feed ends before seq {last}"));
        return Err(store_problem(view_store::Error::Damaged { table, reason }));
    }
    Ok((changes, label))
}

/// The problem of a structure that is being built.
#[must_use]
pub fn building<T: Structure>() -> Problem {
    Problem::new(ErrorCode::Unavailable, format!("{} is being built; ask again", T::NAME)).retry_after(2)
}

fn too_large<T: Structure>() -> Problem {
    Problem::new(ErrorCode::Unavailable, format!("{} needs more memory than it may use", T::NAME)).retry_after(60)
}

/// The problem of work on a structure that panicked, which is logged here.
pub fn panicked<T: Structure>(error: &JoinError) -> Problem {
    tracing::error!(%error, structure = T::NAME, "work on a structure panicked");
    Problem::new(ErrorCode::Internal, format!("{} could not be read", T::NAME))
}
