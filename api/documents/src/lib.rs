//! What is published about services besides their answers: OpenAPI and AsyncAPI documents, `llms.txt`, payment terms, limits, the descriptions of MCP tools and
//! endpoints, the reference pages, and the list of Avro schemas.
//!
//! Architecture invariant: nothing here knows a service, a request or a connection. Every document follows from definitions and settings, and is rendered once,
//! when a listener starts.

pub mod asyncapi;
pub mod avro_schemas;
pub mod card;
pub mod discovery;
pub mod limits;
pub mod openapi;
pub mod pages;
pub mod plain_text;
mod prices;
pub mod sitemap;
#[cfg(test)]
mod tests;
pub mod tools;
pub mod wire;
