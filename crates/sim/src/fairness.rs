//! Fairness between flows.

/// Jain's fairness index of some shares: 1 if all are equal, 1/n if one of n has everything (Jain, Chiu and Hawe, DEC
/// TR-301, 1984). 1 if there is nothing to share.
pub fn jain(shares: impl IntoIterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        n += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares > 0.0 { sum * sum / (n * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_equal_shares_to_one_flow_with_everything() {
        assert!((jain([3.0, 3.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((jain([0.0, 5.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain([1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-12);
        assert!((jain([]) - 1.0).abs() < 1e-12);
    }
}
