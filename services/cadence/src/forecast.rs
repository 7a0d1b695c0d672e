//! The forecast `log-t/1`: when the next of a series of events is due, from the gaps between the past ones.
//!
//! The logarithms of the gaps are taken as a sample of a normal distribution whose spread is shrunk towards the spread of similar series. The
//! interval for the next gap is the prediction interval of Student's distribution. Every function gives the same bits on every platform: it
//! uses `libm` and sums in the order of the arguments, so decisions may use it.

/// The name of the method.
pub const METHOD: &str = "log-t/1";
/// The share of next events that lie in an interval.
pub const COVERAGE: f64 = 0.8;
/// How many gaps are used: the newest.
pub const GAPS_MAX: usize = 12;
/// The spread of similar series when too few are known: a standard deviation of logarithms.
pub const SPREAD_DEFAULT: f64 = 0.5;
/// The weight of the spread of similar series, in observations.
const SPREAD_WEIGHT: f64 = 2.0;
/// Makes the median absolute deviation of a normal sample comparable with its standard deviation.
const MAD_SCALE: f64 = 1.4826;
/// The quantile 0.90 of Student's distribution, by degrees of freedom from 1.
const STUDENT_90: [f64; GAPS_MAX + 1] = [
    3.077_683_537_175_253,
    1.885_618_083_164_126_7,
    1.637_744_353_696_210_2,
    1.533_206_274_058_943_6,
    1.475_884_048_824_481_5,
    1.439_755_747_258_143,
    1.414_923_927_651_197_6,
    1.396_815_309_794_653_4,
    1.383_028_738_396_632_3,
    1.372_183_641_110_335_6,
    1.363_430_318_052_905_8,
    1.356_217_333_998_346_4,
    1.350_171_288_780_921_6,
];

/// The distribution of the next gap. Gaps may have any unit; the results have the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogT {
    /// The mean of the logarithms, `m`.
    pub mean: f64,
    /// Their standard deviation, shrunk towards that of similar series, `s`.
    pub spread: f64,
    /// The degrees of freedom.
    pub degrees: usize,
    /// The quantile 0.90 of Student's distribution.
    pub quantile: f64,
    /// Half the width of the interval in logarithms, `w`, times the correction.
    pub half_width: f64,
}

impl LogT {
    /// Returns the distribution of the gap after these, the newest last. `similar` is the spread of similar series, `correction` widens the
    /// interval if it is above 1. `None` without a gap, or if a gap is not above 0.
    #[must_use]
    pub fn new(gaps: &[f64], similar: f64, correction: f64) -> Option<Self> {
        let gaps = newest(gaps);
        if gaps.is_empty() || gaps.iter().any(|gap| !gap.is_finite() || *gap <= 0.0) {
            return None;
        }
        let (n, mean, squares) = log_moments(gaps);
        let spread = libm::sqrt((squares + SPREAD_WEIGHT * similar * similar) / (n - 1.0 + SPREAD_WEIGHT));
        let degrees = gaps.len() + 1;
        let quantile = STUDENT_90.get(degrees - 1).copied()?;
        let half_width = quantile * spread * libm::sqrt(1.0 + 1.0 / n) * correction;
        Some(Self { mean, spread, degrees, quantile, half_width })
    }

    /// The lower end of the interval.
    #[must_use]
    pub fn low(&self) -> f64 {
        libm::exp(self.mean - self.half_width)
    }

    /// The median of the next gap.
    #[must_use]
    pub fn centre(&self) -> f64 {
        libm::exp(self.mean)
    }

    /// The upper end of the interval.
    #[must_use]
    pub fn high(&self) -> f64 {
        libm::exp(self.mean + self.half_width)
    }

    /// Whether a gap lies in the interval, widened by `padding` at both ends.
    #[must_use]
    pub fn holds(&self, gap: f64, padding: f64) -> bool {
        (self.low() - padding..=self.high() + padding).contains(&gap)
    }

    /// Returns the smallest correction under which the interval holds a gap, given that this one has the correction 1.
    #[must_use]
    pub fn correction_for(&self, gap: f64, padding: f64) -> f64 {
        if self.half_width <= 0.0 {
            return if self.holds(gap, padding) { 0.0 } else { f64::INFINITY };
        }
        let below = if gap + padding > 0.0 { (self.mean - libm::log(gap + padding)) / self.half_width } else { f64::INFINITY };
        let above = if gap - padding > 0.0 { (libm::log(gap - padding) - self.mean) / self.half_width } else { 0.0 };
        below.max(above).max(0.0)
    }
}

/// The newest gaps, of which a forecast is made.
#[must_use]
pub fn newest(gaps: &[f64]) -> &[f64] {
    gaps.get(gaps.len().saturating_sub(GAPS_MAX)..).unwrap_or_default()
}

/// The standard deviation of the logarithms of the newest gaps; `None` under two gaps.
#[must_use]
pub fn log_spread(gaps: &[f64]) -> Option<f64> {
    let gaps = newest(gaps);
    if gaps.len() < 2 || gaps.iter().any(|gap| *gap <= 0.0) {
        return None;
    }
    let (n, _, squares) = log_moments(gaps);
    Some(libm::sqrt(squares / (n - 1.0)))
}

/// The number of gaps, the mean of their logarithms, and the sum of the squares of the distances from it.
fn log_moments(gaps: &[f64]) -> (f64, f64, f64) {
    let n = gaps.len() as f64;
    let logs: Vec<f64> = gaps.iter().map(|gap| libm::log(*gap)).collect();
    let mean = logs.iter().sum::<f64>() / n;
    (n, mean, logs.iter().map(|log| (log - mean) * (log - mean)).sum())
}

