//! Grades pairs of company names: reads a JSON array of two names from each line of standard input, and prints the grade (`exact`, `strong`, `none`), a
//! tab, and the reason. `ops/checks/company-names-yardstick` runs it.

#![expect(clippy::print_stdout, reason = "the grades are the result")]

use std::io::BufRead;

use matching::company::{CompanyName, compare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let (one, other): (String, String) = serde_json::from_str(&line?)?;
        let found = CompanyName::new(&one).zip(CompanyName::new(&other)).and_then(|(one, other)| compare(&one, &other));
        match found {
            Some(found) => println!("{}\t{found}", found.grade.as_str()),
            None => println!("none\t"),
        }
    }
    Ok(())
}
