//! Detects that an upstream has changed its format, with one rule for all upstreams. A single record may be malformed. If many records are
//! malformed in the same way, the format has changed and a person must look at it; accepting them would overwrite good records with empty
//! fields.
//!
//! There are two guards. [`Tally`] judges one answer by itself: fields that every record has must be there in their type. [`FieldCounts`]
//! counts, for every field that is mapped, in how many documents it has a value; [`missed`] compares the counts of a sync run with those of
//! the runs before, so that an optional field that was renamed is noticed, too.
//!
//! A field that not every document has is absent from some by accident. [`missed`] therefore needs at least [`DOCUMENTS_MIN`] documents in a
//! row without it, over as many runs as that takes, and a chance below [`CHANCE_MAX`] that so many lack it. What a run does about it is
//! decided by the sync loop.

use schemas::event::FieldCount;

use crate::UpstreamError;
use crate::field_counts::Counts;
pub use crate::field_counts::{COUNTED_MAX, FieldCounts};

/// From this many known records on, a change that leaves all of them without a field is judged.
const CHANGED_MIN: i64 = 3;
/// The share of corrections that take away a field that a record had.
const BLANKING_SHARE: f64 = 0.01;
/// A field is missed when the chance that so many corrections at once take it away is below this. It adds to the false stops of [`CHANCE_MAX`]: at most this
/// chance for each field of a run in which three or more known records changed, with at least half of the known records of their page. No stream has more
/// than 30 fields, so such a run adds at most 0.0003: with the 0.06 of [`CHANCE_MAX`], 310 of them in a year, over all streams together, give less than one
/// false stop in ten years. A field that nearly all documents had adds a tenth of that with three changed records, and a hundredth as much with each more.
const BLANKING_CHANCE_MAX: f64 = 1e-5;
/// A page with fewer records than this is not judged.
pub const RECORDS_MIN: usize = 20;
/// A field is judged over at least this many documents in a row.
pub const DOCUMENTS_MIN: i64 = 10;
/// A field is missed when the chance that so many documents in a row lack it by accident is below this. All streams together read some
/// 60 million pairs of a document and a field in a year, and each pair can begin such a row: 0.06 false alarms in ten years.
pub const CHANCE_MAX: f64 = 1e-10;
/// If an answer has more records than this, most of them outside the requested window, the filter was ignored.
pub const OUTSIDE_MIN: usize = 500;

/// An expected field: its name at the upstream, and a check whether a record has it in the expected type.
pub type Expected<R> = (&'static str, fn(&R) -> bool);

/// Counts the records in which an expected field is missing or has another type.
pub struct Tally<'e, R> {
    expected: &'e [Expected<R>],
    missing: Vec<usize>,
    unread: usize,
    total: usize,
}

impl<'e, R> Tally<'e, R> {
    /// Starts with no records.
    #[must_use]
    pub fn new(expected: &'e [Expected<R>]) -> Self {
        Self { expected, missing: vec![0; expected.len()], unread: 0, total: 0 }
    }

    /// Counts a record. One that could not be parsed (`None`) counts as a record without any field.
    pub fn take(&mut self, record: Option<&R>) {
        self.total += 1;
        self.unread += usize::from(record.is_none());
        for ((_, holds), missing) in self.expected.iter().zip(&mut self.missing) {
            *missing += usize::from(!record.is_some_and(holds));
        }
    }

    /// Checks that no expected field is missing on more than half of the records.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`], which names the first such field.
    pub fn check(&self, stream: &'static str) -> Result<(), UpstreamError> {
        share(stream, "record", self.unread, self.total)?;
        self.expected.iter().zip(&self.missing).try_for_each(|((field, _), missing)| share(stream, field, *missing, self.total))
    }
}

/// Applies the rule to counts, for upstreams that do not hold all records at once: `missing` of `total` records lack the field.
///
/// # Errors
/// [`UpstreamError::Stop`], which names the field.
pub fn share(stream: &'static str, field: &str, missing: usize, total: usize) -> Result<(), UpstreamError> {
    if total >= RECORDS_MIN && missing > total / 2 {
        let reason = format!("absent or of another type on {missing} of {total} records");
        return Err(UpstreamError::Stop { stream, field: field.to_owned(), reason });
    }
    Ok(())
}

/// How many records of a run would be appended and tell something about the format of the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Records that the log does not have.
    pub new: i64,
    /// Records that have changed together with most of their neighbours.
    pub changed: i64,
}

