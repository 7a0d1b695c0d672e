//! A connection that does not wait for ever for its reader.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// What a reader must take within the time to be given more of it, in bytes: a byte now and then is not reading.
const TAKEN_BYTES_MIN: usize = 4 * 1024;

/// The write half of a connection: its writes fail once the other side has taken less than [`TAKEN_BYTES_MIN`] for a time while more was
/// waiting. So a slow reader is served, and one that stopped reading does not hold a connection and its page.
#[derive(Debug)]
pub(super) struct Stalling<S> {
    stream: S,
    time_max: Duration,
    /// Runs from the first write that has to wait until enough is taken, or all is.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since it runs.
    taken: usize,
}

impl<S> Stalling<S> {
    pub(super) fn new(stream: S, time_max: Duration) -> Self {
        Self { stream, time_max, waiting: None, taken: 0 }
    }

    fn in_time(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = written {
            self.taken = self.taken.saturating_add(*result.as_ref().unwrap_or(&0));
            if self.taken >= TAKEN_BYTES_MIN {
                self.begin_anew();
            }
            return Poll::Ready(result);
        }
        let time_max = self.time_max;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(time_max)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader takes too little")))
    }

    /// Gives the reader the whole time again.
    fn begin_anew(&mut self) {
        (self.waiting, self.taken) = (None, 0);
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
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
        // Only what was written whole is flushed.
        self.begin_anew();
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

    /// Proves that a write to a reader that stopped, or takes a byte now and then, fails, and that one to a reader that continues does not.
    #[tokio::test]
    async fn stalled_readers() {
        let (ours, mut theirs) = duplex(8);
        let mut ours = Stalling::new(ours, Duration::from_millis(20));
        let error = ours.write_all(&[7; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(ours.waiting.is_some());

        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 8);
        ours.write_all(&[7; 8]).await.unwrap();
        ours.flush().await.unwrap();
        assert!(ours.waiting.is_none(), "all that was written is taken");
    }

    /// Proves that a byte now and then does not give a reader more time, and that enough bytes, or all there are, do.
    #[tokio::test]
    async fn readers_that_take_too_little() {
        let mut ours = Stalling::new(tokio::io::sink(), Duration::from_secs(60));
        let mut context = Context::from_waker(std::task::Waker::noop());
        for enough in [true, false] {
            assert!(ours.in_time(&mut context, Poll::Pending).is_pending());
            for _ in 1..TAKEN_BYTES_MIN {
                assert!(ours.in_time(&mut context, Poll::Ready(Ok(1))).is_ready());
                assert!(ours.waiting.is_some());
            }
            if enough {
                assert!(ours.in_time(&mut context, Poll::Ready(Ok(1))).is_ready());
            } else {
                ours.flush().await.unwrap();
            }
            assert!(ours.waiting.is_none() && ours.taken == 0);
        }
    }
}
