//! The write half of a connection, with a timeout for clients that do not read. The timeout may become shorter while a write waits.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Instant, Sleep, sleep};

/// How many bytes a client must read within the timeout to restart it. Single bytes now and then do not count.
const READ_BYTES_MIN: usize = 4 * 1024;

/// The write half of a connection. Its writes fail when the client reads less than [`READ_BYTES_MIN`] within a time while more is waiting. So a slow
/// client is served, and one that stopped reading does not hold a connection and its page.
#[derive(Debug)]
pub(super) struct Stalling<S, T> {
    stream: S,
    /// The time at present.
    time_max: T,
    /// The timeout. It runs from the first write that has to wait until enough, or everything, is read.
    waiting: Option<Pin<Box<Sleep>>>,
    /// How many bytes were read since the timeout started.
    read_bytes: usize,
}

impl<S, T: Fn() -> Duration> Stalling<S, T> {
    pub(super) fn new(stream: S, time_max: T) -> Self {
        Self { stream, time_max, waiting: None, read_bytes: 0 }
    }

    fn in_time(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = written {
            self.read_bytes = self.read_bytes.saturating_add(*result.as_ref().unwrap_or(&0));
            if self.read_bytes >= READ_BYTES_MIN {
                self.restart_timeout();
            }
            return Poll::Ready(result);
        }
        let time_max = (self.time_max)();
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(time_max)));
        let latest = Instant::now() + time_max;
        if waiting.deadline() > latest {
            waiting.as_mut().reset(latest);
        }
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
    }

    /// Restarts the timeout.
    fn restart_timeout(&mut self) {
        (self.waiting, self.read_bytes) = (None, 0);
    }
}

impl<S: AsyncWrite + Unpin, T: Fn() -> Duration + Unpin> AsyncWrite for Stalling<S, T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush is complete only when all bytes were written.
        self.restart_timeout();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Proves that a write fails if the client stopped or reads single bytes now and then, and succeeds if the client continues.
    #[tokio::test]
    async fn stalled_readers() {
        let (ours, mut theirs) = duplex(8);
        let mut ours = Stalling::new(ours, || Duration::from_millis(20));
        let error = ours.write_all(&[7; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(ours.waiting.is_some());

        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 8);
        ours.write_all(&[7; 8]).await.unwrap();
        ours.flush().await.unwrap();
        assert!(ours.waiting.is_none(), "all that was written is taken");
    }

    /// Proves that single bytes do not restart the timeout, and that enough bytes, or the last ones, do.
    #[tokio::test]
    async fn readers_that_take_too_little() {
        let mut ours = Stalling::new(tokio::io::sink(), || Duration::from_secs(60));
        let mut context = Context::from_waker(std::task::Waker::noop());
        for enough in [true, false] {
            assert!(ours.in_time(&mut context, Poll::Pending).is_pending());
            for _ in 1..READ_BYTES_MIN {
                assert!(ours.in_time(&mut context, Poll::Ready(Ok(1))).is_ready());
                assert!(ours.waiting.is_some());
            }
            if enough {
                assert!(ours.in_time(&mut context, Poll::Ready(Ok(1))).is_ready());
            } else {
                ours.flush().await.unwrap();
            }
            assert!(ours.waiting.is_none() && ours.read_bytes == 0);
        }
    }
    /// Proves that a write that waits already has the shorter time that counts from now on, and that a longer one does not extend it.
    #[tokio::test]
    async fn the_time_becomes_shorter() {
        let time = std::cell::Cell::new(0);
        let mut ours = Stalling::new(tokio::io::sink(), || Duration::from_secs(time.get()));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let [first, longer, shorter, longer_again] = [3_000, 6_000, 100, 3_000].map(|seconds| {
            time.set(seconds);
            assert!(ours.in_time(&mut context, Poll::Pending).is_pending());
            ours.waiting.as_ref().unwrap().deadline()
        });
        assert!(first == longer && shorter < first && shorter == longer_again);

        let (ours, _theirs) = duplex(8);
        let was_asked = std::cell::Cell::new(false);
        // The first look gives a time that no test waits for, each later one a short time.
        let mut ours = Stalling::new(ours, || if was_asked.replace(true) { Duration::from_millis(20) } else { Duration::from_secs(3_000) });
        assert!(futures_util::poll!(std::pin::pin!(ours.write_all(&[7; 64]))).is_pending());
        assert_eq!(ours.write_all(&[7; 64]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
