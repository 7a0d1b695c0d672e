//! A body that holds a value until it has been sent completely.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// The body `B`. `held` is dropped with it: when the body has been sent, or the connection is gone.
pub(super) struct Tracked<B, H> {
    body: Pin<Box<B>>,
    _held: H,
}

impl<B, H> Tracked<B, H> {
    pub(super) fn new(body: B, held: H) -> Self {
        Self { body: Box::pin(body), _held: held }
    }
}

impl<B: Body, H: Unpin> Body for Tracked<B, H> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
