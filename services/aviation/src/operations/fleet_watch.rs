//! Names of stored fleets, and what a watch of one means: the aircraft as they are stored when a change comes.

use access::fleets::StoredFleet;
use directives::{Aircraft, ResolvedAircraft};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};

/// The name of a fleet that is given none.
pub(crate) fn fleet_default() -> String {
    "default".to_owned()
}

/// The name of a fleet without spaces around it.
///
/// # Errors
/// `parameter-invalid` for a name that is empty or has control characters.
pub(crate) fn fleet_name(given: &str) -> Result<String, Problem> {
    let name = given.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::parameter("fleet", "fleet: is empty, or holds control characters"));
    }
    Ok(name.to_owned())
}

/// A stored fleet, as the filter of a watch names it: by ids, since its name and aircraft are private.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetOfWatch {
    /// The account.
    pub account: String,
    /// The id of the stored fleet.
    pub id: String,
}

/// What names the aircraft of a stored fleet.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredNames {
    make: String,
    model: String,
    serial: Option<String>,
    engine_make: Option<String>,
    engine_model: Option<String>,
    prop_make: Option<String>,
    prop_model: Option<String>,
}

/// The aircraft of a stored fleet, resolved.
///
/// # Errors
/// `internal` if the fleet cannot be read.
pub(crate) fn aircraft_of(fleet: &StoredFleet) -> Result<Vec<ResolvedAircraft>, Problem> {
    let all = Vec::<StoredNames>::deserialize(&fleet.aircraft).map_err(|error| {
        tracing::error!(id = fleet.id, %error, "a stored fleet cannot be read");
        Problem::new(ErrorCode::Internal, "the stored fleet cannot be read; assess it again")
    })?;
    let resolved = |names: &StoredNames| {
        ResolvedAircraft::new(&Aircraft {
            make: &names.make,
            model: &names.model,
            serial: names.serial.as_deref(),
            engine: names.engine_model.as_deref().map(|model| (names.engine_make.as_deref().unwrap_or_default(), model)),
            propeller: names.prop_model.as_deref().map(|model| (names.prop_make.as_deref().unwrap_or_default(), model)),
        })
    };
    Ok(all.iter().map(resolved).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that the aircraft of a stored fleet are those that an assessment stored, with their engines, and that one that cannot be read is an error.
    #[test]
    fn aircraft_of_fleets() {
        let fleet_with = |aircraft| StoredFleet { id: "fleet_1".into(), name: "default".into(), aircraft, made_at: 0, changed_at: 0 };
        let stored = fleet_with(json!([
            { "tail": "N1", "make": "Piper", "model": "PA-28-140", "hoursTIS": 1.5, "engineMake": "Lycoming", "engineModel": "O-320-E2A" },
            { "tail": "N2", "make": "Cessna", "model": "172S", "compliance": [{ "ad": "2011-10-09" }] },
        ]));
        let aircraft = aircraft_of(&stored).unwrap();
        assert_eq!(aircraft.iter().map(|one| one.airframe.form.as_str()).collect::<Vec<_>>(), ["PA28140", "172S"]);
        assert_eq!((aircraft[0].engine.as_ref().map(|engine| engine.form.as_str()), &aircraft[1].engine), (Some("O320E2A"), &None));
        assert!(aircraft_of(&fleet_with(json!({}))).is_err() && aircraft_of(&fleet_with(json!([]))).unwrap().is_empty());
        assert_eq!((fleet_name(" a ").unwrap().as_str(), fleet_name(" ").is_err(), fleet_default().as_str()), ("a", true, "default"));
    }
}
