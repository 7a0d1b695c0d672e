//! Searches with a request body, on the wire.

use super::*;

/// Proves that searches accept only POST and everything else only GET, that the size of bodies is limited, and that faults apply to
/// searches like to all other requests.
#[tokio::test]
async fn searches_accept_only_post() {
    let (_sim, addr) = start(options(600)).await;
    let (grants, body) = ("/v2/projects/search", r#"{"limit":20,"sort_field":"appl_id"}"#);
    let clean = http(addr, &format!("POST {grants}"), body).await;
    assert!(clean.0.starts_with("http/1.1 200"), "{}", clean.0);
    assert_eq!(serde_json::from_slice::<Value>(&clean.1).unwrap()["results"].as_array().unwrap().len(), 20);
    for request in [format!("GET {grants}"), "POST /food/enforcement.json".to_owned(), "POST /api/v2/studies".to_owned()] {
        assert!(http(addr, &request, "").await.0.starts_with("http/1.1 405"), "{request}");
    }
    assert!(http(addr, "POST /_sim/stats", "").await.0.starts_with("http/1.1 404"));
    // The request is refused by its announced length, before the body is sent.
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let head = format!("POST {grants} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\ncontent-length: 70000\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    let search = r#"{"filters":{"award_type_codes":["A","B","C","D"]},"fields":["Award ID","Action Date"],"sort":"Award ID","limit":20}"#;
    let requests = [(grants, body, "date_added"), ("/api/v2/search/spending_by_transaction/", search, "Action Date")];
    for (path, body, field) in requests {
        let under = async |fault: &str| {
            http(addr, "POST /_sim/faults", &set(fault, 1.0)).await;
            http(addr, &format!("POST {path}"), body).await
        };
        let results = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["results"].clone();
        assert!(under("500").await.0.starts_with("http/1.1 500"));
        assert!(serde_json::from_slice::<Value>(&under("truncated").await.1).is_err());
        assert!(under("slow").await.0.contains("transfer-encoding: chunked"));
        assert_eq!(results(&under("outage").await.1), json!([]), "{path}");
        assert!(results(&under("schema_missing").await.1)[0].get(field).is_none(), "{path}");
        assert!(results(&under("schema_retyped").await.1)[0][field].is_object(), "{path}");
        assert!(results(&under("vanished").await.1).as_array().unwrap().len() < 20, "{path}");
    }
}
