//! `highwater status`: what needs attention, and the progress of upstreams, topics, views, signatures and services.

mod render;
mod report;

use std::sync::Arc;

use self::report::Report;
use super::StatusFormat;
use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::output::Output;

/// Prints the status, with the bytes of topics if `has_sizes` is set. What needs attention is also the reason of the failure, so that scripts see it in
/// the exit code.
pub(super) async fn run(engine: &Arc<Engine>, format: StatusFormat, has_sizes: bool, output: &dyn Output) -> Result<(), Failure> {
    let mut report = Report::collect(engine).await?;
    if has_sizes {
        report.add_sizes(engine).await?;
    }
    match format {
        StatusFormat::Json => output.line(&serde_json::to_vec(&report).map_err(failure)?),
        StatusFormat::Table => render::tables(&report).iter().for_each(|line| output.line(line.as_bytes())),
        StatusFormat::Lines => render::lines(&report).iter().for_each(|line| output.line(line.as_bytes())),
    }
    if report.is_ok { Ok(()) } else { Err(Failure::new(format!("needs attention: {}", report.problems.join("; ")))) }
}
