//! How the answers of a witness are read.

use crate::note::Cosigner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const NOTE: &str = "log.example/recalls\n3\nO2zM1+PgI/85MAbwMDFe562esRGwIrQfun5bejlz9og=\n\n\u{2014} log.example/recalls \
    2yI2KSH+7+LI5FWZdkN9zX8ewy/QDG3/9KqEdtdyFoXgXKxOH9Jf9IknqEBsX9oLwcnFMya1sfSHrzTRxUL9Y1J/8QU=\n";

fn cosigner(seed: u8) -> Cosigner {
    Cosigner::new("witness.example/w1", &[seed; 32]).unwrap()
}

/// Submits a checkpoint to a witness that gives this answer, checks the request, and returns the result as text.
async fn made_of(answer: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/prefix/", listener.local_addr().unwrap());
    let answering = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(NOTE.as_bytes()) {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0);
        }
        let heard = String::from_utf8(heard).unwrap();
        assert!(heard.starts_with("POST /prefix/add-checkpoint HTTP/1.1\r\n"), "{heard}");
        assert!(heard.contains("\r\n\r\nold 0\n\nlog.example/recalls\n3\n"), "{heard}");
        // A longer answer is not read to its end.
        drop(stream.write_all(answer.as_bytes()).await);
    });
    let witness = Witness::new(&cosigner(2).verifier().to_string(), &url).unwrap();
    let submitted = witness.submit(&AddCheckpoint { old: 0, proof: Vec::new(), note: NOTE }).await;
    answering.await.unwrap();
    match submitted {
        Ok(Answer::Lines(lines)) => match witness.cosignature(NOTE, 3, &lines) {
            Some(Cosignature { time_s, line, .. }) => format!("cosigned at {time_s}: {}", line.starts_with('\u{2014}')),
            None => "not cosigned".to_owned(),
        },
        Ok(Answer::Conflict(size)) => format!("conflict {size:?}"),
        Err(reason) => reason,
    }
}

/// Proves that only the witness's own valid cosignature counts, whatever is next to it, that the size in a 409 is read only in its form, and that
/// the reason names every other answer.
#[tokio::test]
async fn answers() {
    let text = SignedNote::parse(NOTE).unwrap().text();
    let good = cosigner(2).cosign(text, 1_700_000_000);
    let (stranger, other) = (cosigner(3).cosign(text, 1_700_000_000), cosigner(2).cosign(&text.replace("\n3\n", "\n4\n"), 1_700_000_000));
    let answer = |status: &str, body: &str| format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for (answer, wanted) in [
        (answer("200", &format!("{good}\n")), "cosigned at 1700000000: true"),
        (answer("200", &format!("{stranger}\n{good}\n")), "cosigned at 1700000000: true"),
        (answer("200", &format!("{stranger}\n")), "not cosigned"),
        (answer("200", &format!("{other}\n")), "not cosigned"),
        (answer("200", &good), "not cosigned"),
        (answer("200", &format!("{good}\nand more\n")), "not cosigned"),
        (answer("200", ""), "not cosigned"),
        (answer("200", &"x".repeat(ANSWER_BYTES_MAX + 1)), "its answer is longer than 65536 bytes"),
        (answer("409", "17\n"), "conflict Some(17)"),
        (answer("409", "17"), "conflict None"),
        (answer("409", "-17\n"), "conflict None"),
        (answer("409", "<html>\n"), "conflict None"),
        (answer("403", ""), "it answered 403: it does not know the key that signs this log"),
        (answer("404", ""), "it answered 404: it does not know this log's origin"),
        (answer("422", ""), "it answered 422: the checkpoint does not continue the one that it cosigned last"),
        (answer("500", ""), "it answered 500"),
        ("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n".to_owned(), "it answered 302"),
    ] {
        assert_eq!(made_of(answer.clone()).await, wanted, "{answer}");
    }
    let broken = made_of("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_owned()).await;
    assert!(broken.contains("error") && !broken.contains("127.0.0.1"), "{broken}");
}
