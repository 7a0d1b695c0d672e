//! The arithmetic of assessments: the ratio of an implied market value to a sale, the median and the coefficient of dispersion (COD) of the ratios of a
//! group, and the tier that follows. Whole numbers only, so that every platform gets the same results.

use serde::{Deserialize, Serialize};

/// The tiers of over-assessment, the strongest first.
pub const TIERS: [&str; 3] = ["high", "medium", "low"];
/// The tier of a parcel that is not assessed higher than its peers.
pub const NONE: &str = "none";
/// The tier of a parcel that cannot be compared.
pub const INSUFFICIENT: &str = "insufficient";
/// The least `r` of the tiers `medium` and `low`, in ten-thousandths.
pub const MEDIUM_R: i64 = 11_000;
/// See [`MEDIUM_R`].
pub const LOW_R: i64 = 10_500;
/// A ratio of 1, in the unit of ratios.
pub const ONE: i64 = 1_000_000_000;
/// The fewest sales of peers that a comparison needs.
pub const SALES_MIN: usize = 30;
/// The least `r` of the tier `high`, in ten-thousandths.
const HIGH_R: i64 = 12_500;
/// The largest COD of the tier `high`, in millionths of a percent.
const HIGH_COD_MAX: i64 = 15_000_000;
/// The part of a group that is left out at each end, in percent.
const TRIMMED_PERCENT: usize = 5;

/// What is known of the ratios of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// How many ratios count.
    pub n: usize,
    /// The median, in billionths.
    pub median: i64,
    /// The coefficient of dispersion, in millionths of a percent.
    pub cod: i64,
}

/// The market value that an assessed value implies, in dollars. `level` is in hundredths of a percent.
#[must_use]
pub fn implied_market_value(assessed: i64, level: i64) -> Option<i64> {
    let (assessed, level) = (i128::from(assessed), i128::from(level));
    (assessed > 0 && level > 0).then(|| i64::try_from((assessed * 10_000 + level / 2) / level).ok()).flatten()
}

/// The implied market value divided by a price, in billionths. `level` is in hundredths of a percent.
#[must_use]
pub fn ratio(assessed: i64, level: i64, price: i64) -> Option<i64> {
    let (assessed, divisor) = (i128::from(assessed), i128::from(level) * i128::from(price));
    (assessed > 0 && divisor > 0).then(|| i64::try_from((assessed * 10_000 * i128::from(ONE) + divisor / 2) / divisor).ok()).flatten()
}

/// The statistics of all given ratios; `None` of no ratios.
#[must_use]
pub fn stats(mut ratios: Vec<i64>) -> Option<Stats> {
    ratios.sort_unstable();
    let n = ratios.len();
    let (low, high) = (*ratios.get(n.checked_sub(1)? / 2)?, *ratios.get(n / 2)?);
    let median = i64::midpoint(low, high);
    let sum: i128 = ratios.iter().map(|ratio| i128::from((ratio - median).unsigned_abs())).sum();
    let divisor = i128::try_from(n).ok()? * i128::from(median);
    // 100 percent, in millionths of a percent.
    let cod = if divisor > 0 { (sum * 100_000_000 + divisor / 2) / divisor } else { 0 };
    Some(Stats { n, median, cod: i64::try_from(cod).unwrap_or(i64::MAX) })
}

/// The statistics of a group without the smallest and the largest 5 percent of its ratios, rounded down.
#[must_use]
pub fn trimmed_stats(mut ratios: Vec<i64>) -> Option<Stats> {
    ratios.sort_unstable();
    let cut = ratios.len() * TRIMMED_PERCENT / 100;
    ratios.truncate(ratios.len() - cut);
    stats(ratios.split_off(cut))
}

/// The ratio of a parcel divided by the median of its peers, in ten-thousandths, as answers show it.
#[must_use]
pub fn r(ratio: i64, median: i64) -> Option<i64> {
    let (ratio, median) = (i128::from(ratio), i128::from(median));
    (median > 0).then(|| i64::try_from((ratio * 10_000 + median / 2) / median).ok()).flatten()
}

