//! Divisors, and the largest tiles among them.

/// All divisors, the smallest first.
pub(super) fn divisors(n: u64) -> Vec<u64> {
    let mut low = Vec::new();
    let mut high = Vec::new();
    let mut d = 1;
    while d * d <= n {
        if n.is_multiple_of(d) {
            low.push(d);
            if d * d != n {
                high.push(n / d);
            }
        }
        d += 1;
    }
    high.reverse();
    low.extend(high);
    low
}

/// Tiles that divide `shape` and fit, and of which no larger one does: whatever they are multiplied by, they are too large or divide it
/// no more. `fits` must not take a tile that it refuses a divisor of.
pub(super) fn largest(
    shape: [u64; 3],
    divisors: &[Vec<u64>; 3],
    fits: impl Fn([u64; 3]) -> bool,
) -> Vec<[u64; 3]> {
    let mut found: Vec<[u64; 3]> = Vec::new();
    for x in divisors[0].iter().copied().filter(|x| shape[0].is_multiple_of(*x)) {
        for y in divisors[1].iter().copied().filter(|y| shape[1].is_multiple_of(*y)) {
            // For each x and y all z that no multiple of them is better than; several, where divisors don't divide each other.
            let fitting: Vec<u64> = divisors[2]
                .iter()
                .copied()
                .filter(|z| shape[2].is_multiple_of(*z) && fits([x, y, *z]))
                .collect();
            for (i, z) in fitting.iter().enumerate() {
                if !fitting[i + 1..].iter().any(|w| w.is_multiple_of(*z)) {
                    found.push([x, y, *z]);
                }
            }
        }
    }
    let within = |a: &[u64; 3], b: &[u64; 3]| a != b && (0..3).all(|i| b[i].is_multiple_of(a[i]));
    let keep: Vec<bool> = found.iter().map(|a| !found.iter().any(|b| within(a, b))).collect();
    let mut kept = keep.into_iter();
    found.retain(|_| kept.next() == Some(true));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_those_that_nothing_contains() {
        assert_eq!(divisors(12), [1, 2, 3, 4, 6, 12]);
        let shape = [2, 12, 6];
        let all = shape.map(divisors);
        let fits = |t: [u64; 3]| t[0] * t[1] + t[1] * t[2] + t[0] * t[2] <= 20;
        let found = largest(shape, &all, fits);
        for x in &all[0] {
            for y in &all[1] {
                for z in &all[2] {
                    let t = [*x, *y, *z];
                    let grows = (0..3).any(|i| {
                        [2, 3].into_iter().any(|p| {
                            let mut u = t;
                            u[i] *= p;
                            shape[i].is_multiple_of(u[i]) && fits(u)
                        })
                    });
                    assert_eq!(found.contains(&t), fits(t) && !grows, "{t:?}");
                }
            }
        }
    }
}
