//! The tail of the Poisson distribution, with the same bits on every platform.

/// From so many standard deviations on, a tail is so small that it is not summed any further.
const TERMS_MAX: u64 = 100_000;

/// Returns the probability that a Poisson variable with this mean is at least `count`. A mean that is not positive counts as 0.
#[must_use]
pub fn tail(mean: f64, count: u64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    if mean.is_nan() || mean <= 0.0 {
        return 0.0;
    }
    if mean.is_infinite() {
        return 1.0;
    }
    let at = count as f64;
    if at <= mean {
        // The sum from 0 to count - 1, from the largest term down.
        return (1.0 - sum(mean, count - 1, |k| k as f64 / mean, |k| k.checked_sub(1))).clamp(0.0, 1.0);
    }
    sum(mean, count, |k| mean / (k as f64 + 1.0), |k| k.checked_add(1)).clamp(0.0, 1.0)
}

/// The sum of probabilities from `first` on, where `factor` leads from a term to the one that `next` names, until terms no longer count.
fn sum(mean: f64, first: u64, factor: impl Fn(u64) -> f64, next: impl Fn(u64) -> Option<u64>) -> f64 {
    let at = first as f64;
    let mut term = libm::exp(at * libm::log(mean) - mean - libm::lgamma(at + 1.0));
    let (mut total, mut k) = (term, first);
    for _ in 0..TERMS_MAX {
        let Some(following) = next(k) else { break };
        term *= factor(k);
        k = following;
        let with = total + term;
        if with <= total {
            break;
        }
        total = with;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the tail against values computed with other software to 10 digits.
    #[test]
    fn known_values() {
        for (mean, count, expected) in [
            (1.0, 9, 1.125_202_598_0e-6),
            (0.2, 4, 5.684_024_075_8e-5),
            (0.2, 3, 1.148_481_244_9e-3),
            (0.2, 2, 1.752_309_630_6e-2),
            (6.0, 12, 2.009_196_353_9e-2),
            (5.0, 5, 5.595_067_149_3e-1),
            (6.0, 1, 9.975_212_478_2e-1),
            (3.0, 0, 1.0),
            (0.0, 1, 0.0),
        ] {
            let tail = tail(mean, count);
            assert!((tail - expected).abs() <= expected * 1e-9, "P(Poisson({mean}) >= {count}) = {tail:e}, not {expected:e}");
        }
    }

    /// Proves the bits of some values, so that another platform or version cannot label differently.
    #[test]
    fn bits_are_fixed() {
        let tail_bits = |(mean, count): (f64, u64)| tail(mean, count).to_bits();
        let bits = [(1.0, 9), (0.2, 4), (6.0, 12), (5.0, 5), (37.25, 90), (2.875, 11)].map(tail_bits);
        assert_eq!(bits, BITS, "{bits:#x?}");
    }

    const BITS: [u64; 6] = [
        0x3eb2_e0b5_570e_df8c,
        0x3f0d_ccf7_cd1d_0ab1,
        0x3f94_92fc_d941_e247,
        0x3fe1_e77a_a051_31a2,
        0x3d4a_b89e_8fe7_f980,
        0x3f2a_d5ec_4ced_9c67,
    ];

    /// Proves that the tail falls with the count, rises with the mean, and stays a probability for any numbers.
    #[test]
    fn tails_are_monotone() {
        for mean in [0.001, 0.2, 0.7, 1.0, 3.3, 10.0, 57.0, 400.0, 10_000.0] {
            let mut before = 1.0;
            for count in 0..200 {
                let tail = tail(mean, count);
                assert!((0.0..=1.0).contains(&tail) && tail <= before, "{mean} {count}");
                assert!(super::tail(mean * 1.1, count) >= tail - 1e-12, "{mean} {count}");
                before = tail;
            }
        }
        for (mean, count) in [(f64::NAN, 3), (-1.0, 3), (1.0, u64::MAX), (f64::INFINITY, 3)] {
            assert!((0.0..=1.0).contains(&tail(mean, count)), "{mean} {count}");
        }
    }
}
