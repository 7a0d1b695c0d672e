//! Sends files: those on disk whole or in part (RFC 9110: `Range`, `If-Range`, 206, 416), and those that are made meanwhile whole.
//!
//! Promises: a file that is being sent ends within five seconds after its key is revoked, and one whose reader is slower than [`LEAST_BYTES`] in
//! [`LEAST_BYTES_TIME`] ends, too. Its reader notices, because the length was announced, or because the last
//! chunk is missing.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, stream};
use http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderValue, StatusCode};
use operation::problem::Problem;
use operation::{FileBody, StreamBody};
use schemas::error_code::ErrorCode;
use tokio::sync::{mpsc, watch};
use warp::Reply;
use warp::reply::Response;

use crate::response::{set, set_text, with_content_type};

/// How many bytes are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The fewest bytes that a reader must take in [`LEAST_BYTES_TIME`].
const LEAST_BYTES: u64 = 256 << 10;
/// The time for [`LEAST_BYTES`].
const LEAST_BYTES_TIME: Duration = Duration::from_secs(60);

/// What a request says about the part of a file that it wants, and what ends the file early.
pub(crate) struct PartRequest<'a> {
    /// The header `Range`.
    pub(crate) range: Option<&'a str>,
    /// The header `If-Range`.
    pub(crate) if_range: Option<&'a str>,
    /// Begins to wait for the end of the key.
    pub(crate) key_end: &'a (dyn Fn() -> BoxFuture<'static, ()> + Send + Sync),
}

/// The part of a file that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Bytes(Range<u64>),
    /// It begins after the end of the file.
    Unsatisfiable,
}

/// The response with a file, or with the part of it that the request asks for.
///
/// # Errors
/// `range-unsatisfiable`, with the length of the file.
pub(crate) fn response(file: FileBody, etag: &str, request: &PartRequest<'_>) -> Result<Response, Problem> {
    // With another version of the file, the part would not fit.
    let is_same = request.if_range.is_none_or(|given| given.trim() == etag);
    let part = request.range.filter(|_| is_same).map_or(Part::Whole, |range| part_of(range, file.length));
    let (range, status) = match part {
        Part::Whole => (0..file.length, StatusCode::OK),
        Part::Bytes(range) => (range, StatusCode::PARTIAL_CONTENT),
        Part::Unsatisfiable => {
            let refusal = Problem::new(ErrorCode::RangeUnsatisfiable, format!("the file has {} bytes", file.length));
            return Err(refusal.header("content-range", format!("bytes */{}", file.length)));
        }
    };
    let (media_type, disposition) = (file.media_type, format!("attachment; filename=\"{}\"", file.name));
    let (length, whole) = (range.end - range.start, file.length);
    let shown = format!("bytes {}-{}/{whole}", range.start, range.end.saturating_sub(1));
    let mut response = with_content_type(warp::reply::stream(pieces(file, range, (request.key_end)())).into_response(), media_type);
    *response.status_mut() = status;
    set(&mut response, CONTENT_LENGTH, HeaderValue::from(length));
    set(&mut response, ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    set_text(&mut response, CONTENT_DISPOSITION, &disposition);
    if status == StatusCode::PARTIAL_CONTENT {
        set_text(&mut response, CONTENT_RANGE, &shown);
    }
    Ok(response)
}

/// The response with a file that is made while it is sent. `Range` is ignored, as the standard allows: nobody knows the length.
pub(crate) fn streamed(body: &StreamBody, key_end: BoxFuture<'static, ()>) -> Response {
    let mut pieces = body.take();
    let sent_pieces = guarded(key_end, move |sender, sent| async move {
        while let Some(piece) = pieces.next().await {
            let count = piece.as_ref().map_or(0, |piece| piece.len() as u64);
            if sender.send(piece).await.is_err() {
                return;
            }
            sent.fetch_add(count, Ordering::Relaxed);
        }
    });
    let mut response = with_content_type(warp::reply::stream(sent_pieces).into_response(), body.media_type);
    set(&mut response, ACCEPT_RANGES, HeaderValue::from_static("none"));
    set_text(&mut response, CONTENT_DISPOSITION, &format!("attachment; filename=\"{}\"", body.name));
    response
}

/// The part that a `Range` asks for. The case of the unit does not matter. Other units, several ranges and what is malformed mean the whole file, as the
/// standard allows.
fn part_of(range: &str, length: u64) -> Part {
    let of_bytes = range.trim().split_once('=').filter(|(unit, _)| unit.eq_ignore_ascii_case("bytes"));
    let Some((first, last)) = of_bytes.and_then(|(_, range)| range.split_once('-')) else { return Part::Whole };
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().unwrap_or(u64::MAX));
    let (first, last) = (first.trim(), last.trim());
    match (first.is_empty(), last.is_empty(), number(first), number(last)) {
        // The last bytes.
        (true, false, _, Some(0)) => Part::Unsatisfiable,
        (true, false, _, Some(count)) if length > 0 => Part::Bytes(length.saturating_sub(count)..length),
        (false, is_open, Some(first), Some(last)) if is_open || first <= last => {
            let end = if is_open { length } else { last.saturating_add(1).min(length) };
            if first < end { Part::Bytes(first..end) } else { Part::Unsatisfiable }
        }
        (true, false, _, Some(_)) => Part::Unsatisfiable,
        _ => Part::Whole,
    }
}