impl Touched {
    /// Returns the number of all these records.
    #[must_use]
    pub const fn records(self) -> i64 {
        self.new + self.changed
    }
}

impl std::ops::AddAssign for Touched {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.changed += other.changed;
    }
}

/// A field that most documents had and that the last documents do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The field, as the upstream names it.
    pub field: String,
    /// In how many documents it had a value before.
    filled: i64,
    /// How many documents there were before.
    documents: i64,
    /// How many documents in a row lack it, up to the last one.
    absent: i64,
    /// Whether records that the log has would lose it.
    pub is_lost: bool,
    /// Whether the runs before this one had enough of these documents to miss it.
    pub is_repeated: bool,
}

impl Missed {
    /// Says what was found, for operators.
    #[must_use]
    pub fn reason(&self) -> String {
        let Self { filled, documents, absent, .. } = self;
        format!("present in {filled} of {documents} documents of the runs before, absent in the last {absent}")
    }
}

/// Returns the fields that most documents of earlier runs had and that this run has in no document yet.
fn lacking<'b>(before: &'b [FieldCount], run: &FieldCounts) -> impl Iterator<Item = (&'b FieldCount, i64)> {
    let of_run = before.iter().filter_map(|field| Some((field, run.get(&field.name)?)));
    let is_lacking = |(before, now): &(&FieldCount, &Counts)| now.filled == 0 && before.is_expected();
    of_run.filter(is_lacking).map(|(before, now)| (before, now.records))
}

/// Whether [`missed`] could find a field. If not, the caller need not know how many documents are new.
#[must_use]
pub fn may_miss(before: &[FieldCount], run: &FieldCounts) -> bool {
    lacking(before, run).next().is_some()
}

/// Finds a field that most documents of earlier runs had and that has been absent since, in no document of this run and in so many in a row
/// that chance does not explain it. `touched` says which records this run would append: documents that were judged in an earlier run are not judged
/// again, and that corrections take a field away from several known records at once is improbable sooner.
#[must_use]
pub fn missed(before: &[FieldCount], run: &FieldCounts, touched: Touched) -> Option<Missed> {
    lacking(before, run).find_map(|(FieldCount { name, filled, records, absent }, now)| {
        let (documents, absent_now) = (records - absent, absent + touched.records().min(now));
        let is_lost = touched.changed.min(now) > 0 && is_improbable(*filled, documents, absent_now)
            || are_blanked(*filled, documents, touched.changed.min(now));
        let is_missed = is_lost || (touched.records().min(now) > 0 && is_improbable(*filled, documents, absent_now));
        is_missed.then(|| Missed {
            field: name.clone(),
            filled: *filled,
            documents,
            absent: absent_now,
            is_lost,
            is_repeated: is_improbable(*filled, documents, *absent),
        })
    })
}

/// Whether it is improbable that corrections take a field away from all of `changed` records, if `filled` of `documents` had it before.
fn are_blanked(filled: i64, documents: i64, changed: i64) -> bool {
    let share = share_without(filled, documents) + BLANKING_SHARE;
    changed >= CHANGED_MIN && share.powi(i32::try_from(changed).unwrap_or(i32::MAX)) < BLANKING_CHANCE_MAX
}

/// The share of documents without a field; not zero, because no number of documents proves that.
fn share_without(filled: i64, documents: i64) -> f64 {
    ((documents - filled) as f64 + 0.5) / (documents as f64 + 1.0)
}

/// Whether it is improbable that a field is absent in `absent` documents in a row, if `filled` of `documents` had it before.
fn is_improbable(filled: i64, documents: i64, absent: i64) -> bool {
    absent >= DOCUMENTS_MIN && share_without(filled, documents).powi(i32::try_from(absent).unwrap_or(i32::MAX)) < CHANCE_MAX
}

