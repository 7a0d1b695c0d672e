//! How the arguments of an operation differ on one surface from what their type says of them.

use operation::problem::Problem;
use serde_json::Value;

/// How an argument differs on one surface from what the type of the arguments, or the service's filter, says of it.
#[derive(Clone, Copy, Debug)]
pub enum Difference {
    /// The argument has another default.
    Default {
        /// The name of the argument.
        argument: &'static str,
        /// Its default on the surface.
        default: fn() -> Value,
        /// Its description on the surface; `None` if it is that of the type.
        description: Option<&'static str>,
    },
    /// The argument has another description.
    Described {
        /// The name of the argument.
        argument: &'static str,
        /// Its description on the surface.
        description: &'static str,
    },
    /// The surface does not have this optional argument, which always has its default there.
    Without(&'static str),
    /// The surface requires this argument, which is optional otherwise.
    Required(&'static str),
    /// The argument has another name.
    Renamed {
        /// The name of the argument in the type.
        argument: &'static str,
        /// Its name on the surface, which its problems have as well.
        name: &'static str,
    },
}

/// The other name of an argument on a surface with these differences; `None` if it has its own there.
pub(super) fn renamed(differences: &[Difference], own: &str) -> Option<&'static str> {
    differences.iter().find_map(|difference| match difference {
        Difference::Renamed { argument, name } if *argument == own => Some(*name),
        _ => None,
    })
}

/// A problem with the names that arguments have on a surface with these differences, in its parameter and where its detail begins with that.
pub(super) fn with_names(differences: &[Difference], problem: Problem) -> Problem {
    differences.iter().fold(problem, |problem, difference| match difference {
        Difference::Renamed { argument, name } => problem.renamed(argument, name),
        Difference::Default { .. } | Difference::Described { .. } | Difference::Without(_) | Difference::Required(_) => problem,
    })
}
