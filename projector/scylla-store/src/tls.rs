//! TLS to the nodes with OpenSSL, which librdkafka already uses (ops/docs/decisions/2026-11-21-cql-tls.md).

use std::error::Error as StdError;
use std::fs;
use std::path::Path;

use openssl::ssl::{SslConnector, SslMethod};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use scylla::client::session::{OpenSsl010Config, TlsContext};
use view_store::store::Error;

/// Creates a context that accepts nodes whose certificate is signed by one in a PEM file. The system's authorities are not used: the driver
/// does not check host names, so that any holder of a certificate from one of those would be accepted.
pub(crate) fn context(ca_file: &Path) -> Result<TlsContext, Error> {
    read(ca_file).map_err(|source| {
        let what = format!("the certificates in {} cannot be used ([scylla] ca_file)", ca_file.display());
        Error::Unavailable { what, source: Some(source) }
    })
}

fn read(ca_file: &Path) -> Result<TlsContext, Box<dyn StdError + Send + Sync>> {
    let certificates = X509::stack_from_pem(&fs::read(ca_file)?)?;
    if certificates.is_empty() {
        return Err("the file contains no certificate: PEM is expected, with lines BEGIN CERTIFICATE".into());
    }
    let mut store = X509StoreBuilder::new()?;
    for certificate in certificates {
        store.add_cert(certificate)?;
    }
    let mut connector = SslConnector::builder(SslMethod::tls_client())?;
    connector.set_cert_store(store.build());
    Ok(TlsContext::OpenSsl010Config(OpenSsl010Config::new(connector)))
}
