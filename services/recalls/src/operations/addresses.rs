//! The addresses of recalls: the number of an agency, or one of the numbers that a recall has among others.

use schemas::views::recalls::AGENCIES;
use texts::numbers::{campaign, number_of};

use super::rows::Filter;
use super::search::Search;
use super::search::words::{Keyword, query_words};
use feed::position::Position;
use operation::context::{Context, Part as _};
use operation::problem::Problem;
use reads::numbers::IDS_MAX;

/// A word that no text has.
const NO_WORD: &str = " ";

/// The ids that a number can mean: of each agency, then those of the recalls that have the number among others.
///
/// # Errors
/// `unavailable` while the keyword index is built.
pub(crate) async fn ids_of(ctx: &Context, at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let Some(number) = number_of(text) else { return Ok(Vec::new()) };
    let given = text.trim().to_uppercase();
    let (agency, spelled) = given.rsplit_once(':').unwrap_or(("", given.as_str()));
    let whole = campaign(&number).map(|number| number.to_uppercase());
    let agencies = AGENCIES.into_iter().filter(|known| agency.is_empty() || agency == *known);
    let mut ids: Vec<String> = agencies
        .flat_map(|agency| std::iter::once(spelled).chain(whole.as_deref()).map(move |number| format!("{agency}:{number}")))
        .collect();
    let keyword = Keyword { words: vec![NO_WORD.to_owned()], number: query_words(text)?.number };
    let page = Search::of(ctx).find(ctx, at, keyword, &Filter::default(), None, IDS_MAX).await?;
    ids.extend(page.recalls.into_iter().map(|recall| recall.id));
    Ok(ids)
}