/// Judges how many records are outside the requested window: none, some (a warning), or so many that the filter was ignored (an error).
///
/// # Errors
/// [`UpstreamError::Stop`], which names the parameter.
pub fn outside(stream: &'static str, parameter: &str, outside: usize, total: usize) -> Result<Option<String>, UpstreamError> {
    if total > OUTSIDE_MIN && outside > total / 2 {
        let reason = format!("ignored by the upstream: {outside} of {total} records lie outside the window asked for");
        return Err(UpstreamError::Stop { stream, field: parameter.to_owned(), reason });
    }
    Ok((outside > 0).then(|| format!("{outside} of {total} records lie outside the window asked for by {parameter}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the threshold: half of the records may lack a field, one more stops the stream; small pages are not judged.
    #[test]
    fn more_than_half_of_twenty_stops() {
        let check = |missing: usize, total: usize| {
            let mut tally = Tally::<bool>::new(&[("Title", |has| *has)]);
            (0..total).for_each(|at| tally.take(Some(&(at >= missing))));
            tally.check("d")
        };
        assert!(check(10, 20).is_ok());
        assert!(check(19, 19).is_ok());
        let error = check(11, 20).unwrap_err();
        assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "Title"));
    }

    /// Counts `filled` of `records` records that have a field.
    fn counts(filled: i64, records: i64) -> FieldCounts {
        let mut counts = FieldCounts::default();
        (0..records).for_each(|at| counts.count([("Hazards", at < filled)]));
        counts
    }

    /// Counts new records.
    const fn new(new: i64) -> Touched {
        Touched { new, changed: 0 }
    }

    /// Proves that a field is missed when three known records lose it at once, or four if more documents lacked it before; and that a correction of
    /// two records may take away a field.
    #[test]
    fn a_field_that_known_records_lose_is_missed() {
        let misses = |filled: i64, changed: i64| {
            let found = missed(&counts(filled, 60).added_to(&[], 0), &counts(0, changed), Touched { new: 0, changed });
            found.map(|found| (found.is_lost, found.is_repeated))
        };
        assert_eq!([misses(60, 2), misses(60, 3)], [None, Some((true, false))]);
        assert_eq!([misses(58, 3), misses(58, 4)], [None, Some((true, false))]);
        let many = missed(&counts(60, 60).added_to(&[], 0), &counts(0, 10), Touched { new: 9, changed: 1 });
        assert!(many.unwrap().is_lost);
    }

    /// Proves that no number of records in one document, and no number of documents below ten, is enough to miss a field; that ten are if
    /// nearly all had it, counted over runs; and that a field that few had, or that a document of the run has, is not missed.
    #[test]
    fn a_field_is_missed_after_ten_documents() {
        let misses = |before: (i64, i64), run: (i64, i64), touched: i64| {
            missed(&counts(before.0, before.1).added_to(&[], 0), &counts(run.0, run.1), new(touched)).is_some()
        };
        assert!(misses((190, 200), (0, 10), 10) && misses((5_000, 5_000), (0, 10), 10) && misses((12, 12), (0, 10), 10));
        assert!(!misses((190, 200), (0, 9), 9) && !misses((5_000, 5_000), (0, 9), 9), "nine documents");
        assert!(!misses((600, 1_000), (0, 25), 25) && misses((600, 1_000), (0, 26), 26), "0.4^25 is above, 0.4^26 below one in 10^10");
        assert!(!misses((500, 1_000), (0, 500), 500), "half of the documents are not most of them");
        assert!(!misses((1_000, 1_000), (1, 500), 500), "one document has it");
        assert!(!misses((1_000, 1_000), (0, 50), 0), "nothing would be appended");
        assert!(!misses((1_000, 1_000), (0, 50), 9), "only nine are new");
        assert!(missed(&[], &counts(0, 50), new(50)).is_none(), "nothing is known");
        let rows = counts(0, 200).into_document();
        assert!(missed(&counts(100, 100).added_to(&[], 0), &rows, new(200)).is_none(), "two hundred rows of one document");
    }

    /// Proves that documents are counted over runs, that the second run that misses a field knows that the first did, and that one document
    /// with the field ends the count.
    #[test]
    fn documents_are_counted_over_runs() {
        let mut sums = counts(190, 200).added_to(&[], 200);
        for run in 1..=12 {
            let found = missed(&sums, &counts(0, 1), new(1));
            assert_eq!(
                found.as_ref().map(|found| found.is_repeated),
                [None, Some(false), Some(true)][usize::from(run >= 10) + usize::from(run >= 11)]
            );
            if run == 12 {
                assert_eq!(found.unwrap().reason(), "present in 190 of 200 documents of the runs before, absent in the last 12");
            }
            sums = counts(0, 1).added_to(&sums, 1);
        }
        sums = counts(0, 3).added_to(&sums, 0);
        assert_eq!(sums[0].absent, 12, "documents that an earlier run has judged");
        sums = counts(1, 3).added_to(&sums, 3);
        assert_eq!(sums[0].absent, 0);
        assert!(missed(&sums, &counts(0, 9), new(9)).is_none());
    }

    /// Draws numbers from 0 to 1, the same ones in each run.
    struct Draws(u64);

    impl Draws {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// Reads a stream of documents whose fields are present in the given shares of the documents, from a given number of documents before
    /// (most of `run_documents_max` in a run); returns after how many documents a field is missed, if one is.
    fn documents_until_missed(draws: &mut Draws, share: f64, run_documents_max: f64, documents: i64) -> Option<i64> {
        let mut sums = counts(0, 0).added_to(&[], 0);
        let mut read = 0;
        while read < documents {
            let in_run = (1.0 + draws.next() * run_documents_max) as i64;
            let filled = (0..in_run).filter(|_| draws.next() < share).count();
            let run = counts(i64::try_from(filled).unwrap(), in_run);
            read += in_run;
            if missed(&sums, &run, new(in_run)).is_some() {
                return Some(read);
            }
            sums = run.added_to(&sums, in_run);
        }
        None
    }

    /// Proves that all streams together stop for less than one field in ten years that did not vanish: computed for fields of all shares, if each of the
    /// pairs of a document and a field was of the share with the most false stops.
    #[test]
    fn false_stops_are_rarer_than_one_in_ten_years() {
        const PAIRS_A_YEAR: f64 = 60e6;
        const DOCUMENTS: i64 = 10_000;
        let mut most = (0.0, 0, 0);
        for filled in (5_010..=DOCUMENTS).step_by(10) {
            let absent = (1..).find(|absent| is_improbable(filled, DOCUMENTS, *absent)).unwrap();
            let share = filled as f64 / DOCUMENTS as f64;
            let in_ten_years = 10.0 * PAIRS_A_YEAR * share * (1.0 - share).powi(i32::try_from(absent).unwrap());
            if in_ten_years > most.0 {
                most = (in_ten_years, filled, absent);
            }
        }
        let (in_ten_years, filled, absent) = most;
        println!(
            "at most {in_ten_years:.3} false stops in ten years: a field of {filled} of {DOCUMENTS} documents that {absent} in a row lack"
        );
        assert!(in_ten_years > 0.0 && in_ten_years < 1.0, "{in_ten_years}");
    }

    /// Proves by simulation that twenty healthy streams with fields of all shares, in runs of a few documents, miss nothing in two million
    /// documents and fields; the rule before this one missed a field in one of a few hundred.
    #[test]
    fn healthy_streams_do_not_miss_a_field() {
        let mut draws = Draws(7);
        for stream in 0..20_u8 {
            let share = 0.52 + 0.024 * f64::from(stream);
            assert_eq!(documents_until_missed(&mut draws, share, [3.0, 40.0][usize::from(stream % 2)], 100_000), None, "share {share}");
        }
    }

    /// Proves how soon a field that really vanished is missed: after ten documents if nearly all had it, after at most 40 if a little more than
    /// half had it.
    #[test]
    fn a_vanished_field_is_missed_soon() {
        for (filled, most) in [(400, 10), (368, 10), (320, 15), (240, 26), (220, 30), (208, 40)] {
            let mut sums = counts(filled, 400).added_to(&[], 400);
            let mut documents = 1;
            while missed(&sums, &counts(0, 1), new(1)).is_none() {
                sums = counts(0, 1).added_to(&sums, 1);
                documents += 1;
                assert!(documents <= most, "{filled} of 400");
            }
            println!("a field of {filled} of 400 documents is missed after {documents} documents without it");
            assert!(documents >= DOCUMENTS_MIN, "{filled} of 400 had it, missed after {documents}");
        }
    }

    /// Proves that counts stay small however many runs there are, and that they follow the upstream.
    #[test]
    fn counts_are_bounded() {
        let mut sums = counts(1_000, 1_000).added_to(&[], 1_000);
        for _ in 0..200 {
            sums = counts(0, 1_000).added_to(&sums, 1_000);
        }
        assert!(sums[0].records <= COUNTED_MAX && sums[0].filled * 2 < sums[0].records, "{sums:?}");
    }

    /// Proves that a few records outside a window give a warning, and that an answer with all records is refused.
    #[test]
    fn a_filter_that_is_ignored_stops() {
        assert_eq!(outside("d", "p", 0, 9_000).unwrap(), None);
        assert!(outside("d", "p", 400, 500).unwrap().is_some());
        assert!(outside("d", "p", 400, 900).unwrap().is_some());
        assert!(matches!(outside("d", "p", 600, 900), Err(UpstreamError::Stop { field, .. }) if field == "p"));
    }
}
