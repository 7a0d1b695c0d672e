//! Files of made-up rows.

use feed::testing::accounts::world;
use table_file::Kind;
use tokio::sync::Notify;

use super::*;

/// So many parts of one row each, then an error if there is one. Each waits for the gate first, if there is one.
struct Parts {
    left: usize,
    error: Option<io::Error>,
    gate: Option<Arc<Notify>>,
}

impl FileRows for Parts {
    async fn next(&mut self) -> io::Result<Vec<Vec<Value>>> {
        if let Some(gate) = &self.gate {
            gate.notified().await;
        }
        if self.left == 0 {
            return self.error.take().map_or(Ok(Vec::new()), Err);
        }
        self.left -= 1;
        Ok(vec![vec![format!("={}", "x".repeat(1_000)).into()]])
    }
}

fn parts(left: usize) -> Parts {
    Parts { left, error: None, gate: None }
}

async fn ask(ctx: &Context, account: &str, etag: &str, rows: impl FnOnce() -> Parts) -> Result<FileBody, Problem> {
    let wanted = Wanted { account, etag, name: "a.csv".to_owned(), format: Format::Csv };
    file(ctx, wanted, vec![Column::new("text", Kind::Text)], rows).await
}

async fn read(file: &FileBody) -> String {
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < file.length {
        let piece = file.read(at, PIECE_BYTES).await.unwrap();
        at += piece.len() as u64;
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).unwrap()
}

/// Proves that a file of several pieces is written once and read whole by everybody, and that one that could not be written is written again.
#[tokio::test]
async fn files_are_written_once() {
    let (_world, ctx) = world().await;
    let failing = || Parts { error: Some(io::Error::other("gone")), ..parts(100) };
    assert_eq!(ask(&ctx, "acct_1", "a", failing).await.unwrap_err().code, ErrorCode::Unavailable);
    let dir = ctx.settings.cache_dir.as_ref().unwrap().join("files");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing of it stays");
    let first = ask(&ctx, "acct_1", "a", || parts(200)).await.unwrap();
    let whole = format!("text\r\n{}", format!("'={}\r\n", "x".repeat(1_000)).repeat(200));
    assert_eq!((read(&first).await, first.length, first.media_type), (whole.clone(), whole.len() as u64, Format::Csv.media_type()));
    let second = ask(&ctx, "acct_2", "a", || unreachable!("it is written")).await.unwrap();
    assert_eq!(read(&second).await, whole);
    assert_ne!(ask(&ctx, "acct_2", "b", || parts(1)).await.unwrap().length, second.length);
    assert!(first.read(first.length, 1).await.is_err(), "nothing follows");
}

/// Proves that readers who never end, and files that one account waits for, keep no other account waiting, and that both are limited by account.
#[tokio::test]
async fn accounts_do_not_wait_for_each_other() {
    let (_world, ctx) = world().await;
    let mut held = Vec::new();
    for _ in 0..READ_PER_ACCOUNT_MAX {
        held.push(ask(&ctx, "acct_1", "a", || parts(1)).await.unwrap());
    }
    assert_eq!(ask(&ctx, "acct_1", "a", || parts(1)).await.unwrap_err().code, ErrorCode::RateLimited);
    assert!(ask(&ctx, "acct_2", "a", || parts(1)).await.is_ok());
    held.pop();
    drop(ask(&ctx, "acct_1", "a", || parts(1)).await.unwrap());
    held.clear();

    // Files whose rows do not come, as many as one account may want.
    let gate = Arc::new(Notify::new());
    let stuck = || Parts { gate: Some(Arc::clone(&gate)), ..parts(1) };
    let names: Vec<String> = (0..WRITTEN_PER_ACCOUNT_MAX).map(|number| format!("stuck {number}")).collect();
    let mut asking: Vec<_> = names.iter().map(|name| Box::pin(ask(&ctx, "acct_1", name, stuck))).collect();
    for asked in &mut asking {
        assert!(asked.now_or_never().is_none());
    }
    assert_eq!(ask(&ctx, "acct_1", "one more", stuck).await.unwrap_err().code, ErrorCode::RateLimited);
    assert!(ask(&ctx, "acct_2", "c", || parts(1)).await.is_ok(), "another account writes at the same time");
    drop(asking);
    assert_eq!(
        ask(&ctx, "acct_1", "one more", stuck).await.unwrap_err().code,
        ErrorCode::RateLimited,
        "what has begun is written to its end"
    );
}

/// So many pieces of one byte, then a problem if there is one.
struct Letters {
    left: usize,
    problem: Option<Problem>,
}

impl FilePieces for Letters {
    async fn next(&mut self) -> Result<Vec<u8>, Problem> {
        match (self.left.checked_sub(1), self.problem.take()) {
            (Some(left), problem) => {
                (self.left, self.problem) = (left, problem);
                Ok(b"x".to_vec())
            }
            (None, Some(problem)) => Err(problem),
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// Proves that a file which is made while it is sent has all its pieces; that a problem before the first piece is the answer, and a later one an error at the
/// end of the file; and that such files count as files that the account reads, until their readers are gone.
#[tokio::test]
async fn streamed_files() {
    let (_world, ctx) = world().await;
    let ask =
        |left: usize, problem: Option<Problem>| streamed(&ctx, "acct_1", (Format::Csv, "a.csv".to_owned()), Letters { left, problem });
    let problem = || Some(Problem::new(ErrorCode::Unavailable, "gone"));
    for (left, problem, is_whole) in [(3, None, true), (0, None, true), (3, problem(), false)] {
        let body = ask(left, problem).await.unwrap();
        let (mut pieces, mut bytes, mut is_complete) = (body.take(), 0, true);
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => bytes += piece.len(),
                Err(_) => is_complete = false,
            }
        }
        assert_eq!((bytes, is_complete), (left, is_whole));
    }
    assert_eq!(ask(0, problem()).await.unwrap_err().code, ErrorCode::Unavailable);
    let mut held = Vec::new();
    for _ in 0..READ_PER_ACCOUNT_MAX {
        held.push(ask(9, None).await.unwrap());
    }
    assert_eq!(ask(1, None).await.unwrap_err().code, ErrorCode::RateLimited);
    held.clear();
    while ask(1, None).await.is_err() {
        tokio::task::yield_now().await;
    }
}