/// The pieces of a part of a file. They end with an error when the key ends, or when they are read too slowly.
fn pieces(file: FileBody, range: Range<u64>, key_end: BoxFuture<'static, ()>) -> impl Stream<Item = io::Result<Bytes>> + use<> {
    guarded(key_end, move |sender, sent| send(file, range, sender, sent))
}

/// The pieces that `send` sends, which counts the bytes that were taken. They end with an error when the key ends, or when they are read too slowly.
fn guarded<S, F>(key_end: BoxFuture<'static, ()>, send: S) -> impl Stream<Item = io::Result<Bytes>> + use<S, F>
where
    S: FnOnce(mpsc::Sender<io::Result<Bytes>>, Arc<AtomicU64>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, mut received) = mpsc::channel(1);
    let (end, is_ended) = watch::channel(false);
    let sent = Arc::new(AtomicU64::new(0));
    let sending = send(sender.clone(), Arc::clone(&sent));
    tokio::spawn(async move {
        tokio::select! {
            () = sending => {}
            () = key_end => drop(end.send(true)),
            () = until_slow(sent, || tokio::time::sleep(LEAST_BYTES_TIME)) => drop(end.send(true)),
        }
        // The channel closes after the end is known: a reader must not take it for the end of the file.
        drop(sender);
    });
    let mut is_over = false;
    stream::poll_fn(move |cx| {
        if is_over {
            return Poll::Ready(None);
        }
        if *is_ended.borrow() {
            is_over = true;
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        let polled = received.poll_recv(cx);
        // The end may have come with the end of the channel.
        if matches!(polled, Poll::Ready(None)) && *is_ended.borrow() {
            is_over = true;
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        polled
    })
}

/// Reads a part of a file and sends it piece by piece. Counts the bytes that were taken.
async fn send(file: FileBody, range: Range<u64>, sender: mpsc::Sender<io::Result<Bytes>>, sent: Arc<AtomicU64>) {
    let mut at = range.start;
    while at < range.end {
        let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let piece = file.read(at, left.min(PIECE_BYTES)).await;
        let (count, is_last) = piece.as_ref().map_or((0, true), |piece| (piece.len() as u64, false));
        if let Err(error) = &piece {
            tracing::error!(%error, "a file cannot be read");
        }
        if sender.send(piece).await.is_err() || is_last {
            return;
        }
        at += count;
        sent.fetch_add(count, Ordering::Relaxed);
    }
}

/// Waits until fewer than [`LEAST_BYTES`] were taken in one of the times that `pass` waits for.
async fn until_slow<F: Future<Output = ()>>(sent: Arc<AtomicU64>, mut pass: impl FnMut() -> F) {
    let mut before = 0;
    loop {
        pass().await;
        let now = sent.load(Ordering::Relaxed);
        if now - before < LEAST_BYTES {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures_util::StreamExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    const ETAG: &str = "\"tag\"";

    fn file(bytes: &[u8]) -> FileBody {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        FileBody::new("text/csv", "a.csv".to_owned(), Arc::new(file), ()).unwrap()
    }

    fn never() -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    async fn ask(bytes: &[u8], range: Option<&str>, if_range: Option<&str>) -> (u16, String, String) {
        let (parts, body) = match response(file(bytes), ETAG, &PartRequest { range, if_range, key_end: &never }) {
            Ok(response) => response.into_parts(),
            Err(refusal) => {
                let headers: Vec<_> = refusal.headers.iter().filter(|(name, _)| *name == "content-range").collect();
                return (refusal.code.status(), headers[0].1.clone(), String::new());
            }
        };
        let body = body.collect().await.unwrap().to_bytes();
        let header = |name| parts.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        assert_eq!((header(CONTENT_LENGTH), header(ACCEPT_RANGES)), (body.len().to_string(), "bytes".to_owned()));
        (parts.status.as_u16(), header(CONTENT_RANGE), String::from_utf8_lossy(&body).into_owned())
    }

    /// Proves which part each form of `Range` gets, and that a file of another version, or a form that is not known, is sent whole.
    #[tokio::test]
    async fn ranges() {
        let whole = (200, String::new(), "0123456789".to_owned());
        for (range, shown, body) in [
            ("bytes=0-3", "bytes 0-3/10", "0123"),
            ("bytes=4-", "bytes 4-9/10", "456789"),
            ("Bytes=4-5", "bytes 4-5/10", "45"),
            ("BYTES= 4 - 5 ", "bytes 4-5/10", "45"),
            ("bytes=-3", "bytes 7-9/10", "789"),
            ("bytes=-30", "bytes 0-9/10", "0123456789"),
            ("bytes=9-99", "bytes 9-9/10", "9"),
            ("bytes=0-99999999999999999999", "bytes 0-9/10", "0123456789"),
        ] {
            let part = (206, shown.to_owned(), body.to_owned());
            assert_eq!(ask(b"0123456789", Some(range), None).await, part, "{range}");
            assert_eq!(ask(b"0123456789", Some(range), Some(ETAG)).await, part, "{range}");
            for other in ["\"other\"", "W/\"tag\"", "Sat, 28 Nov 2026 00:00:00 GMT", "tag"] {
                assert_eq!(ask(b"0123456789", Some(range), Some(other)).await, whole, "{range} {other}");
            }
        }
        for range in ["bytes=10-", "bytes=99-100", "bytes=-0", "bytes=99999999999999999999-"] {
            let (status, shown, _) = ask(b"0123456789", Some(range), None).await;
            assert_eq!((status, shown.as_str()), (416, "bytes */10"), "{range}");
        }
        for range in ["bytes=", "bytes=-", "bytes=3-2", "bytes=0-1,4-5", "items=0-1", "bytes=a-b", "bytes=+1-2", "0-1", ""] {
            assert_eq!(ask(b"0123456789", Some(range), None).await, whole, "{range}");
        }
        assert_eq!(ask(b"0123456789", None, None).await, whole);
        assert_eq!(ask(b"", None, None).await, (200, String::new(), String::new()));
        assert_eq!(ask(b"", Some("bytes=0-"), None).await.0, 416);
        assert_eq!(ask(b"", Some("bytes=-1"), None).await.0, 416);
        let long = "x".repeat(3 * PIECE_BYTES + 1);
        assert_eq!(ask(long.as_bytes(), None, None).await.2, long);
        assert_eq!(ask(long.as_bytes(), Some("bytes=1-"), None).await.2.len(), long.len() - 1);
    }

    /// Proves that a file ends with an error when its key ends, also where the reader takes what is left.
    #[tokio::test]
    async fn a_file_ends_with_its_key() {
        let long = vec![0; 100 * PIECE_BYTES];
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let key_end: BoxFuture<'static, ()> = Box::pin(async move { ended.await.unwrap_or_default() });
        let length = long.len() as u64;
        let mut pieces = Box::pin(pieces(file(&long), 0..length, key_end));
        assert_eq!(pieces.next().await.unwrap().unwrap().len(), PIECE_BYTES);
        end.send(()).unwrap();
        let rest: Vec<_> = pieces.collect().await;
        assert!(rest.last().unwrap().is_err() && rest.len() < 99, "{} more pieces", rest.len());
    }

    /// Proves that a file which is made meanwhile is sent whole, without its length, whatever is read of it at a time, and that it ends with an error when what
    /// makes it fails, or its key ends.
    #[tokio::test]
    async fn files_that_are_made_meanwhile() {
        for (end, is_whole) in [(Some(Ok(())), true), (Some(Err(io::Error::other("gone"))), false), (None, false)] {
            let (body, sender) = StreamBody::new("text/csv", "a.csv".to_owned());
            let response = streamed(&body, never());
            let (parts, body) = response.into_parts();
            let making = async {
                for piece in ["one", "two", "three"] {
                    assert!(sender.send(Bytes::from(piece)).await);
                }
                match end {
                    Some(end) => sender.end(end).await,
                    None => drop(sender),
                }
            };
            let ((), read) = tokio::join!(making, body.collect());
            let read = read.ok().map(|read| read.to_bytes());
            assert_eq!(read, is_whole.then(|| Bytes::from_static(b"onetwothree")));
            let header = |name| parts.headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!((parts.status, header(CONTENT_LENGTH), header(ACCEPT_RANGES)), (StatusCode::OK, None, Some("none")));
            assert_eq!(header(CONTENT_DISPOSITION), Some("attachment; filename=\"a.csv\""));
        }
        let (body, sender) = StreamBody::new("text/csv", "a.csv".to_owned());
        let response = streamed(&body, Box::pin(std::future::ready(())));
        assert!(response.into_body().collect().await.is_err());
        while sender.send(Bytes::from_static(b"x")).await {}
    }

    /// Proves that a reader may take the least number of bytes in each time, and that one who takes one byte less in any of them is too slow.
    #[tokio::test]
    async fn slow_readers() {
        let times_of = async |taken: &[u64]| {
            let (sent, mut taken) = (Arc::new(AtomicU64::new(0)), taken.iter());
            let mut times = 0;
            let counted = Arc::clone(&sent);
            until_slow(sent, || {
                times += 1;
                counted.fetch_add(taken.next().copied().unwrap_or(0), Ordering::Relaxed);
                std::future::ready(())
            })
            .await;
            times
        };
        assert_eq!(times_of(&[]).await, 1);
        assert_eq!(times_of(&[LEAST_BYTES, 10 * LEAST_BYTES, LEAST_BYTES, LEAST_BYTES - 1, LEAST_BYTES]).await, 4);
    }
}
