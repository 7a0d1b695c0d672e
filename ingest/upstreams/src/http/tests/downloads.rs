//! Downloads against the scripted server.

use std::path::PathBuf;

use super::*;
use crate::upstream::Download;

const MAGIC: &[u8] = b"PK\x03\x04";

/// Downloads a file into a directory. Returns the result and the content of the file, if it is there.
async fn download(server: &Server, bytes_max: u64) -> (Result<u64, FetchError>, Option<Vec<u8>>) {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("a.zip");
    let rule = Download { name: "a.zip".into(), bytes_max, magic: MAGIC, per_year_max: 10 };
    let request = Request { headers: vec![("x-api-key", "hush".into())], ..request() };
    let result = server.client().download(&STREAM, &request, &rule, &path).await;
    (result, std::fs::read(&path).ok())
}

fn file(content: &[u8]) -> Say {
    say("200 OK", &["content-type: application/zip"], content)
}

/// Proves that a file is stored as it is sent, behind one redirect, and that the key is not sent to the address of the redirect.
#[tokio::test]
async fn follows_one_redirect_without_the_key() {
    let redirect = || say("302 Found", &["location: /signed/a.zip?expires=5"], b"");
    let server = Server::start(vec![redirect(), file(b"PK\x03\x04rest")]).await;
    let (result, content) = download(&server, 100).await;
    assert_eq!((result.unwrap(), content.unwrap()), (8, b"PK\x03\x04rest".to_vec()));
    let heads: Vec<String> = server.heads().iter().map(|head| head.to_ascii_lowercase()).collect();
    assert!(heads.len() == 2 && heads[0].contains("x-api-key: hush"), "{heads:?}");
    assert!(heads[1].starts_with("get /signed/a.zip?expires=5 ") && !heads[1].contains("hush"), "{heads:?}");
    let server = Server::start(vec![redirect()]).await;
    let (result, content) = download(&server, 100).await;
    assert!(matches!(result, Err(FetchError::Redirect { .. })) && content.is_none());
    let elsewhere = Server::start(vec![say("302 Found", &["location: http://other.example/a.zip"], b"")]).await;
    let (result, _) = download(&elsewhere, 100).await;
    assert!(matches!(result, Err(FetchError::Redirect { .. })) && elsewhere.heads().len() == 1);
}

/// Proves that an expired address is requested again from the start, and that a file that is another one, too large or broken off is not requested a
/// second time and leaves nothing.
#[tokio::test(start_paused = true)]
async fn a_body_is_requested_once() {
    let expired = vec![say("302 Found", &["location: /signed"], b""), say("403 Forbidden", &[], b""), file(b"PK\x03\x04")];
    let server = Server::start(expired).await;
    assert_eq!(download(&server, 100).await.0.unwrap(), 4);
    for (answer, expected) in [
        (say("200 OK", &["content-type: text/html"], b"<!DOCTYPE html><html>"), "begins with \"<!DOCTYPE html><html\""),
        (file(b"PK"), "begins with \"PK\""),
        (file(&[MAGIC, &[0; 100]].concat()), "above 50 bytes"),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\nPK\x03\x04", false), "connection failed"),
        (say("404 Not Found", &[], b""), "status 404"),
    ] {
        let server = Server::start(vec![answer]).await;
        let (result, content) = download(&server, 50).await;
        let error = result.unwrap_err();
        assert!(error.to_string().contains(expected) && !words(&error).contains("hush"), "{}", words(&error));
        assert!(content.is_none() && server.heads().len() == 1, "{expected}");
    }
    let server = Server::start(vec![say("503 Service Unavailable", &[], b""), file(b"PK\x03\x04")]).await;
    assert_eq!(download(&server, 100).await.0.unwrap(), 4);
}