/// The median; `None` of no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { sorted.get(middle.wrapping_sub(1)).map(|lower| f64::midpoint(*lower, upper)) }
}

/// The robust coefficient of variation: 1.4826 times the median absolute deviation, over the median. `None` of no values.
#[must_use]
pub fn variation(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|middle| *middle > 0.0)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(MAD_SCALE * median(&deviations)? / middle)
}

/// The share of the newest gaps that lie in the interval made of the others, widened by `padding`; `None` under two gaps.
#[must_use]
pub fn hit_rate(gaps: &[f64], similar: f64, correction: f64, padding: f64) -> Option<f64> {
    let gaps = newest(gaps);
    if gaps.len() < 2 {
        return None;
    }
    let hits = gaps.iter().enumerate().filter(|(at, gap)| {
        let others: Vec<f64> = gaps.iter().enumerate().filter(|(other, _)| other != at).map(|(_, gap)| *gap).collect();
        LogT::new(&others, similar, correction).is_some_and(|next| next.holds(**gap, padding))
    });
    Some(hits.count() as f64 / gaps.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(value: f64, digits: i32) -> f64 {
        (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits)
    }

    /// Proves the quantiles of Student's distribution: the density integrates to 0.4 from 0 to each of them.
    #[test]
    fn quantiles_are_students() {
        for (at, quantile) in STUDENT_90.iter().enumerate() {
            let degrees = at as f64 + 1.0;
            let factor = libm::exp(libm::lgamma(f64::midpoint(degrees, 1.0)) - libm::lgamma(degrees / 2.0))
                / libm::sqrt(degrees * std::f64::consts::PI);
            let density = |x: f64| factor * libm::pow(1.0 + x * x / degrees, -f64::midpoint(degrees, 1.0));
            // Simpson's rule.
            let steps = 2_000;
            let width = quantile / f64::from(steps);
            let weight = |step: i32| {
                if step == 0 || step == steps {
                    1.0
                } else if step % 2 == 1 {
                    4.0
                } else {
                    2.0
                }
            };
            let sum: f64 = (0..=steps).map(|step| weight(step) * density(width * f64::from(step))).sum::<f64>() * width / 3.0;
            assert!((sum - 0.4).abs() < 1e-10, "{degrees}: {sum}");
        }
    }

    /// Proves the worked examples of the method, to the digits that they state.
    #[test]
    fn worked_examples() {
        let next = LogT::new(&[7.0, 7.0, 8.0, 6.0, 7.0], 0.3, 1.0).unwrap();
        assert_eq!((rounded(next.mean, 5), rounded(next.spread, 5), next.degrees), (1.94179, 0.19214, 6));
        assert_eq!((rounded(next.quantile, 4), rounded(next.low(), 3), rounded(next.high(), 3)), (1.4398, 5.149, 9.439));
        assert_eq!((rounded(next.centre(), 3), variation(&[7.0, 7.0, 8.0, 6.0, 7.0])), (6.971, Some(0.0)));
        let next = LogT::new(&[14.0; 8], 0.3, 1.0).unwrap();
        assert_eq!((rounded(next.spread, 5), next.degrees, rounded(next.quantile, 4)), (0.14142, 9, 1.383));
        assert_eq!((rounded(next.low(), 3), rounded(next.high(), 3)), (11.377, 17.228));
        let gaps = [4.0, 12.0, 5.0, 20.0, 9.0, 7.0, 15.0];
        let next = LogT::new(&gaps, 0.3, 1.0).unwrap();
        assert_eq!((rounded(next.spread, 5), next.degrees, rounded(next.quantile, 4)), (0.52763, 8, 1.3968));
        assert_eq!((rounded(next.low(), 3), rounded(next.high(), 3), rounded(next.centre(), 3)), (4.062, 19.64, 8.932));
        assert_eq!((median(&gaps), variation(&gaps).map(|cv| rounded(cv, 3))), (Some(9.0), Some(0.659)));
    }

    /// Proves that the correction for a gap is the smallest under which the interval holds it.
    #[test]
    fn corrections_are_smallest() {
        let gaps = [4.0, 12.0, 5.0, 20.0, 9.0, 7.0, 15.0];
        let plain = LogT::new(&gaps, 0.3, 1.0).unwrap();
        for gap in [0.4, 1.0, 3.0, 8.9, 9.5, 30.0, 200.0] {
            let needed = plain.correction_for(gap, 0.5);
            if needed > 0.0 {
                assert!(LogT::new(&gaps, 0.3, needed * 1.000_001).unwrap().holds(gap, 0.5), "{gap}");
                assert!(!LogT::new(&gaps, 0.3, needed * 0.999_99).unwrap().holds(gap, 0.5), "{gap}");
            } else {
                assert!(plain.holds(gap, 0.5), "{gap}");
            }
        }
    }

    /// Proves that only the newest gaps count, and that gaps without a logarithm give no forecast.
    #[test]
    fn only_the_newest_gaps_count() {
        let long: Vec<f64> = (1..=30).map(f64::from).collect();
        assert_eq!(LogT::new(&long, 0.3, 1.0), LogT::new(&long[18..], 0.3, 1.0));
        assert_eq!((LogT::new(&[], 0.3, 1.0), LogT::new(&[1.0, 0.0], 0.3, 1.0), log_spread(&[1.0])), (None, None, None));
        assert_eq!((median(&[]), median(&[3.0, 1.0]), hit_rate(&[14.0; 8], 0.3, 1.0, 0.5)), (None, Some(2.0), Some(1.0)));
    }
}
