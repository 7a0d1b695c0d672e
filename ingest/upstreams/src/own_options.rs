//! What is configured for one upstream only, in a type of that upstream: the settings that all upstreams have know none of these types.

use std::any::Any;
use std::sync::Arc;

/// The options that only one upstream has.
#[derive(Clone, Debug, Default)]
pub struct OwnOptions(Option<Arc<dyn Any + Send + Sync>>);

impl OwnOptions {
    /// Options of the type that the upstream reads.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(options: T) -> Self {
        Self(Some(Arc::new(options)))
    }

    /// The options, if they are of this type. `None` if none are configured, or those of another upstream.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that options are found by their type alone.
    #[test]
    fn options_are_found_by_their_type() {
        let own = OwnOptions::new(5_u8);
        assert_eq!((own.get::<u8>(), own.get::<u16>(), OwnOptions::default().get::<u8>()), (Some(&5), None, None));
    }
}