/// The tier of a parcel with a ratio: a function of its ratio divided by the median of its peers, without rounding, and of the COD and the number of the
/// sales of these.
#[must_use]
pub fn tier(ratio: i64, peers: &Stats) -> &'static str {
    let [high, medium, low] = TIERS;
    let is_from = |least_r: i64| i128::from(ratio) * 10_000 >= i128::from(least_r) * i128::from(peers.median);
    if peers.n < SALES_MIN {
        INSUFFICIENT
    } else if is_from(HIGH_R) && peers.cod <= HIGH_COD_MAX {
        high
    } else if is_from(MEDIUM_R) {
        medium
    } else if is_from(LOW_R) {
        low
    } else {
        NONE
    }
}

/// A number of billionths as answers show it, with 4 decimals.
#[must_use]
pub fn shown_ratio(billionths: i64) -> f64 {
    shown_r((billionths + 50_000).div_euclid(100_000))
}

/// A number of ten-thousandths as answers show it.
#[expect(clippy::cast_precision_loss, reason = "shown values are far below 2^53 ten-thousandths")]
#[must_use]
pub fn shown_r(ten_thousandths: i64) -> f64 {
    ten_thousandths as f64 / 10_000.0
}

/// A coefficient of dispersion as answers show it, in percent with 4 decimals.
#[must_use]
pub fn shown_cod(millionths: i64) -> f64 {
    shown_r((millionths + 50).div_euclid(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the worked examples of the contract: a level of .25, a board total of 50,000, a median of 1.02 of 41 sales with a COD of 13.2.
    #[test]
    fn worked_examples() {
        const MEDIAN: i64 = 1_020_000_000;
        const COD: i64 = 13_200_000;
        assert_eq!(implied_market_value(50_000, 2_500), Some(200_000));
        for (price, shown_as, r_shown, cod, n, expected) in [
            (160_000, 1.25, 1.2255, COD, 41, "medium"),
            (150_000, 1.3333, 1.3072, COD, 41, "high"),
            (150_000, 1.3333, 1.3072, 17_000_000, 41, "medium"),
            (150_000, 1.3333, 1.3072, COD, 29, "insufficient"),
        ] {
            let ratio = ratio(50_000, 2_500, price).unwrap();
            let r = r(ratio, MEDIAN).unwrap();
            let tier = tier(ratio, &Stats { n, median: MEDIAN, cod });
            assert_eq!((shown_ratio(ratio), shown_r(r), tier), (shown_as, r_shown, expected), "{price} {cod} {n}");
        }
        let ratios = [0.8, 0.9, 1.0, 1.1, 1.4].map(|ratio| (ratio * 1e9) as i64);
        assert_eq!(stats(ratios.to_vec()), Some(Stats { n: 5, median: ONE, cod: 16_000_000 }));
        assert_eq!(shown_cod(16_000_000), 16.0);
    }

    /// Proves the boundaries of the tiers, and that a ratio below one of them does not reach it by rounding.
    #[test]
    fn boundaries_of_tiers() {
        for (ratio, r_shown, cod, expected) in [
            (1_250_000_000, 1.25, 15_000_000, "high"),
            (1_249_999_999, 1.25, 15_000_000, "medium"),
            (1_249_950_000, 1.25, 15_000_000, "medium"),
            (1_249_949_999, 1.2499, 15_000_000, "medium"),
            (1_250_000_000, 1.25, 15_000_001, "medium"),
            (1_100_000_000, 1.1, 0, "medium"),
            (1_099_950_000, 1.1, 0, "low"),
            (1_050_000_000, 1.05, 99_000_000, "low"),
            (1_049_950_000, 1.05, 0, "none"),
            (0, 0.0, 0, "none"),
        ] {
            let tier = tier(ratio, &Stats { n: 30, median: ONE, cod });
            assert_eq!((shown_r(r(ratio, ONE).unwrap()), tier), (r_shown, expected), "{ratio} {cod}");
        }
    }

    /// Proves that statistics do not depend on the order, that 5 percent are left out at each end, and that numbers without sense give none.
    #[test]
    fn groups() {
        let up: Vec<i64> = (1..=40).map(|at| at * ONE / 20).collect();
        let down: Vec<i64> = up.iter().rev().copied().collect();
        assert_eq!(trimmed_stats(up.clone()), trimmed_stats(down));
        assert_eq!(trimmed_stats(up.clone()).unwrap().n, 36);
        assert_eq!(trimmed_stats(up[..19].to_vec()).unwrap().n, 19);
        assert_eq!((stats(Vec::new()), trimmed_stats(Vec::new())), (None, None));
        for (assessed, level, price) in [(0, 2_500, 1), (-5, 2_500, 1), (5, 0, 1), (5, 2_500, 0), (i64::MAX, 1, 1)] {
            assert_eq!(ratio(assessed, level, price), None, "{assessed} {level} {price}");
        }
        assert_eq!((implied_market_value(i64::MAX, 1), r(5, 0)), (None, None));
    }

    /// The statistics of sales, given as assessed value and price; and their price-related differential (PRD) in ten-millionths: the mean of the ratios, divided
    /// by the ratio of the sums.
    fn studied(sales: &[(i64, i64)]) -> (Stats, i128) {
        let ratios: Vec<i64> = sales.iter().map(|(assessed, price)| ratio(*assessed, 10_000, *price).unwrap()).collect();
        let of_ratios: i128 = ratios.iter().map(|ratio| i128::from(*ratio)).sum();
        let of_values: i128 = sales.iter().map(|(assessed, _)| i128::from(*assessed)).sum();
        let of_prices: i128 = sales.iter().map(|(_, price)| i128::from(*price)).sum();
        let divisor = i128::try_from(sales.len()).unwrap() * i128::from(ONE) * of_values;
        (stats(ratios).unwrap(), (of_ratios * of_prices * 10_000_000 + divisor / 2) / divisor)
    }

    /// Proves the arithmetic on the 17 sales of table 1-4 of the IAAO's Standard on Ratio Studies, which gives a COD of 14.5 and a PRD of 0.98.
    #[test]
    fn a_published_table() {
        let sales = [
            (87_200, 138_720),
            (38_240, 59_700),
            (96_320, 146_400),
            (68_610, 99_000),
            (32_960, 47_400),
            (50_560, 70_500),
            (61_360, 78_000),
            (47_360, 60_000),
            (56_580, 69_000),
            (47_040, 55_500),
            (136_000, 154_500),
            (98_000, 109_500),
            (56_000, 60_000),
            (159_100, 168_000),
            (128_000, 124_500),
            (132_000, 127_500),
            (160_000, 150_000),
        ];
        assert_eq!(studied(&sales), (Stats { n: 17, median: 820_000_000, cod: 14_523_802 }, 9_765_867));
    }

    /// The environment variable with a file of the sample: a line of assessed value and price in whole dollars for each sale, after a heading.
    const SAMPLE: &str = "PARCELS_RATIOS";

    /// Proves the figures that the county's office publishes for its sample of 979 sales: a COD of 17.814569, a PRD of 1.0484193 and a median of 0.9829455. The
    /// sample is no part of this repository: `ops/checks/parcels-yardstick` takes a file with it. Without one nothing is measured.
    #[test]
    fn the_sample_of_the_county() {
        let Some(file) = std::env::var_os(SAMPLE) else {
            println!("{SAMPLE} is not set: the sample of the county is not measured");
            return;
        };
        let text = std::fs::read_to_string(file).unwrap();
        let number = |text: &str| text.trim().parse::<i64>().unwrap();
        let pair = |line: &str| line.split_once(',').map(|(assessed, price)| (number(assessed), number(price))).unwrap();
        let (found, prd) = studied(&text.lines().skip(1).map(pair).collect::<Vec<_>>());
        println!("{found:?}, PRD {prd} ten-millionths");
        assert_eq!((found, prd), (Stats { n: 979, median: 982_945_455, cod: 17_814_569 }, 10_484_193));
    }
}
