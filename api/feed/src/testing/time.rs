//! Time that only the test moves, for what ends after a time.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// By how much time moves at once.
const STEP: Duration = Duration::from_millis(100);

/// Stops time until the result is dropped: only [`as_time_passes`] moves it. Time that is merely paused also moves while bytes are on their way, since nothing
/// runs then.
///
/// # Panics
/// In a runtime with several threads, or if time is paused already.
#[must_use]
pub fn stop_time() -> Sender<()> {
    let (held, until) = channel();
    tokio::time::pause();
    // While a blocking task runs, time does not move by itself.
    drop(tokio::task::spawn_blocking(move || until.recv()));
    held
}

/// Moves time, which is stopped, until a future ends.
pub async fn as_time_passes<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return output,
            () = tokio::time::advance(STEP) => {}
        }
    }
}
