//! `GET /health`: liveness, and the extent of the register.

use feed::position::Position;
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

use super::register::Register;
use reads::health::HealthFields;

/// The extent of the register.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Extent {
    /// The number of marks, dead ones included; null while the index of names is being built.
    pub marks: Option<u64>,
    /// The number of live marks; null while the index of names is being built.
    pub live_marks: Option<u64>,
}

impl HealthFields for Extent {
    async fn read(ctx: &Context, at: &Position) -> Result<Self, Problem> {
        let corpus = Register::of(ctx).corpus(at.seq);
        Ok(Self { marks: corpus.map(|corpus| corpus.marks), live_marks: corpus.map(|corpus| corpus.live_marks) })
    }
}
